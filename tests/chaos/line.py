"""A client's line: connects, says hello, keeps it alive, comes back. What is said on it is the owner's business."""

from __future__ import annotations

import asyncio
import json
import random
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar

from tests.chaos.ways import Caller, Ended, Socket, Way

Frame = dict[str, Any]

_OPEN_S = 4.0
_PULSE_S = 1.0  # the schedules last seconds, not minutes: the heartbeat is as much shorter
_SILENCE_S = 6.0
_HOLE_S = 0.1
_FIRST_DELAY_S = 0.1
_LONGEST_DELAY_S = 2.0
_BROKEN = (Ended, TimeoutError)


@dataclass(eq=False)
class Line(ABC):
    """One person's connection. `host` is asked before each attempt: any process will do."""

    rng: random.Random
    host: Callable[[], str]
    way: type[Way] = Socket
    headers: dict[str, str] = field(default_factory=dict)
    outbox: dict[str, Frame] = field(default_factory=dict)  # by id, until answered
    connections: int = 0
    closes: dict[int, int] = field(default_factory=dict)
    welcomed_at_s: float = 0.0
    _line: Way | None = None
    _asked: asyncio.TimerHandle | None = None

    kind: ClassVar[str]  # as in the addresses

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
        return self._line is not None and self.welcomed_at_s > 0

    def post(self, frame: Frame) -> None:
        """Keeps it until it is answered."""
        self.outbox[frame["id"]] = frame
        self.tell(frame)

    def tell(self, frame: Frame) -> None:
        """Now, or not at all."""
        if self._line is not None and self.ready:
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
                caller = Caller(self.kind, self.host, self.headers, self.rng)
                line = await self.way.open(caller, json.dumps(self.hello()))
        except _BROKEN:
            return False
        self.connections += 1
        self._line = line
        jobs = [asyncio.create_task(job) for job in (self._read(line), self._write(line), self._beat())]
        try:
            await asyncio.wait(jobs, return_when=asyncio.FIRST_COMPLETED)
        finally:
            welcomed = self.welcomed_at_s > 0
            self._line, self.welcomed_at_s = None, 0.0
            if self._asked:
                self._asked.cancel()
                self._asked = None
            for job in jobs:
                job.cancel()
            results = await asyncio.gather(*jobs, return_exceptions=True)
            await line.drop()
        for result in results:
            if isinstance(result, Ended):
                self.closes[result.code] = self.closes.get(result.code, 0) + 1
            elif isinstance(result, Exception) and not isinstance(result, _BROKEN):
                raise result
        return welcomed

    async def _read(self, line: Way) -> None:
        loop = asyncio.get_running_loop()
        while True:
            async with asyncio.timeout(_SILENCE_S):
                frame = await line.hear()
            if frame["type"] == "refused" and frame.get("of") == "hello":
                return
            self.heard(frame)
            if not self.welcomed_at_s and frame["type"] in ("welcome", "inbox"):
                self.welcomed_at_s = loop.time()
                self.greeted()
            self._look()

    async def _write(self, line: Way) -> None:
        while True:
            frames = [await self._outgoing.get()]
            while not self._outgoing.empty():
                frames.append(self._outgoing.get_nowait())
            async with asyncio.timeout(_SILENCE_S):
                await line.say(frames)

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(_PULSE_S)
            self.tell({"type": "ping"})

    def _look(self) -> None:
        """Frames may overtake each other: a hole is asked for only when it stays."""
        if self._asked is None and self.missing() is not None:
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
