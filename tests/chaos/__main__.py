"""`python -m tests.chaos`: fresh seeds, or those named; prints each schedule and what came of it."""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import time
from collections import Counter

import tests.environment  # noqa: F401 - settings of a test, before Django's are read
from tests.chaos.schedule import Fault, Schedule, draw
from tests.chaos.town import running_town
from tests.chaos.trial import Report, run


def main() -> int:
    options = _options()
    seeds = options.seed or [random.SystemRandom().randrange(1_000_000) for _ in range(options.schedules)]
    kinds = tuple(Fault[name] for name in options.fault) if options.fault else tuple(Fault)
    reports = asyncio.run(_run(draw(seeds, options.faults, kinds), options))
    injected = Counter(one.fault.value for report in reports for one in report.schedule.injections)
    say("injected: " + ", ".join(f"{count} × {fault}" for fault, count in sorted(injected.items())))
    return 0 if all(report.verdict.good for report in reports) else 1


async def _run(schedules: list[Schedule], options: argparse.Namespace) -> list[Report]:
    reports = []
    async with running_town() as town:
        for schedule in schedules:
            begun_s = time.monotonic()
            report = await run(
                town,
                schedule,
                customers=options.customers,
                agents=options.agents,
                questions=options.questions,
            )
            say(f"{report}\n{time.monotonic() - begun_s:.1f} s\n")
            reports.append(report)
    return reports


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
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
