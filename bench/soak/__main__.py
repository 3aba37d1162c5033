"""`python -m bench.soak`: connect, ask, stream, be cut, for twenty minutes; then everything must be as it was.

Two web processes, a worker, Redis, PostgreSQL, a shop and a model over TLS, all real. Waves of clients over WebSocket,
stream and poll come and are cut at random places; between the waves, with nobody there, every figure is read. Prints
the base line, the most under load, the end, the slope a minute and a verdict; exits with 1 where something leaks.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import sys
import time
from pathlib import Path

os.environ.setdefault("SECRET_KEY", "only-for-a-bench-0123456789-0123456789-0123456789")
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatsvc.settings")

from bench.soak.figures import Figures, look
from bench.soak.people import Crowd
from bench.soak.report import Soak, write
from bench.soak.stack import Stack, defects, running
from bench.soak.verdict import judge

WAVE_S = 30.0
QUIET_S = 15.0
# A client over polls is given up after 75 s, a silent one was held as long.
LAST_REST_S = 100.0
WARM_UP = 0.5  # of the run: caches with a bound fill, and of twenty minutes the contexts' ten pass
CUSTOMERS = 200
VISITORS_A_MINUTE = 150
_AT_REST = ("turns running", "model server: requests open", "turns live in the database")


def main() -> int:
    options = _options()
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(2**31)
    sys.stderr.write(f"seed {seed}\n")
    with running(CUSTOMERS) as stack:
        people = stack.people(CUSTOMERS, max(50, int(options.minutes * VISITORS_A_MINUTE)), agents=6)
        crowd = Crowd(stack.webs, people, options.at_once, seed)
        before = look(stack)
        rest, load = asyncio.run(_soak(stack, crowd, options.minutes))
        errors = defects(stack)
    warm = max(1, int(len(rest) * WARM_UP))
    verdicts = judge(before, rest[warm:], load)
    soak = Soak(options.minutes, options.at_once, seed, crowd.visits, crowd.failed, verdicts, rest, errors)
    write(Path(options.results), soak)
    return 1 if any(verdict.leaks for verdict in verdicts) else 0


async def _soak(
    stack: Stack, crowd: Crowd, minutes: float
) -> tuple[list[tuple[float, Figures]], list[Figures]]:
    begun = time.monotonic()
    rest: list[tuple[float, Figures]] = []
    load: list[Figures] = []
    while (time.monotonic() - begun) + WAVE_S + QUIET_S + LAST_REST_S < minutes * 60 or len(rest) < 3:
        async with asyncio.TaskGroup() as group:
            group.create_task(crowd.come_and_go(WAVE_S))
            load.append(await _looked_at(stack, after_s=WAVE_S * 0.7))
        figures = await _at_rest(stack)
        rest.append(((time.monotonic() - begun) / 60, figures))
        sys.stderr.write(f"{rest[-1][0]:5.1f} min, {sum(crowd.visits.values())} visits, {_short(figures)}\n")
    if crowd.silent:
        await asyncio.wait(crowd.silent)
    rest.append(((time.monotonic() - begun) / 60, await _looked_at(stack, after_s=LAST_REST_S)))
    return rest, load


async def _at_rest(stack: Stack) -> Figures:
    """Once the turns have ended, or after the longest one may take to be noticed."""
    for _ in range(int(QUIET_S / 3)):
        figures = await _looked_at(stack, after_s=3.0)
        if not any(figures[name] for name in _AT_REST):
            break
    return figures


async def _looked_at(stack: Stack, after_s: float) -> Figures:
    await asyncio.sleep(after_s)
    return await asyncio.to_thread(look, stack)


def _short(figures: Figures) -> str:
    shown = (
        "web: RSS MiB",
        "contexts MiB",
        "asyncio tasks",
        "web: file descriptors",
        "authenticated clients",
    )
    return ", ".join(f"{name} {figures[name]:.1f}" for name in shown)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__)
    parser.add_argument(
        "--minutes", type=float, default=20.0, help="with fewer, caches that still fill may look like a leak"
    )
    parser.add_argument("--at-once", type=int, default=16, help="clients that come and go side by side")
    parser.add_argument("--seed", type=int, help="a new one where none is given")
    parser.add_argument("--results", default="bench/results")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
