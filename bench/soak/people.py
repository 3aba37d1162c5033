"""Those who come, ask and are cut off: every way in, every way to end."""

from __future__ import annotations

import asyncio
import json
import random
import socket
import struct
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import cycle
from uuid import uuid4

import httpx
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidMessage
from websockets.typing import Subprotocol

from bench.soak.stack import People
from bench.turn.questions import ROUND
from tests.support.client import Client, Frame
from tests.support.http_line import HttpClient, LineClosed, Transport, http_line
from tests.support.processes import Web

_RESET = struct.pack("ii", 1, 0)  # SO_LINGER with time 0: the peer sees RST, not FIN
_PATIENCE_S = 20.0
_SILENT_S = 75.0
_GONE = (
    OSError,
    TimeoutError,
    AssertionError,
    ConnectionClosed,
    InvalidHandshake,
    InvalidMessage,
    LineClosed,
)


class Way(StrEnum):
    """In over what."""

    JSON = "chatsvc.v1.json"
    MSGPACK = "chatsvc.v1.msgpack"
    STREAM = "stream"
    POLL = "poll"
    AGENT = "agent"


class End(StrEnum):
    """Where and how a visit ends."""

    DONE = "answered, then left"
    STAYS = "answered twice, then left"
    BEFORE_HELLO = "cut before hello"
    BEFORE_WELCOME = "cut before welcome"
    BEFORE_ACK = "cut with the question on its way"
    MID_STREAM = "cut mid-stream"
    RESET = "reset mid-stream"
    STOPPED = "stopped, then cut"
    HALF_OPEN = "silent from mid-stream on"


_ENDS = {
    End.DONE: 3, End.STAYS: 2, End.BEFORE_HELLO: 2, End.BEFORE_WELCOME: 3, End.BEFORE_ACK: 3,
    End.MID_STREAM: 5, End.RESET: 4, End.STOPPED: 2, End.HALF_OPEN: 1,
}  # fmt: skip
_TRANSPORT: dict[Way, Transport] = {Way.STREAM: "stream", Way.POLL: "poll"}
_WAYS = {Way.JSON: 3, Way.MSGPACK: 5, Way.STREAM: 3, Way.POLL: 2, Way.AGENT: 2}


@dataclass(eq=False)
class Crowd:
    """So many at a time, each visit of a way and an end drawn from the seed. One in three was never here before.

    Nobody is here twice at a time: a stop by one would take the answer from the other, who waits for it.
    """

    webs: Sequence[Web]
    people: People
    at_once: int
    seed: int
    visits: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    silent: set[asyncio.Task[None]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._rng = random.Random(self.seed)
        self._fresh = cycle(self.people.visitors)
        self._away = list(self.people.identities)
        self._seen: list[str] = []  # conversations, for agents to look at

    async def come_and_go(self, seconds: float) -> None:
        """Returns when the last visit that began within this time has ended; silent ones may still be held."""
        until = asyncio.get_running_loop().time() + seconds
        async with asyncio.TaskGroup() as group:
            for _ in range(self.at_once):
                group.create_task(self._one_after_the_other(until))

    async def _one_after_the_other(self, until: float) -> None:
        rng = random.Random(self._rng.random())
        while asyncio.get_running_loop().time() < until:
            way = rng.choices(list(_WAYS), list(_WAYS.values()))[0]
            end = rng.choices(list(_ENDS), list(_ENDS.values()))[0]
            self.visits[f"{way.name.lower()}: {end}"] += 1
            try:
                async with asyncio.timeout(_PATIENCE_S):
                    await self._visit(rng, way, end)
            except* (*_GONE, httpx.HTTPError) as failure:
                self.failed[f"{way.name.lower()}: {end}: {_first(failure)}"] += 1
            await asyncio.sleep(rng.random() * 0.5)

    async def _visit(self, rng: random.Random, way: Way, end: End) -> None:
        web = rng.choice(self.webs)
        if way is Way.AGENT:
            await self._agent(rng, web, end)
            return
        with self._somebody(rng) as hello:
            await self._customer(rng, web, way, end, hello)

    async def _customer(self, rng: random.Random, web: Web, way: Way, end: End, hello: Frame) -> None:
        if way in (Way.STREAM, Way.POLL):
            if end not in (End.BEFORE_HELLO, End.BEFORE_WELCOME):
                await self._over_http(rng, web, _TRANSPORT[way], end, hello)
            else:
                await _cut_request(web, _TRANSPORT[way], hello, rng.random() * 0.01)
            return
        async with AsyncExitStack() as stack:
            line = await stack.enter_async_context(_socket(web, "customer", way.value))
            if end is End.BEFORE_HELLO:
                return
            await line.send(hello)
            if end is End.BEFORE_WELCOME:
                await asyncio.sleep(rng.random() * 0.02)
                return
            if not await self._ask(rng, line, end):
                return
            if end is End.RESET:
                _reset(line.socket)
            elif end is End.HALF_OPEN:
                self._keep_silent(stack.pop_all(), line)
            elif end in (End.DONE, End.STAYS):
                await line.socket.close()

    @contextmanager
    def _somebody(self, rng: random.Random) -> Iterator[Frame]:
        """The hello of one who is not here at the moment."""
        if rng.random() < 1 / 3:
            yield {"type": "hello", "token": next(self._fresh)}
            return
        identity = self._away.pop(rng.randrange(len(self._away)))
        try:
            yield {"type": "hello", "identity": identity}
        finally:
            self._away.append(identity)

    async def _ask(self, rng: random.Random, line: Client, end: End) -> bool:
        """From the welcome to where the visit ends; false when nothing is left to be said."""
        welcome = await line.expect("welcome")
        conversation = welcome["conversation"]
        self._seen = [*self._seen[-50:], conversation]
        for _ in range(2 if end is End.STAYS else 1):
            name = uuid4().hex
            question = f"{rng.choice(ROUND)} ({name[:6]})"
            await line.send(
                {"type": "message.send", "id": name, "conversation": conversation, "text": question}
            )
            if end is End.BEFORE_ACK:
                await asyncio.sleep(rng.random() * 0.01)
                return False
            await line.expect("ack", id=name)
            started = await line.expect("turn.started")
            if end in (End.DONE, End.STAYS):
                await line.expect("event", where=_by_assistant)
                continue
            for _ in range(rng.randrange(1, 8)):
                # A busy machine tells a whole answer in few deltas.
                if (await line.expect_one_of("delta", "turn.ended"))["type"] == "turn.ended":
                    return True
            if end is End.STOPPED:
                stop = {
                    "type": "turn.stop",
                    "conversation": conversation,
                    "turn": started["turn"],
                    "painted": 3,
                }
                await line.send(stop)
                await line.expect("turn.ended")
        return True

    def _keep_silent(self, held: AsyncExitStack, line: Client) -> None:
        """Neither reads nor writes from now on, and is then gone without a word."""

        async def silent() -> None:
            async with held:
                await asyncio.sleep(_SILENT_S)
                line.socket.transport.abort()

        task = asyncio.create_task(silent())
        self.silent.add(task)
        task.add_done_callback(self.silent.discard)

    async def _over_http(
        self, rng: random.Random, web: Web, transport: Transport, end: End, hello: Frame
    ) -> None:
        async with AsyncExitStack() as stack:
            # POSTs may come to another process than the one that holds the line.
            posts_to = rng.choice(self.webs).url
            line = await stack.enter_async_context(
                http_line(web.url, "customer", transport, posts_to=posts_to, hello=hello)
            )
            with suppress(LineClosed):
                await self._ask(rng, line, end)
            if end is End.HALF_OPEN and transport == "stream":
                self._stop_reading(stack.pop_all(), line)

    def _stop_reading(self, held: AsyncExitStack, line: HttpClient) -> None:
        async def silent() -> None:
            async with held:
                await asyncio.sleep(_SILENT_S)

        task = asyncio.create_task(silent())
        self.silent.add(task)
        task.add_done_callback(self.silent.discard)

    async def _agent(self, rng: random.Random, web: Web, end: End) -> None:
        async with _socket(web, "agent", Way.MSGPACK.value, cookie=rng.choice(self.people.agents)) as line:
            if end is End.BEFORE_HELLO:
                return
            await line.send({"type": "hello"})
            if end is End.BEFORE_WELCOME:
                return
            inbox = await line.expect("inbox")
            rows = [row["conversation"] for row in inbox["rows"]][:20]
            for conversation in rng.sample(rows, min(3, len(rows))):
                await line.send({"type": "conversation.watch", "conversation": conversation})
                if end is End.BEFORE_ACK:
                    return
                await line.expect_one_of("watching", "refused")
                await asyncio.sleep(rng.random())
            if end is End.RESET:
                _reset(line.socket)
            elif end in (End.DONE, End.STAYS):
                await line.socket.close()


@asynccontextmanager
async def _socket(web: Web, kind: str, subprotocol: str, cookie: str = "") -> AsyncIterator[Client]:
    """Cut at the end of the block without a word, unless it was closed before."""
    socket_ = await connect(
        f"{web.ws}/ws/{kind}",
        subprotocols=[Subprotocol(subprotocol)],
        additional_headers={"Cookie": cookie} if cookie else {},
        max_size=None,
        ping_interval=None,
        close_timeout=1.0,
        proxy=None,
    )
    try:
        yield Client(socket_)
    finally:
        socket_.transport.abort()
        await socket_.wait_closed()


def _reset(connection: ClientConnection) -> None:
    raw = connection.transport.get_extra_info("socket")
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)


async def _cut_request(web: Web, transport: Transport, hello: Frame, after_s: float) -> None:
    """Asks for a line and is gone before the answer, half of its body said or all of it."""
    body = json.dumps(hello).encode()
    head = (
        f"POST /api/v1/{transport}/customer HTTP/1.1\r\nHost: 127.0.0.1:{web.port}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    _, writer = await asyncio.open_connection("127.0.0.1", web.port)
    writer.write(head.encode() + body)
    await writer.drain()
    await asyncio.sleep(after_s)
    writer.transport.abort()


def _by_assistant(frame: Frame) -> bool:
    return frame.get("message") is not None and frame["message"]["author"] == "assistant"


def _first(group: BaseExceptionGroup[BaseException]) -> str:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__} {error}"
