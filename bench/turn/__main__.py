"""`python -m bench.turn`: the three paths, interleaved in one run."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.turn.clients import Client, Modern, Ours, Timing, Traditional
from bench.turn.report import Arm, write
from bench.turn.stack import Stack, running

QUESTIONS = (
    "Can I return worn boots?",
    "Where is my order 1042?",
    "How long does shipping take?",
    "How do I clean my tent?",
    "Which boot size should I take?",
    "Can I change an order after paying?",
    "Is the battery safe on a plane?",
    "Do you take gift cards?",
    "How long is the warranty on a lamp?",
    "When do your stores open?",
)

ARMS: dict[str, Callable[[Stack, str], Client]] = {
    "a traditional": lambda stack, identity: Traditional(stack.rivals, identity),
    "b modern": lambda stack, identity: Modern(stack.rivals, identity),
    "c chatsvc": lambda stack, identity: Ours(stack.product, identity),
}


def main() -> int:
    options = _options()
    arms = {name: Arm(name) for name in ARMS}
    count = options.conversations
    with running(options.profile, options.rtt_ms, count * len(ARMS), options.tokens) as stack:
        identities = iter(stack.identities)
        for batch in range(0, count, options.at_once):
            for name, make in ARMS.items():
                size = min(options.at_once, count - batch)
                clients = [make(stack, next(identities)) for _ in range(size)]
                asyncio.run(_batch(stack, arms[name], clients, options.turns))
                sys.stderr.write(f"{name}: {len(arms[name].turns)} of {count} conversations\n")
    write(Path(options.results), options.profile, list(arms.values()))
    return 0


async def _batch(stack: Stack, arm: Arm, clients: Sequence[Client], turns: int) -> None:
    """Some conversations at once; what the model saw meanwhile belongs to this arm."""
    await asyncio.to_thread(stack.renew_model)
    arm.turns += await asyncio.gather(*(_converse(client, turns) for client in clients))
    requests = await asyncio.to_thread(stack.upstream.requests)
    arm.seen += [seen for seen in requests if seen.path.endswith("/chat/completions")]
    arm.connections += (await asyncio.to_thread(stack.upstream.counts)).connections_opened


async def _converse(client: Client, turns: int) -> list[Timing]:
    async with client:
        return [await client.ask(QUESTIONS[n % len(QUESTIONS)]) for n in range(turns)]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.turn", description=__doc__)
    parser.add_argument("--profile", default="brief", choices=("instant", "brief", "hosted", "self-hosted"))
    parser.add_argument("--rtt-ms", type=float, help="instead of the profile's round trip")
    parser.add_argument("--conversations", type=int, default=20)
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--at-once", type=int, default=4, help="conversations of one path at the same time")
    parser.add_argument("--tokens", type=int, default=40, help="length of an answer")
    parser.add_argument("--results", default="bench/results")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
