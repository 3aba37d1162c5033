"""How a crowd comes back: `python -m bench.crowd`.

Two real web processes on PostgreSQL and Redis. So many customers have their line at one of them when it gets kill -9,
and come to the other as the widget does, who finds the conversation there. Meanwhile one who was there all along asks
for a list now and then. Markdown on standard output; clients and servers share the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import statistics
import sys
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

os.environ.setdefault("SECRET_KEY", "only-for-a-bench-0123456789-0123456789-0123456789")
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatsvc.settings")

from websockets.exceptions import ConnectionClosed, InvalidHandshake

from bench.soak.stack import MODEL, Stack, running
from tests.support.client import Client, Frame, connected
from tests.support.processes import Web

# The widget's: half a second, half as much again each time, any part of it; a hello is answered within 15 s.
BACK_OFF_S, BACK_OFF_GROWS, LONGEST_BACK_OFF_S = 0.5, 1.5, 30.0
ANSWER_S = 15.0
COMING_AT_ONCE = 40  # before the kill
ASK_INTERVAL_S = 0.6


@dataclass(slots=True)
class Crowd:
    """Seconds. `refused` and `given_up` count attempts."""

    killed: float = 0.0  # monotonic
    back: list[float] = field(default_factory=list)  # since the kill
    refused: int = 0
    given_up: int = 0
    asked: list[float] = field(default_factory=list)  # until the one who was there had an answer

    async def comes_back(
        self, lines: AsyncExitStack, web: Web, hello: Frame, lost: Client, rng: random.Random
    ) -> None:
        """One of them, whose line is about to be lost."""
        await lost.socket.wait_closed()
        ceiling_s = BACK_OFF_S
        while True:
            await asyncio.sleep(rng.random() * ceiling_s)
            ceiling_s = min(LONGEST_BACK_OFF_S, ceiling_s * BACK_OFF_GROWS)
            try:
                async with asyncio.timeout(ANSWER_S):
                    line = await lines.enter_async_context(connected(f"{web.ws}/ws/customer"))
                    answer = await _hello(line, hello)
            except (AssertionError, ConnectionClosed, InvalidHandshake, OSError):
                self.given_up += 1
                continue
            if answer["type"] == "welcome":
                self.back.append(time.monotonic() - self.killed)
                return
            self.refused += 1


async def came_back(stack: Stack, tokens: Sequence[str]) -> Crowd:
    """All but the last, who is at the second process already."""
    first, second = stack.webs
    *many, one = tokens
    crowd, room = Crowd(), asyncio.Semaphore(COMING_AT_ONCE)
    async with AsyncExitStack() as lines:

        async def come(token: str) -> tuple[Client, Frame]:
            async with room:
                line = await lines.enter_async_context(connected(f"{first.ws}/ws/customer"))
                return line, await _hello(line, {"type": "hello", "token": token})

        there = await asyncio.gather(*(come(token) for token in many))
        asking = asyncio.create_task(_asks(second, one, crowd))
        await asyncio.sleep(2 * ASK_INTERVAL_S)
        crowd.asked.clear()
        first.process.kill()
        crowd.killed = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for number, (token, (line, welcome)) in enumerate(zip(many, there, strict=True)):
                rng = random.Random(number)
                group.create_task(crowd.comes_back(lines, second, _resuming(token, welcome), line, rng))
        asking.cancel()
    return crowd


async def _hello(line: Client, hello: Frame) -> Frame:
    await line.send(hello)
    return await line.expect_one_of("welcome", "refused", deadline_s=ANSWER_S)


def _resuming(token: str, welcome: Frame) -> Frame:
    page = welcome["page"]
    held = {"conversation": welcome["conversation"], "epoch": page["epoch"], "seq": page["upto"]}
    return {"type": "hello", "token": token, **held}


async def _asks(web: Web, token: str, crowd: Crowd) -> None:
    async with connected(f"{web.ws}/ws/customer") as line:
        await _hello(line, {"type": "hello", "token": token})
        while True:
            asked = time.monotonic()
            await line.send({"type": "conversation.list"})
            await line.expect("conversations", deadline_s=60)
            crowd.asked.append(time.monotonic() - asked)
            await asyncio.sleep(ASK_INTERVAL_S)


def table(crowd: Crowd) -> str:
    """The figures as Markdown."""
    back = sorted(crowd.back)
    tenth = back[len(back) // 10]
    rows = (
        ("customers who came back", len(back)),
        (
            "s until a tenth / half / all were",
            f"{tenth:.1f} / {statistics.median(back):.1f} / {back[-1]:.1f}",
        ),
        ("told to come again", crowd.refused),
        ("gave up after 15 s", crowd.given_up),
        (
            "s until whoever was there had an answer, median / worst",
            f"{statistics.median(crowd.asked):.2f} / {max(crowd.asked):.2f}",
        ),
    )
    return "| | |\n|---|---:|\n" + "".join(f"| {name} | {value} |\n" for name, value in rows)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.crowd", description=__doc__)
    parser.add_argument("--customers", type=int, default=1_000)
    options = parser.parse_args()
    with running(1, model=MODEL) as stack:
        tokens = stack.people(1, options.customers + 1, 1).visitors
        sys.stdout.write(table(asyncio.run(came_back(stack, tokens))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
