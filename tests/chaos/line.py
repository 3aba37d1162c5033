"""A client's line: connects, says hello, keeps it alive, comes back. What is said on it is the owner's business."""

from __future__ import annotations

import asyncio
import json
import random
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidMessage
from websockets.typing import Subprotocol

from tests.support.client import decode

Frame = dict[str, Any]

_OPEN_S = 4.0
_PULSE_S = 1.0  # the schedules last seconds, not minutes: the heartbeat is as much shorter
_SILENCE_S = 6.0
_HOLE_S = 0.1
_FIRST_DELAY_S = 0.1
_LONGEST_DELAY_S = 2.0
_SUBPROTOCOLS = ("chatsvc.v1.msgpack", "chatsvc.v1.json")
_BROKEN = (OSError, TimeoutError, ConnectionClosed, InvalidHandshake, InvalidMessage, EOFError)


@dataclass(eq=False)
class Line(ABC):
    """One person's connection. `address` is asked before each attempt: any process will do."""

    rng: random.Random
    address: Callable[[], str]
    headers: dict[str, str] = field(default_factory=dict)
    outbox: dict[str, Frame] = field(default_factory=dict)  # by id, until answered
    connections: int = 0
    closes: dict[int, int] = field(default_factory=dict)
    welcomed_at_s: float = 0.0
    fetches: bool = True  # a client that never asks for what it misses, to see the judge notice
    _socket: ClientConnection | None = None
    _asked: asyncio.TimerHandle | None = None

    @abstractmethod
    def hello(self) -> Frame:
        """The first frame, with what to resume from."""

    @abstractmethod
    def heard(self, frame: Frame) -> None:
        """Every frame, in order of arrival."""

    @abstractmethod
    def missing(self) -> Frame | None:
        """The frame that asks for what is known to be missing."""

    def greeted(self) -> None:
        """The server has answered hello; what was not answered before goes out again."""
        for frame in list(self.outbox.values()):
            self.tell(frame)

    @property
    def ready(self) -> bool:
        return self._socket is not None and self.welcomed_at_s > 0

    def post(self, frame: Frame) -> None:
        """Keeps it until it is answered."""
        self.outbox[frame["id"]] = frame
        self.tell(frame)

    def tell(self, frame: Frame) -> None:
        """Now, or not at all."""
        if self._socket is not None and self.ready:
            self._outgoing.put_nowait(json.dumps(frame))

    async def live(self) -> None:
        """Until cancelled."""
        attempt = 0
        while True:
            welcomed = await self._connection()
            attempt = 0 if welcomed else attempt + 1
            ceiling = min(_LONGEST_DELAY_S, _FIRST_DELAY_S * 1.5**attempt)
            await asyncio.sleep(self.rng.random() * ceiling)

    async def _connection(self) -> bool:
        self.welcomed_at_s = 0.0
        self._outgoing: asyncio.Queue[str] = asyncio.Queue()
        try:
            async with asyncio.timeout(_OPEN_S):
                socket = await connect(
                    self.address(),
                    subprotocols=[Subprotocol(self.rng.choice(_SUBPROTOCOLS))],
                    additional_headers=self.headers,
                    max_size=None,
                    ping_interval=None,
                    close_timeout=0.2,
                    open_timeout=None,
                    proxy=None,
                )
        except _BROKEN:
            return False
        self.connections += 1
        self._socket = socket
        jobs = [asyncio.create_task(job) for job in (self._read(socket), self._write(socket), self._beat())]
        try:
            await asyncio.wait(jobs, return_when=asyncio.FIRST_COMPLETED)
        finally:
            welcomed = self.welcomed_at_s > 0
            self._socket, self.welcomed_at_s = None, 0.0
            if self._asked:
                self._asked.cancel()
                self._asked = None
            for job in jobs:
                job.cancel()
            results = await asyncio.gather(*jobs, return_exceptions=True)
            socket.transport.abort()
        for result in results:
            if isinstance(result, Exception) and not isinstance(result, _BROKEN):
                raise result
        if socket.close_code:
            self.closes[socket.close_code] = self.closes.get(socket.close_code, 0) + 1
        return welcomed

    async def _read(self, socket: ClientConnection) -> None:
        await socket.send(json.dumps(self.hello()))
        loop = asyncio.get_running_loop()
        while True:
            async with asyncio.timeout(_SILENCE_S):
                frame = decode(await socket.recv())
            if frame["type"] == "refused" and frame.get("of") == "hello":
                return
            self.heard(frame)
            if not self.welcomed_at_s and frame["type"] in ("welcome", "inbox"):
                self.welcomed_at_s = loop.time()
                self.greeted()
            self._look()

    async def _write(self, socket: ClientConnection) -> None:
        while True:
            text = await self._outgoing.get()
            async with asyncio.timeout(_SILENCE_S):
                await socket.send(text)

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(_PULSE_S)
            self.tell({"type": "ping"})

    def _look(self) -> None:
        """Frames may overtake each other: a hole is asked for only when it stays."""
        if self.fetches and self._asked is None and self.missing() is not None:
            self._asked = asyncio.get_running_loop().call_later(_HOLE_S, self._ask)

    def _ask(self) -> None:
        self._asked = None
        if frame := self.missing():
            self.tell(frame)
            # The answer may be lost too: looks again while the hole stays.
            self._asked = asyncio.get_running_loop().call_later(1.0, self._ask)


async def until_quiet(task: asyncio.Task[None]) -> None:
    """Cancels, and raises what it had raised before."""
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
