"""`python -m tests.chaos`: fresh seeds, or those named; prints each schedule and what came of it.

A schedule that fails is made smaller and printed again. With `--broken` the product is then broken on purpose, and the
run succeeds only if that is found out.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path

import tests.environment  # noqa: F401 - settings of a test, before Django's are read
from tests.chaos.broken import Way
from tests.chaos.holding import Contradiction
from tests.chaos.judge import Verdict
from tests.chaos.post import deliver
from tests.chaos.report import Report, Run
from tests.chaos.schedule import Fault, Injection, Schedule, draw
from tests.chaos.town import Town, running_town
from tests.chaos.trial import Crowd, run

_SHRINK_S = 120.0  # after it no smaller schedule is begun
_SHORT_SETTLE_S = 15.0  # a broken build need not be waited for
# What each broken build stumbles over.
_TELLING = {
    Way.NO_GAP_FETCH: (
        Injection(2.0, Fault.RESET, 0, 0.0),
        Injection(2.5, Fault.LOSE_DOWN, 1, 2.0),
        Injection(3.5, Fault.RESET, 0, 0.0),
    ),
    Way.NO_FENCE: (Injection(2.5, Fault.FREEZE_WEB, 0, 10.0),),
    Way.PUBLISH_BEFORE_COMMIT: (
        Injection(2.0, Fault.RESTART_POSTGRES, 0, 1.0),
        Injection(4.0, Fault.KILL_WEB, 0, 1.0),
        Injection(4.5, Fault.KILL_WEB, 1, 1.0),
    ),
}
_TRIES = 5  # schedules, at most


def main() -> int:
    options = _options()
    return 0 if asyncio.run(_all(options)) else 1


async def _all(options: argparse.Namespace) -> bool:
    ways = [Way(name) for name in options.broken or (Way if options.broken is not None else ())]
    count = options.schedules if options.schedules is not None else 0 if ways else 20
    seeds = options.seed or [random.SystemRandom().randrange(1_000_000) for _ in range(count)]
    good = True
    task = asyncio.current_task()
    assert task
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)  # nothing is left behind
    async with running_town() as town:
        if seeds:
            good = await _prove(town, draw(seeds, options.faults, _kinds(options)), options)
        for way in ways:
            good = await _find_out(town, way, options) and good
    return good


async def _prove(town: Town, schedules: list[Schedule], options: argparse.Namespace) -> bool:
    crowd = _crowd(options)
    reports = []
    for schedule in schedules:
        reports.append(await _tried(town, schedule, crowd))
        if not reports[-1].verdict.good:
            await _shrink(town, schedule, crowd)
    done = Run(reports, await deliver(town, reports))
    say("\n".join(done.post.verdict.cases[:12]))
    say(done.markdown())
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "chaos.md").write_text(done.markdown() + "\n", encoding="utf-8")
        (options.out / "chaos.json").write_text(done.json() + "\n", encoding="utf-8")
    rare = [name for name, count in done.injected(_kinds(options)).items() if count < options.floor]
    say(f"\n{len(reports)} schedules, {len(done.failed)} failed: {done.failed or 'none'}\n")
    if rare:
        say(f"fewer than {options.floor} times: {', '.join(rare)}")
    return done.good and not rare


async def _find_out(town: Town, way: Way, options: argparse.Namespace) -> bool:
    """Whether the journals give the broken build away. A missing answer alone would not: that may be a slow machine."""
    await town.rebuild(("-m", "tests.chaos.broken", way.value))
    crowd = replace(_crowd(options), settle_s=_SHORT_SETTLE_S)
    for number in range(1, _TRIES + 1):
        seed = random.SystemRandom().randrange(1_000_000)
        report = await _tried(town, Schedule(seed, _TELLING[way]), crowd)
        if report.verdict.wrong:
            say(f"{way.value}: found out by schedule {number}\n")
            return True
    say(f"{way.value}: not found out by {_TRIES} schedules\n")
    return False


async def _shrink(town: Town, schedule: Schedule, crowd: Crowd) -> None:
    """Leaves out one fault after the other for as long as it still fails; each is tried once, within a time."""
    until_s = time.monotonic() + _SHRINK_S
    for injection in schedule.injections:
        if time.monotonic() > until_s:
            break
        smaller = schedule.without(injection)
        if smaller.injections and not (await _tried(town, smaller, crowd)).verdict.good:
            schedule = smaller
    say(f"the least that was seen to fail:\n{schedule}\n")


async def _tried(town: Town, schedule: Schedule, crowd: Crowd) -> Report:
    begun_s = time.monotonic()
    try:
        report = await run(town, schedule, crowd)
    except Contradiction as contradiction:
        report = Report(schedule, Verdict(strange=[str(contradiction)]))
    except BaseException:
        say(f"{schedule}\nended by:\n")
        raise
    report.seconds = time.monotonic() - begun_s
    say(f"{report}\n")
    return report


def _kinds(options: argparse.Namespace) -> tuple[Fault, ...]:
    return tuple(Fault[name] for name in options.fault) if options.fault else tuple(Fault)


def _crowd(options: argparse.Namespace) -> Crowd:
    return Crowd(options.customers, options.agents, options.questions)


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--schedules", type=int, help="20; none with --broken alone")
    parser.add_argument("--seed", type=int, action="append", help="instead of fresh ones; may be repeated")
    parser.add_argument("--faults", type=int, default=6, help="injections in each schedule")
    parser.add_argument(
        "--fault", action="append", choices=[fault.name for fault in Fault], help="only these"
    )
    parser.add_argument("--customers", type=int, default=200)
    parser.add_argument("--agents", type=int, default=10)
    parser.add_argument("--questions", type=int, default=1, help="of each customer")
    parser.add_argument("--floor", type=int, default=0, help="fail unless every kind was injected so often")
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="write the figures there, as Markdown and JSON"
    )
    parser.add_argument(
        "--broken",
        nargs="*",
        choices=[way.value for way in Way],
        help="afterwards break the product this way, or every way where none is named; each must be found out",
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
