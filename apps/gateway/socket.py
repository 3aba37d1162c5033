"""The part of a socket that customers and agents share: codec, order of sending, the first frame's deadline."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

from channels.exceptions import StopConsumer
from channels.generic.websocket import AsyncWebsocketConsumer
from channels.utils import await_many_dispatch
from django.db import DatabaseError

from apps.conversations.commands import LogUnavailable, Refusal
from apps.conversations.selectors import NotFound
from apps.gateway.pace import Pace
from apps.telemetry import instruments
from apps.turns.office import Office
from apps.wire import protocol as wire
from apps.wire.publish import Encoded, Outgoing

logger = logging.getLogger(__name__)

# A client that lets this many frames pile up is cut off and resumes from what it has.
QUEUED_FRAMES = 2_000
TRY_AGAIN_LATER = 1013  # of the WebSocket registry: what a client takes for a fault of the line
INTERNAL_ERROR = 1011


class _Close:
    def __init__(self, code: int, reason: str) -> None:
        self.code = code
        self.reason = reason


class Socket(AsyncWebsocketConsumer):  # type: ignore[misc]  # channels has no types
    """One task writes; everything to be sent goes through its queue, so that frames keep their order.

    Frames from other processes come through the switchboard, so a socket needs no channel of its own, and a
    dispatch takes no detour over the shared database thread.
    """

    kind = ""
    office: Office
    arrived = 0.0  # monotonic: the frame being carried out

    async def __call__(
        self, scope: dict[str, Any], receive: Callable[..., Any], send: Callable[..., Any]
    ) -> None:
        self.scope, self.base_send = scope, send
        self.office = scope["office"]
        self._queue: asyncio.Queue[Encoded | _Close] = asyncio.Queue(QUEUED_FRAMES)
        self._held: list[Encoded] | None = []
        self._writer: asyncio.Task[None] | None = None
        self._deadline: asyncio.TimerHandle | None = None  # of the hello, then of the credentials
        self._greeted = False
        self._binary = False
        self._pace = Pace(time.monotonic())
        try:
            await await_many_dispatch([receive], self.dispatch)
        except StopConsumer:
            pass
        finally:
            self._end()

    async def dispatch(self, message: dict[str, Any]) -> None:
        """One event at a time, in order: what takes long must be a task of the owner."""
        match message["type"]:
            case "websocket.connect":
                await self.websocket_connect(message)
            case "websocket.receive":
                # When its bytes were read; servers that do not say it have not let it wait.
                self.arrived = message.get("arrived", time.monotonic())
                await self.websocket_receive(message)
            case "websocket.disconnect":
                self._end()
                raise StopConsumer

    # ------------------------------------------------------------ opening

    async def connect(self) -> None:
        if not self.may_connect():
            await self.close()  # before accept: an HTTP 403
            return
        offered = self.scope.get("subprotocols", [])
        chosen = next((name for name in wire.SUBPROTOCOLS if name in offered), None)
        # An unknown one is accepted as asked, or a browser would never see the close code.
        await self.accept(subprotocol=chosen or (offered[0] if offered else None))
        self._binary = chosen == wire.MSGPACK_SUBPROTOCOL
        self._writer = self.office.runtime.spawn(self._write(), "socket writer")
        if chosen is None and offered:
            self.refuse(wire.ErrorCode.UNKNOWN_SUBPROTOCOL, "offer chatsvc.v1.json or chatsvc.v1.msgpack")
            self.hang_up(wire.CloseCode.UNKNOWN_SUBPROTOCOL, "unknown subprotocol")
            return
        loop = asyncio.get_running_loop()
        self._deadline = loop.call_later(wire.HELLO_DEADLINE_S, self._hello_missing)

    def may_connect(self) -> bool:
        """Whether to accept at all. A refusal here reaches a browser as 1006."""
        return True

    def _hello_missing(self) -> None:
        self.refuse(wire.ErrorCode.HELLO_MISSING, "no hello within 5 seconds")
        self.hang_up(wire.CloseCode.PROTOCOL, "no hello")

    def hello_came(self) -> None:
        """How long it takes to look at it is not the client's fault."""
        if self._deadline is not None:
            self._deadline.cancel()

    def greeted(self, expires_at: datetime | None = None) -> None:
        """The first frame was accepted, and its credentials are good until then."""
        self._greeted = True
        instruments.sockets.labels(self.kind).inc()
        if expires_at is not None:
            left_s = (expires_at - datetime.now(UTC)).total_seconds()
            self._deadline = asyncio.get_running_loop().call_later(left_s, self._credentials_expired)

    def _credentials_expired(self) -> None:
        self.refuse(wire.ErrorCode.BAD_TOKEN, "expired")
        self.hang_up(wire.CloseCode.LOGIN_AGAIN, "token expired")

    # ------------------------------------------------------------ sending

    def tell(self, frame: wire.ServerFrame) -> None:
        """Queues an answer to this socket alone."""
        self._put(Outgoing(frame))

    def refuse(self, code: wire.ErrorCode, message: str, frame: wire.ClientFrame | None = None) -> None:
        """Tells that `frame` changed nothing, and counts it."""
        instruments.refused_frames.labels(code.value).inc()
        self.tell(
            wire.Refused(
                code=code,
                message=message,
                id=getattr(frame, "id", None),
                of=str(type(frame).__struct_config__.tag) if frame is not None else None,
                conversation=getattr(frame, "conversation", None),
            )
        )

    def hang_up(self, code: int, reason: str) -> None:
        """Closes once everything queued before was sent."""
        self._put(_Close(code, reason))

    def deliver(self, frame: Encoded) -> None:
        """A published frame, from the switchboard. Kept back while the state is still being read."""
        if self._held is not None:
            self._held.append(frame)
        else:
            self._put(frame)

    def hold(self) -> None:
        """Keeps back what is published until `release`: the state to be shown first is still being read."""
        if self._held is None:
            self._held = []

    def release(self, first: wire.ServerFrame) -> None:
        """Sends the state that was read, then what was kept back meanwhile."""
        self.tell(first)
        self.end_hold()

    def end_hold(self) -> None:
        """Ends the hold; what was kept back goes on its way."""
        held, self._held = self._held or [], None
        for frame in held:
            self._put(frame)

    def _put(self, item: Encoded | _Close) -> None:
        try:
            self._queue.put_nowait(item)
        except asyncio.QueueFull:
            instruments.dropped.labels("socket").inc()
            # Room for the last word: what was queued is of no use to a client that must resume.
            while not self._queue.empty():
                self._queue.get_nowait()
            self._queue.put_nowait(_Close(wire.CloseCode.SLOW_DOWN, "too slow"))

    async def _write(self) -> None:
        try:
            await self._send_queued()
        except Exception:
            # A socket that cannot be written to any more must not seem alive.
            logger.exception("a frame could not be sent")
            await self.close(code=INTERNAL_ERROR)

    async def _send_queued(self) -> None:
        while True:
            item = await self._queue.get()
            if isinstance(item, _Close):
                await self.close(code=item.code, reason=item.reason)
                return
            if self._binary:
                await self.send(bytes_data=item.binary)
            else:
                await self.send(text_data=item.text)

    # ------------------------------------------------------------ receiving

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        if text_data is None:
            self.refuse(wire.ErrorCode.BAD_FRAME, "frames to the server are JSON text")
            return
        if wait_s := self._pace.wait_s(time.monotonic()):
            self._slow_down(text_data, wait_s)
            return
        try:
            await self.frame(text_data)
        except wire.FrameError as error:
            instruments.refused_frames.labels(error.code.value).inc()
            self.tell(error.as_frame())
        except DatabaseError:
            logger.exception("a %s socket could not be opened", self.kind)
            self.refuse(wire.ErrorCode.UNAVAILABLE, "the service cannot be reached now; try again")
            self.hang_up(TRY_AGAIN_LATER, "unavailable")

    def _slow_down(self, text: str, wait_s: float) -> None:
        instruments.refused_frames.labels(wire.ErrorCode.SLOW_DOWN.value).inc()
        self.tell(wire.too_fast(text, wait_s))
        if self._pace.lost_patience:
            self.hang_up(wire.CloseCode.SLOW_DOWN, "slow down")

    async def frame(self, text: str) -> None:
        """Parses and carries out one frame. Raises `FrameError`."""
        raise NotImplementedError

    async def answered(self, frame: wire.ClientFrame, action: Awaitable[None]) -> None:
        """Carries out an action and answers its refusals."""
        try:
            await action
        except Refusal as refusal:
            self.refuse(refusal.code, refusal.message, frame)
        except NotFound:
            self.refuse(wire.ErrorCode.NOT_FOUND, "there is no such conversation", frame)
        except (LogUnavailable, DatabaseError):
            logger.exception("a %s was not carried out", type(frame).__name__)
            self.refuse(wire.ErrorCode.UNAVAILABLE, "it could not be done now; send it again", frame)

    # ------------------------------------------------------------ the end

    def left(self) -> None:
        """Gives up what the socket held. Must not wait: slow farewells are tasks of the owner."""

    def _end(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        if self._writer is not None:
            self._writer.cancel()
            self._writer = None
        if self._greeted:
            self._greeted = False
            instruments.sockets.labels(self.kind).dec()
            self.left()
