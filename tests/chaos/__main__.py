"""`python -m tests.chaos`: fresh seeds, or those named; prints each schedule and what came of it.

A schedule that fails is made smaller and printed again. With `--broken WAY` the product is broken that way, and the
run succeeds only if some schedule finds it out.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import sys
import time
from collections import Counter

import tests.environment  # noqa: F401 - settings of a test, before Django's are read
from tests.chaos.broken import Way
from tests.chaos.holding import Contradiction
from tests.chaos.judge import Verdict
from tests.chaos.schedule import Fault, Schedule, draw
from tests.chaos.town import Town, running_town
from tests.chaos.trial import Crowd, Report, run

# What each broken build is likely to stumble over.
_TELLING = {
    Way.NO_GAP_FETCH: (Fault.KILL_CLIENTS, Fault.RESTART_REDIS),
    Way.NO_FENCE: (Fault.FREEZE_WEB,),
    Way.PUBLISH_BEFORE_COMMIT: (Fault.RESTART_POSTGRES, Fault.KILL_WEB),
}


def main() -> int:
    options = _options()
    broken = Way(options.broken) if options.broken else None
    seeds = options.seed or [random.SystemRandom().randrange(1_000_000) for _ in range(options.schedules)]
    kinds = tuple(Fault[name] for name in options.fault) if options.fault else tuple(Fault)
    if broken is not None:
        return asyncio.run(_find_out(broken, draw(seeds, options.faults, _TELLING[broken]), options))
    return asyncio.run(_prove(draw(seeds, options.faults, kinds), options))


async def _prove(schedules: list[Schedule], options: argparse.Namespace) -> int:
    crowd = _crowd(options)
    reports = []
    async with running_town() as town:
        for schedule in schedules:
            reports.append(await _tried(town, schedule, crowd))
            if not reports[-1].verdict.good:
                await _shrink(town, schedule, crowd)
    injected = Counter(one.fault.value for report in reports for one in report.schedule.injections)
    say("injected: " + ", ".join(f"{count} × {fault}" for fault, count in sorted(injected.items())))
    recovered = sorted(seconds for report in reports for seconds in report.recovery_s)
    said, answers = sum(report.messages for report in reports), sum(report.answers for report in reports)
    say(
        f"{said} messages said, {answers} answers; "
        f"recovery: median {statistics.median(recovered):.2f} s, worst {recovered[-1]:.2f} s"
    )
    failed = [report.schedule.seed for report in reports if not report.verdict.good]
    say(f"{len(reports)} schedules, {len(failed)} failed" + (f": seeds {failed}" if failed else ""))
    return 1 if failed else 0


async def _find_out(way: Way, schedules: list[Schedule], options: argparse.Namespace) -> int:
    on_the_client = way is Way.NO_GAP_FETCH
    program = ("manage.py",) if on_the_client else ("-m", "tests.chaos.broken", way.value)
    async with running_town(program) as town:
        for number, schedule in enumerate(schedules, 1):
            report = await _tried(town, schedule, _crowd(options, fetches=not on_the_client))
            if not report.verdict.good:
                say(f"{way.value}: found out by schedule {number}")
                return 0
    say(f"{way.value}: not found out by {len(schedules)} schedules")
    return 1


async def _shrink(town: Town, schedule: Schedule, crowd: Crowd) -> None:
    """Leaves out one fault after the other for as long as it still fails; each is tried once."""
    for injection in schedule.injections:
        smaller = schedule.without(injection)
        if smaller.injections and not (await _tried(town, smaller, crowd)).verdict.good:
            schedule = smaller
    say(f"the least that still fails:\n{schedule}\n")


async def _tried(town: Town, schedule: Schedule, crowd: Crowd) -> Report:
    begun_s = time.monotonic()
    try:
        report = await run(town, schedule, crowd)
    except Contradiction as contradiction:
        report = Report(schedule, Verdict(strange=[str(contradiction)]))
    say(f"{report}\n{time.monotonic() - begun_s:.1f} s\n")
    return report


def _crowd(options: argparse.Namespace, *, fetches: bool = True) -> Crowd:
    return Crowd(options.customers, options.agents, options.questions, fetches)


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--schedules", type=int, default=20)
    parser.add_argument("--seed", type=int, action="append", help="instead of fresh ones; may be repeated")
    parser.add_argument("--faults", type=int, default=5, help="injections in each schedule")
    parser.add_argument(
        "--fault", action="append", choices=[fault.name for fault in Fault], help="only these"
    )
    parser.add_argument("--customers", type=int, default=200)
    parser.add_argument("--agents", type=int, default=10)
    parser.add_argument("--questions", type=int, default=2, help="of each customer")
    parser.add_argument("--broken", choices=[way.value for way in Way], help="break the product this way")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
