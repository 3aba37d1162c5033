"""What reading ahead of questions saves and costs: `python -m bench.warmups`. A table on standard output.

One's own model server (profile *self-hosted*: a token of prefill takes a millisecond, one that was computed before
nothing), the same conversations with the endpoint's switch off and on, interleaved, and a pause before each further
question as a customer makes who reads.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
from collections import Counter
from dataclasses import dataclass, field

from bench.drafts import scraped
from bench.turn.clients import Credentials, Ours
from bench.turn.questions import ROUND
from bench.turn.stack import running
from bench.turn.wanted import Model
from tests.fakes.upstream.faults import Plan
from tests.fakes.upstream.script import Filler

METRICS = {
    "computed": 'chatsvc_warmup_tokens_total{kind="computed"}',
    "cached": 'chatsvc_warmup_tokens_total{kind="cached"}',
    "read": 'chatsvc_warmups_total{outcome="read",why="turn"}',
    "ended": 'chatsvc_warmups_total{outcome="ended",why="turn"}',
    "used": 'chatsvc_warmed_total{end="used"}',
    "missed": 'chatsvc_warmed_total{end="missed"}',
    "prompt": 'chatsvc_llm_tokens_total{kind="prompt"}',
}


@dataclass(slots=True)
class Arm:
    """Milliseconds to the first text, of each first question and of each further one."""

    name: str
    ahead: bool
    first_ms: list[float] = field(default_factory=list)
    further_ms: list[float] = field(default_factory=list)
    counted: Counter[str] = field(default_factory=Counter)


def main() -> int:
    options = _options()
    arms = [Arm("off", ahead=False), Arm("on", ahead=True)]
    people = options.rounds * options.at_once
    with running(options.profile, options.rtt_ms, people) as stack:
        stack.upstream.always(Plan(script=Filler(tokens=options.tokens)))
        sites = {}
        for arm in arms:
            stack.model = Model(base_url=stack.upstream.base_url, dialect="vllm", prepare_prompts=arm.ahead)
            sites[arm.name] = iter(stack.people(people, answer_cache="off").identities)
        host = stack.product().host
        for number in range(options.rounds):
            for arm in arms:
                crowd = [Credentials(identity=next(sites[arm.name])) for _ in range(options.at_once)]
                before = scraped(host, METRICS)
                asyncio.run(_crowd(host, arm, crowd, options))
                after = scraped(host, METRICS)
                arm.counted.update({name: after[name] - before[name] for name in METRICS})
            sys.stderr.write(f"round {number + 1} of {options.rounds}\n")
    _table(arms)
    return 0


async def _crowd(host: str, arm: Arm, crowd: list[Credentials], options: argparse.Namespace) -> None:
    async with asyncio.TaskGroup() as people:
        for who in crowd:
            people.create_task(_person(host, arm, who, options))


async def _person(host: str, arm: Arm, who: Credentials, options: argparse.Namespace) -> None:
    async with Ours(host, who) as line:
        for number in range(options.turns):
            await asyncio.sleep(options.pause_s)
            timing = await line.ask(ROUND[number % len(ROUND)])
            (arm.further_ms if number else arm.first_ms).append((timing.first_s - timing.asked_s) * 1_000)
        await asyncio.sleep(options.pause_s)


def _table(arms: list[Arm]) -> None:
    print(
        "| | further questions | first text P50 | P95 | mean | tokens read ahead a turn | of them computed | used |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for arm in arms:
        times, counted = arm.further_ms, arm.counted
        turns = len(times) + len(arm.first_ms)
        settled = counted["used"] + counted["missed"]
        used = f"{counted['used'] / settled:.0%}" if settled else ""
        read = (counted["computed"] + counted["cached"]) / turns
        print(
            f"| {arm.name} | {len(times)} | {statistics.median(times):.0f} ms "
            f"| {statistics.quantiles(times, n=20)[-1]:.0f} ms | {statistics.fmean(times):.0f} ms "
            f"| {read:.0f} | {counted['computed'] / turns:.0f} | {used} |"
        )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.warmups", description=__doc__)
    parser.add_argument("--profile", default="self-hosted", choices=("brief", "hosted", "self-hosted"))
    parser.add_argument("--rtt-ms", type=float)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=60, help="length of an answer")
    parser.add_argument("--pause-s", type=float, default=2.0)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
