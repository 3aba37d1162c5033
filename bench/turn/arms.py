"""The arms of a run: what each did, batch by batch, with nothing else of the run going on meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from bench.turn.clients import Client, Credentials, Modern, Ours, Timing, Traditional
from bench.turn.questions import ROUND, signed
from bench.turn.stack import Server, Stack
from tests.fakes.upstream.control_http import RemoteUpstream
from tests.fakes.upstream.faults import Plan
from tests.fakes.upstream.ledger import Seen
from tests.fakes.upstream.script import Filler

Visit = Sequence[str]  # the questions of one conversation, in order


@dataclass(slots=True)
class Arm:
    """What one path did. `turns` holds, for each conversation, its timings in order."""

    name: str
    turns: list[list[Timing]] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    connections: int = 0
    cpu_s: float = 0.0

    @property
    def timings(self) -> list[Timing]:
        return [timing for turns in self.turns for timing in turns]


@dataclass(frozen=True, slots=True)
class Path:
    """How an arm is driven: its client, and the processes whose work is counted."""

    name: str
    server: Server
    client: Callable[[str, Credentials], Client]


def rival_paths(stack: Stack) -> tuple[Path, Path]:
    """(a) and (b)."""
    return (
        Path("a traditional", stack.rivals, Traditional),
        Path("b modern", stack.rivals, Modern),
    )


def our_path(stack: Stack, lacking: str = "") -> Path:
    """(c), or (c) without one mechanism."""
    return Path(f"without {lacking}" if lacking else "c chatsvc", stack.product(lacking), Ours)


CROWD = 20
CROWD_ANSWER_TOKENS = 150
CROWD_TOKENS_PER_S = 25.0


@dataclass(frozen=True, slots=True)
class Crowd:
    """Conversations of the same path that are answered, one long answer after the other, while others are measured.

    Their model server is their own.
    """

    upstream: RemoteUpstream
    people: Iterator[Credentials]

    @asynccontextmanager
    async def streaming(self, path: Path) -> AsyncIterator[None]:
        """All of them are being answered when this is entered, and none once it is left."""
        answer = Plan(script=Filler(tokens=CROWD_ANSWER_TOKENS), tokens_per_s=CROWD_TOKENS_PER_S)
        await asyncio.to_thread(self.upstream.always, answer)
        async with AsyncExitStack() as sockets:
            clients = [
                await sockets.enter_async_context(path.client(path.server.host, next(self.people)))
                for _ in range(CROWD)
            ]
            tasks = [asyncio.create_task(_ask_on(client, who)) for who, client in enumerate(clients)]
            try:
                await self.upstream.until("requests_open", CROWD)
                yield
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks)
            for task in tasks:
                if not task.cancelled():
                    task.result()
        await self.upstream.until("requests_open", 0, exactly=True)


@dataclass(frozen=True, slots=True)
class Run:
    """Every path has the same conversations, `at_once` at a time, one path after the other, round and round.

    In a crowd those of a batch follow one another.
    """

    stack: Stack
    visits: Sequence[Visit]
    at_once: int
    answer_tokens: int
    crowd: Crowd | None = None

    def of(
        self, paths: Sequence[Path], people: Iterator[Credentials], say: Callable[[str], object]
    ) -> list[Arm]:
        """One arm a path. Raises `RuntimeError` when a turn ends as it should not."""
        arms = [Arm(path.name) for path in paths]
        for start in range(0, len(self.visits), self.at_once):
            batch = self.visits[start : start + self.at_once]
            for path, arm in zip(paths, arms, strict=True):
                clients = [path.client(path.server.host, next(people)) for _ in batch]
                asyncio.run(self._batch(path, arm, clients, batch))
            say(f"{min(start + self.at_once, len(self.visits))} of {len(self.visits)} conversations")
        return arms

    async def _batch(self, path: Path, arm: Arm, clients: Sequence[Client], visits: Sequence[Visit]) -> None:
        """What the model saw and the processor did meanwhile belongs to this arm, except beside a crowd."""
        await asyncio.to_thread(self.stack.renew_model, self.answer_tokens)
        before_s = path.server.cpu_s()
        if self.crowd is None:
            arm.turns += await asyncio.gather(*map(_converse, clients, visits))
            arm.cpu_s += path.server.cpu_s() - before_s
        else:
            async with self.crowd.streaming(path):
                arm.turns += [
                    await _converse(client, visit) for client, visit in zip(clients, visits, strict=True)
                ]
        requests = await asyncio.to_thread(self.stack.upstream.requests)
        arm.seen += [seen for seen in requests if seen.path.endswith("/chat/completions")]
        arm.connections += (await asyncio.to_thread(self.stack.upstream.counts)).connections_opened


async def _converse(client: Client, visit: Visit) -> list[Timing]:
    async with client:
        return [await client.ask(question) for question in visit]


async def _ask_on(client: Client, who: int) -> None:
    await asyncio.sleep(who / CROWD * CROWD_ANSWER_TOKENS / CROWD_TOKENS_PER_S)  # not all of them at once
    number = 100_000 + who * 1_000  # nobody else's words
    while True:
        await client.ask(signed(ROUND[number % len(ROUND)], number))
        number += 1
