"""One client that is connected, however its frames travel: what it may say, and in which order it is told.

Transports (`socket.py`, `streams.py`) carry `hear` in and `next` out; nothing here knows them.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

from django.db import DatabaseError

from apps.conversations.commands import LogUnavailable, Refusal
from apps.conversations.selectors import NotFound
from apps.gateway.allowance import Bound
from apps.gateway.connections import Connections, Full
from apps.gateway.heartbeat import Heartbeat, patience_s
from apps.gateway.outbound import Close, Outbound
from apps.gateway.pace import Pace
from apps.gateway.rates import of_address, of_person, of_workspace
from apps.telemetry import instruments
from apps.wire import client_frames as client
from apps.wire import protocol as wire
from apps.wire import server_frames as server
from apps.wire.publish import Encoded, Outgoing

logger = logging.getLogger(__name__)

TRY_AGAIN_LATER = 1013  # of the WebSocket registry: what a client takes for a fault of the line
COME_AGAIN_S = 10.0

_FULL = {
    Full.ADDRESS: "too many connections of this address wait to be let in",
    Full.WAITING: "too many connections wait to be let in",
    Full.FILES: "this process has no room for more connections",
    Full.GREETING: "too many come at once; try again",
}


class Peer:
    """Everything to be sent goes through its queue, so that frames keep their order.

    Frames from other processes come through the switchboard, so a client needs no channel of its own, and a frame
    takes no detour over the shared database thread.
    """

    kind = ""
    counted: tuple[type[client.ClientFrame], ...] = ()  # what reaches the database
    arrived = 0.0  # monotonic: the frame being carried out

    def __init__(self, scope: dict[str, Any], connections: Connections) -> None:
        self.scope = scope
        self.connections = connections
        self.office = connections.office
        self._outbound = Outbound()
        self.too_slow: Callable[[], None] = lambda: None  # the transport may wait for one who does not read
        self._held: Outbound | None = Outbound()
        self._deadline: asyncio.TimerHandle | None = None  # of the hello, then of the credentials
        self._greeted = False
        self._over = False
        self._bounds: tuple[Bound, ...] = ()
        self.person = ""  # whoever it is: the customer's or the agent's id
        self.address = str((scope.get("client") or ("",))[0])
        self.heard_at = time.monotonic()
        self.told_to_go_at: float | None = None
        self.heartbeat = Heartbeat()
        self._pace = Pace(self.heard_at)

    def may_connect(self) -> bool:
        """Whether to let it in at all. A refusal here reaches a browser's socket as 1006."""
        return True

    def knows(self, cookie: str) -> bool:
        """Whether a later request with this cookie header may be the same client's, who also knows the line's id."""
        return True

    def opened(self) -> None:
        """It can be heard and told from now on; its hello is waited for."""
        full = self.connections.enter(self)
        if full is not None:
            self.refuse(wire.ErrorCode.SLOW_DOWN, _FULL[full], retry_after_s=COME_AGAIN_S)
            self.hang_up(wire.CloseCode.SLOW_DOWN, "too many")
            return
        loop = asyncio.get_running_loop()
        self._deadline = loop.call_later(wire.HELLO_DEADLINE_S, self._hello_missing)

    def _hello_missing(self) -> None:
        self.refuse(wire.ErrorCode.HELLO_MISSING, "no hello within 5 seconds")
        self.hang_up(wire.CloseCode.PROTOCOL, "no hello")

    def within_rate(self, bounds: tuple[Bound, ...], frame: client.ClientFrame) -> bool:
        """Whether it may do this now, which is counted; else it is told how long to wait."""
        wait = self.connections.rates.take(bounds)
        if wait is not None:
            retry_after_s = round(wait.seconds, 3)
            self.refuse(wire.ErrorCode.SLOW_DOWN, f"too much of one {wait.of}", frame, retry_after_s)
        return wait is None

    def greeted(self, person: str, workspace: str, expires_at: datetime | None = None) -> None:
        """The first frame was accepted: it is this person's, and its credentials are good until then."""
        self._greeted = True
        self.person = person
        self._bounds = (of_person(person), of_workspace(workspace), *of_address(self.address))
        self.connections.let_in(self, person)
        instruments.sockets.labels(self.kind).inc()
        if expires_at is not None:
            left_s = (expires_at - datetime.now(UTC)).total_seconds()
            self._deadline = asyncio.get_running_loop().call_later(left_s, self._credentials_expired)

    def _credentials_expired(self) -> None:
        self.refuse(wire.ErrorCode.BAD_TOKEN, "expired")
        self.hang_up(wire.CloseCode.LOGIN_AGAIN, "token expired")

    def tell(self, frame: server.ServerFrame) -> None:
        """Queues an answer to this client alone."""
        self._put(Outgoing(frame))

    def refuse(
        self,
        code: wire.ErrorCode,
        message: str,
        frame: client.ClientFrame | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        """Tells that `frame` changed nothing, and counts it."""
        instruments.refused_frames.labels(code.value).inc()
        self.tell(
            server.Refused(
                code=code,
                message=message,
                id=getattr(frame, "id", None),
                of=str(type(frame).__struct_config__.tag) if frame is not None else None,
                retry_after_s=retry_after_s,
                conversation=getattr(frame, "conversation", None),
            )
        )

    def hang_up(self, code: int, reason: str) -> None:
        """Closes once everything queued before was sent."""
        if not self.leaving and not self._over:
            self._note_end(code)
        self._put(Close(code, reason))

    @property
    def leaving(self) -> bool:
        """Whether it was told to go, even if it has not read so."""
        return self._outbound.closing

    def deliver(self, frame: Encoded) -> None:
        """A published frame, from the switchboard. Kept back while the state is still being read."""
        if self.leaving:
            return
        if self._held is None:
            self._put(frame)
        elif not self._held.put(frame):
            self._too_much_waits("held")

    def hold(self) -> None:
        """Keeps back what is published until `release`: the state to be shown first is still being read."""
        if self._held is None:
            self._held = Outbound()

    def release(self, first: server.ServerFrame) -> None:
        """Sends the state that was read, then what was kept back meanwhile."""
        self.tell(first)
        self.end_hold()

    def end_hold(self) -> None:
        """Ends the hold; what was kept back goes on its way."""
        held, self._held = self._held, None
        while held is not None and (frame := held.get_now()) is not None:
            self._put(frame)

    def _put(self, item: Encoded | Close) -> None:
        if not self._outbound.put(item):
            self._too_much_waits("socket")

    def _too_much_waits(self, queue: str) -> None:
        instruments.dropped.labels(queue).inc()
        self.cut_off(wire.CloseCode.SLOW_DOWN, "too slow")

    def cut_off(self, code: int, reason: str) -> None:
        """Closes ahead of everything that waits, which is of no use to a client that must resume or does not read."""
        self._note_end(code)
        self._held = None
        self._outbound.clear()
        self._outbound.put(Close(code, reason))
        self.too_slow()

    def _note_end(self, code: int) -> None:
        self.told_to_go_at = time.monotonic()
        instruments.hang_ups.labels(str(int(code))).inc()

    async def next(self) -> Encoded | Close:
        """What is to be sent next. A cancelled wait takes nothing."""
        return await self._outbound.get()

    def next_now(self) -> Encoded | Close | None:
        """The same without waiting: None where nothing is queued."""
        return self._outbound.get_now()

    async def hear(self, text: str, arrived: float) -> None:
        """Carries out one frame, whose bytes were read at `arrived` (monotonic). Never two at a time.

        Whoever was told to go is heard no more, whether the last word has been read or not.
        """
        if self.leaving:
            return
        self.arrived = arrived
        self.heard()
        if wait_s := self._pace.wait_s(time.monotonic()):
            self._slow_down(text, wait_s)
            return
        try:
            await self.frame(text)
        except client.FrameError as error:
            instruments.refused_frames.labels(error.code.value).inc()
            self.tell(error.as_frame())
        except DatabaseError:
            logger.exception("a %s could not be let in", self.kind)
            self.refuse(wire.ErrorCode.UNAVAILABLE, "the service cannot be reached now; try again")
            self.hang_up(TRY_AGAIN_LATER, "unavailable")

    def heard(self) -> None:
        """It lives: something came of it, whatever it was."""
        self.heard_at = time.monotonic()

    @property
    def patience_s(self) -> float:
        """How long it may be silent."""
        return patience_s(self.heartbeat.interval_s)

    def _slow_down(self, text: str, wait_s: float) -> None:
        instruments.refused_frames.labels(wire.ErrorCode.SLOW_DOWN.value).inc()
        self.tell(client.too_fast(text, wait_s))
        if self._pace.lost_patience:
            self.hang_up(wire.CloseCode.SLOW_DOWN, "slow down")

    async def frame(self, text: str) -> None:
        """Parses one frame and has it carried out. Raises `FrameError`."""
        raise NotImplementedError

    async def hello(self, hello: client.Hello) -> None:
        """Finds out who it is, and either hangs up or calls `greeted` and shows the first state."""
        raise NotImplementedError

    async def carry_out(self, frame: client.ClientFrame, act: Callable[[], Awaitable[None]]) -> None:
        """The hello first, and once; then `act`, where it may do that now."""
        if isinstance(frame, client.Hello):
            if self._may_say_hello(frame):
                await self._greet(frame)
        elif not self._greeted:
            self.refuse(wire.ErrorCode.HELLO_MISSING, "the first frame must be a hello", frame)
            self.hang_up(wire.CloseCode.PROTOCOL, "no hello")
        elif not isinstance(frame, self.counted) or self.within_rate(self._bounds, frame):
            await self._answered(frame, act())

    def _may_say_hello(self, hello: client.Hello) -> bool:
        if self._greeted:
            self.refuse(wire.ErrorCode.BAD_FRAME, "hello was said before", hello)
            return False
        if self._deadline is not None:
            self._deadline.cancel()  # how long it takes to look at it is not the client's fault
        if self.within_rate(of_address(self.address), hello):
            return True
        self.hang_up(wire.CloseCode.SLOW_DOWN, "slow down")
        return False

    async def _greet(self, hello: client.Hello) -> None:
        if not await self.connections.may_greet():
            self.refuse(wire.ErrorCode.UNAVAILABLE, _FULL[Full.GREETING], hello)
            self.hang_up(TRY_AGAIN_LATER, "too many")
            return
        try:
            await self.hello(hello)
        finally:
            self.connections.has_greeted()

    async def _answered(self, frame: client.ClientFrame, action: Awaitable[None]) -> None:
        """Carries out an action and answers its refusals."""
        try:
            await action
        except Refusal as refusal:
            self.refuse(refusal.code, refusal.message, frame)
        except NotFound:
            self.refuse(wire.ErrorCode.NOT_FOUND, "there is no such conversation", frame)
        except (LogUnavailable, DatabaseError) as error:
            # What the writer was refused it has told; of anything else the place is wanted.
            place = not isinstance(error, LogUnavailable)
            logger.warning("a %s was not carried out: %s", type(frame).__name__, error, exc_info=place)
            self.refuse(wire.ErrorCode.UNAVAILABLE, "it could not be done now; send it again", frame)

    def left(self) -> None:
        """Gives up what the client held. Must not wait: slow farewells are tasks of the owner."""

    def end(self) -> None:
        """The transport is gone. May be called again."""
        if self._deadline is not None:
            self._deadline.cancel()
        self._over = True
        self.connections.leave(self, self.person)
        if self._greeted:
            self._greeted = False
            instruments.sockets.labels(self.kind).dec()
            self.left()
