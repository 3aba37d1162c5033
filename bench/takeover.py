"""How long a customer waits when a web process goes: `python -m bench.takeover`.

Two real web processes on PostgreSQL and Redis. `kill`: customers are being answered by one process when it gets
kill -9; from then to the first word of the next part, at a tab on the other process and at the customer's own, which
comes back as the widget does. `restart`: both processes are restarted by SIGTERM, one after the other, while customers
ask and read; each customer's time without a line, and what became of the answers. Markdown on standard output.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import signal
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from uuid import uuid4

os.environ.setdefault("SECRET_KEY", "only-for-a-bench-0123456789-0123456789-0123456789")
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatsvc.settings")

import psycopg
from websockets.exceptions import ConnectionClosed

from bench.soak.stack import MODEL, Stack, running
from tests.chaos.line import until_quiet
from tests.chaos.people import Asker
from tests.fakes.upstream.faults import Plan
from tests.fakes.upstream.script import Filler
from tests.support.client import Client, Frame, connected, decode
from tests.support.processes import Web

LONG_ANSWER_TOKENS = 400  # ten seconds
SHORT_ANSWER_TOKENS = 100
# The widget's: half a second, half as much again each time, any part of it.
BACK_OFF_S, BACK_OFF_GROWS = 0.5, 1.5
WAIT_S = 30.0
LOOK_S = 0.01


@dataclass(slots=True)
class Waits:
    """Seconds from the kill."""

    kept: list[float] = field(default_factory=list)  # the part said so far is there to stay, at the other tab
    other: list[float] = field(default_factory=list)  # first word of the next part, at the other tab
    own: list[float] = field(default_factory=list)  # the same at the tab that lost its process


async def killed(stack: Stack, tokens: Sequence[str], rng: random.Random, waits: Waits) -> None:
    """All of these customers are in mid-answer on the first process; then it is gone."""
    first, second = stack.webs
    async with AsyncExitStack() as lines:
        pairs = []
        for token in tokens:
            own = await lines.enter_async_context(connected(f"{first.ws}/ws/customer"))
            other = await lines.enter_async_context(connected(f"{second.ws}/ws/customer"))
            await asyncio.gather(_hello(own, token), _hello(other, token))
            pairs.append((own, other, token))
        await asyncio.gather(*(_in_mid_answer(own) for own, _, _ in pairs))
        await asyncio.sleep(rng.random())
        first.process.kill()
        dead = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for own, other, token in pairs:
                group.create_task(_next_part(other, dead, waits))
                group.create_task(_comes_back(own, second, token, rng, dead, waits.own))


async def _hello(line: Client, token: str) -> Frame:
    await line.send({"type": "hello", "token": token})
    return await line.expect("welcome", deadline_s=WAIT_S)


async def _in_mid_answer(line: Client) -> None:
    conversation = line.received("welcome")[0]["conversation"]
    await line.send(
        {"type": "message.send", "id": uuid4().hex, "conversation": conversation, "text": "How is it made?"}
    )
    for _ in range(3):
        await line.expect("delta", deadline_s=WAIT_S)


async def _next_part(line: Client, dead: float, waits: Waits) -> None:
    await line.expect("event", where=_is_interrupted, deadline_s=WAIT_S)
    waits.kept.append(time.monotonic() - dead)
    started = await line.expect("turn.started", where=lambda frame: frame.get("part") == 2, deadline_s=WAIT_S)
    await line.expect("delta", handle=started["handle"], deadline_s=WAIT_S)
    waits.other.append(time.monotonic() - dead)


def _is_interrupted(frame: Frame) -> bool:
    return (frame.get("message") or {}).get("state") == "interrupted"


async def _comes_back(
    line: Client, web: Web, token: str, rng: random.Random, dead: float, waits: list[float]
) -> None:
    """The socket is seen to end; the client waits as the widget does, and reads on where the next part begins."""
    try:
        while True:
            await line.socket.recv()
    except ConnectionClosed:
        await asyncio.sleep(rng.random() * BACK_OFF_S)
    async with connected(f"{web.ws}/ws/customer") as again:
        welcome = await _hello(again, token)
        live = welcome.get("live")
        if live is None or live.get("part") != 2 or not live.get("text"):
            while True:
                frame = decode(await asyncio.wait_for(again.socket.recv(), WAIT_S))
                if frame["type"] == "turn.started" and frame.get("part") == 2:
                    break
                if frame["type"] == "delta" and live is not None and live.get("part") == 2:
                    break
            if frame["type"] == "turn.started":
                await again.expect("delta", handle=frame["handle"], deadline_s=WAIT_S)
        waits.append(time.monotonic() - dead)


@dataclass(slots=True)
class Restarted:
    """What customers saw of it. `without_line_s` has one entry for each line that was lost."""

    without_line_s: list[float] = field(default_factory=list)
    exits_s: list[float] = field(default_factory=list)
    acknowledged: int = 0
    missing: int = 0
    answers: int = 0
    interrupted: int = 0
    holes: int = 0
    closes: dict[int, int] = field(default_factory=dict)


def rolled(stack: Stack, tokens: Sequence[str], rounds: int) -> Restarted:
    """Each process in turn is ended by SIGTERM and started again, while every customer asks and reads."""
    found = Restarted()
    customers = asyncio.run(_asking_through(stack, tokens, rounds, found))
    for customer in customers:
        found.acknowledged += len(customer.acknowledged)
        for code, count in customer.closes.items():
            found.closes[code] = found.closes.get(code, 0) + count
    _read_again(stack, customers, found)
    return found


async def _asking_through(stack: Stack, tokens: Sequence[str], rounds: int, found: Restarted) -> list[Asker]:
    rng = random.Random(5)
    serving = list(stack.webs)

    def anywhere() -> str:
        return f"127.0.0.1:{rng.choice(serving).port}"

    customers = [
        Asker(random.Random(n), anywhere, name=f"c{n}", token=token) for n, token in enumerate(tokens)
    ]
    lines = [asyncio.create_task(customer.live()) for customer in customers]
    talks = [asyncio.create_task(customer.talk()) for customer in customers]
    watches = [asyncio.create_task(_without_line(customer, found)) for customer in customers]
    try:
        await asyncio.sleep(5.0)
        for web in (web for _ in range(rounds) for web in stack.webs):
            # As a balancer does: what is being restarted gets no new lines.
            serving.remove(web)
            web.signal(signal.SIGTERM)
            begun = time.monotonic()
            await asyncio.to_thread(web.process.wait, 60)
            found.exits_s.append(time.monotonic() - begun)
            web.start()
            await asyncio.to_thread(web.wait_ready)
            serving.append(web)
            await asyncio.sleep(4.0)
        for talk in talks:
            await until_quiet(talk)
        async with asyncio.timeout(60):
            for customer in customers:
                await customer.until(customer.settled)
    finally:
        for task in (*talks, *watches, *lines):
            await until_quiet(task)
    return customers


async def _without_line(customer: Asker, found: Restarted) -> None:
    await customer.until(lambda: customer.ready)
    while True:
        while customer.ready:  # noqa: ASYNC110 - the line tells nobody when it is lost
            await asyncio.sleep(LOOK_S)
        lost = time.monotonic()
        while not customer.ready:  # noqa: ASYNC110
            await asyncio.sleep(LOOK_S)
        found.without_line_s.append(time.monotonic() - lost)


def _read_again(stack: Stack, customers: Sequence[Asker], found: Restarted) -> None:
    names = [customer.holding.conversation for customer in customers]
    with psycopg.connect(stack.deployment.database_url, connect_timeout=10) as connection:
        stored = {
            name
            for (name,) in connection.execute(
                "SELECT client_id FROM conversations_message WHERE conversation_id = ANY(%s)", [names]
            )
        }
        states: dict[str, int] = dict(
            connection.execute(
                "SELECT state, count(*) FROM conversations_message"
                " WHERE conversation_id = ANY(%s) AND author = 'assistant' GROUP BY state",
                [names],
            ).fetchall()
        )
    for customer in customers:
        found.missing += len(customer.acknowledged.keys() & customer.said.keys() - stored)
        found.holes += bool(customer.holding.gap)
    found.answers, found.interrupted = sum(states.values()), states.get("interrupted", 0)


def main() -> int:
    options = _options()
    with running(1, model=MODEL) as stack:
        if "kill" in options.part:
            sys.stdout.write(_kill_table(_kills(stack, options)))
        if "restart" in options.part:
            stack.upstream.always(Plan(script=Filler(tokens=SHORT_ANSWER_TOKENS)))
            tokens = stack.people(1, options.customers, 1).visitors
            sys.stdout.write(_restart_table(rolled(stack, tokens, options.rounds), options.customers))
    return 0


def _kills(stack: Stack, options: argparse.Namespace) -> Waits:
    stack.upstream.always(Plan(script=Filler(tokens=LONG_ANSWER_TOKENS)))
    rng = random.Random(7)
    tokens = iter(stack.people(1, options.kills * options.at_once, 1).visitors)
    waits = Waits()
    for number in range(options.kills):
        asyncio.run(killed(stack, [next(tokens) for _ in range(options.at_once)], rng, waits))
        stack.webs[0].process.wait()
        stack.webs[0].revive()
        time.sleep(3.0)  # until it has seen the other, and been seen
        sys.stderr.write(f"{number + 1} of {options.kills}: {waits.other[-1]:.2f} s\n")
    return waits


def _kill_table(waits: Waits) -> str:
    rows = {
        "the part said so far is kept": waits.kept,
        "first word of the next part, at another tab": waits.other,
        "first word of the next part, at the tab that lost its process": waits.own,
    }
    lines = [
        "",
        f"kill -9 in mid-answer, {len(waits.other)} answers.",
        "",
        "| s after the kill | median | worst |",
        "|---|---:|---:|",
        *(f"| {name} | {_s(values)} |" for name, values in rows.items()),
        "",
    ]
    return "\n".join(lines)


def _restart_table(found: Restarted, customers: int) -> str:
    facts: Iterator[tuple[str, object]] = iter(
        (
            ("customers who ask and read", customers),
            ("restarts", len(found.exits_s)),
            ("s from SIGTERM to the exit, median / worst", _s(found.exits_s, " / ")),
            ("lines lost", f"{len(found.without_line_s)}, closed with {found.closes}"),
            ("s without a line, median / worst", _s(found.without_line_s, " / ")),
            ("messages acknowledged / of them missing", f"{found.acknowledged} / {found.missing}"),
            ("answers / of them interrupted", f"{found.answers} / {found.interrupted}"),
            ("customers with a hole", found.holes),
        )
    )
    return "\nRolling restart.\n\n| | |\n|---|---:|\n" + "".join(
        f"| {name} | {value} |\n" for name, value in facts
    )


def _s(values: Sequence[float], between: str = " | ") -> str:
    if not values:
        return f"-{between}-"
    return f"{statistics.median(values):.2f}{between}{max(values):.2f}"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.takeover", description=__doc__)
    parser.add_argument("--kills", type=int, default=12)
    parser.add_argument("--at-once", type=int, default=3, help="answers running when the process is killed")
    parser.add_argument("--customers", type=int, default=20, help="of the rolling restart")
    parser.add_argument("--rounds", type=int, default=2, help="in which every process is restarted once")
    parser.add_argument("--part", action="append", choices=("kill", "restart"))
    options = parser.parse_args()
    options.part = options.part or ["kill", "restart"]
    return options


if __name__ == "__main__":
    sys.exit(main())
