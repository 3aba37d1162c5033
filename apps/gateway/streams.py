"""Lines of clients without a WebSocket: each is a peer with an id, frames to carry out, and a deadline.

How a request looks is said in `http.py`. A line lives in the process that opened it; its POSTs may come to any.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any

import msgspec

from apps.gateway.agent import AgentPeer
from apps.gateway.connections import Connections
from apps.gateway.customer import CustomerPeer
from apps.gateway.events import closed_event, frame_event, opened_event
from apps.gateway.outbound import Close
from apps.gateway.peer import Peer
from apps.stores.ids import CHARACTERS, new_secret
from apps.telemetry import instruments
from apps.wire.protocol import CloseCode
from apps.wire.publish import Encoded

logger = logging.getLogger(__name__)

PEERS: dict[str, type[Peer]] = {peer.kind: peer for peer in (CustomerPeer, AgentPeer)}
# Lines of one process; a client that finds it full tries again later, perhaps elsewhere.
LINES = 5_000
# As a socket's: what may wait to be carried out.
WAITING_FRAMES = 200
WAITING_BYTES = 4 * 1024 * 1024
BATCH_FRAMES = 100
POLL_WAIT_S = 25.0
# Between two polls. Browsers let a hidden page do something once a minute; who is later is gone.
POLL_GAP_S = 75.0
GONE = 1001
INTERNAL_ERROR = 1011


class Errand(msgspec.Struct, frozen=True):
    """What a POST asks of a line: to carry out frames, or (`wait_s` is given) to hand out what is queued."""

    line: str
    kind: str
    number: int
    cookie: str = ""
    frames: str = ""
    wait_s: float | None = None


class Outcome(msgspec.Struct, frozen=True):
    """The HTTP status of an errand, and for a poll its events."""

    status: int
    body: str = ""


NO_SUCH_LINE = Outcome(404)
DONE = Outcome(204)


class Line:
    """One client's line. Only whoever opened it knows its id."""

    def __init__(self, line: str, peer: Peer, transport: str, on_end: Callable[[Line], None]) -> None:
        self.id = line
        self.peer = peer
        self.transport = transport
        self._on_end = on_end
        self._frames: asyncio.Queue[tuple[str, float]] = asyncio.Queue(WAITING_FRAMES)
        self._waiting_bytes = 0
        self._posted = 0
        self._polled = Outcome(200)
        self._polls = 0
        self._polling = asyncio.Lock()
        self._gap: asyncio.TimerHandle | None = None
        self._ended = False
        self._carrying = peer.office.runtime.spawn(self._carry_out(), "line")
        peer.opened()

    def post(self, number: int, frames: str) -> None:
        """Queues frames, one a line of text. A number that came before is a repeat and changes nothing."""
        if number > self._posted:
            self._posted = number
            self.say(frames)

    def say(self, frames: str) -> None:
        """Queues frames that came with the opening."""
        arrived = time.monotonic()
        for text in filter(None, frames.split("\n")):
            if self._frames.full() or self._waiting_bytes + len(text) > WAITING_BYTES:
                self.peer.hang_up(CloseCode.SLOW_DOWN, "slow down")
                return
            self._waiting_bytes += len(text)
            self._frames.put_nowait((text, arrived))

    async def _carry_out(self) -> None:
        while True:
            text, arrived = await self._frames.get()
            self._waiting_bytes -= len(text)
            try:
                await self.peer.hear(text, arrived)
            except Exception:
                # The boundary of a connection, as a socket's is its server's.
                logger.exception("a frame could not be carried out")
                self.peer.hang_up(INTERNAL_ERROR, "internal error")

    async def events(self, wait_s: float) -> tuple[str, bool]:
        """Waits for the first thing to tell, takes what else is queued; "" after `wait_s`. And whether it ended."""
        try:
            async with asyncio.timeout(wait_s):
                item: Encoded | Close | None = await self.peer.next()
        except TimeoutError:
            return "", False
        told = []
        while item is not None:
            if isinstance(item, Close):
                told.append(closed_event(item.code, item.reason))
                return "".join(told), True
            told.append(frame_event(item.text))
            item = self.peer.next_now() if len(told) < BATCH_FRAMES else None
        return "".join(told), False

    def last_word(self) -> str:
        """The close that waits, if one does."""
        item = self.peer.next_now()
        return closed_event(item.code, item.reason) if isinstance(item, Close) else ""

    async def poll(self, number: int, wait_s: float) -> Outcome:
        """What is queued, at once or when it comes. The last number again gets the last answer again."""
        async with self._polling:
            if number <= self._polls:
                return self._polled if number == self._polls else NO_SUCH_LINE
            self._stop_gap()
            self.peer.heard()
            try:
                body, ended = await self.events(min(wait_s, POLL_WAIT_S))
            finally:
                self._gap = asyncio.get_running_loop().call_later(POLL_GAP_S, self.end)
            first = opened_event(self.id) if number == 1 else ""
            self._polls, self._polled = number, Outcome(200, first + body)
            if ended:
                self.end()
            return self._polled

    def end(self) -> None:
        """The client is gone, or was told to go. May be called again."""
        self._stop_gap()
        if self._ended:
            return
        self._ended = True
        self._carrying.cancel()
        self.peer.end()
        self.peer.hang_up(GONE, "gone")  # whoever still waits for something to send
        self._on_end(self)

    def _stop_gap(self) -> None:
        if self._gap is not None:
            self._gap.cancel()
            self._gap = None


class Lines:
    """The lines of this process."""

    def __init__(self, connections: Connections) -> None:
        self.office = connections.office
        self._connections = connections
        self._process = connections.office.runtime.process
        self._lines: dict[str, Line] = {}
        self._last_word: tuple[int, str] | None = None  # that every line is told

    def peer(self, kind: str, scope: dict[str, Any]) -> Peer:
        """Who asks to be let in, and has not said yet who it is."""
        return PEERS[kind](scope, self._connections)

    def open(self, peer: Peer, transport: str) -> Line | None:
        """None where this process has no room."""
        if len(self._lines) >= LINES:
            instruments.dropped.labels("lines").inc()
            return None
        line = Line(f"{self._process}.{new_secret()}", peer, transport, self._ended)
        self._lines[line.id] = line
        instruments.http_lines.labels(transport).inc()
        if self._last_word is not None:
            peer.hang_up(*self._last_word)
        return line

    def _ended(self, line: Line) -> None:
        del self._lines[line.id]
        instruments.http_lines.labels(line.transport).dec()

    def hang_up(self, code: int, reason: str) -> None:
        """Closes every line once what was queued before is sent, and each that is opened from now on: a connection that
        is kept open brings requests although the port listens no more.
        """
        self._last_word = code, reason
        for line in tuple(self._lines.values()):
            line.peer.hang_up(code, reason)

    @staticmethod
    def process_of(line: str) -> str:
        """The process that opened the line."""
        return line[:CHARACTERS]

    async def carry_out(self, errand: Errand) -> Outcome:
        """Does what a POST asks of a line of this process. To a stranger there is no such line."""
        line = self._lines.get(errand.line)
        if line is None or line.peer.kind != errand.kind or not line.peer.knows(errand.cookie):
            return NO_SUCH_LINE
        if errand.wait_s is not None:
            return await line.poll(errand.number, errand.wait_s)
        line.post(errand.number, errand.frames)
        return DONE
