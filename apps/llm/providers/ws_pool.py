"""The WebSockets of one endpoint: one is kept warm, more are opened when lanes run out, all are renewed in time.

Every task here (a reader a socket, an opening, a closing) is owned by the pool and gone when `close` returns.
"""

from __future__ import annotations

import asyncio
import logging
import math
import secrets
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass

from apps.llm.deadlines import Deadlines
from apps.llm.errors import EndpointFull, LlmError, Stage, UpgradeRefused
from apps.llm.providers import lanes
from apps.llm.providers.lanes import MOST_IN_FLIGHT, Lane
from apps.llm.providers.responses_events import Event
from apps.llm.providers.ws_connect import open_socket
from apps.llm.providers.ws_socket import Mailbox, ResponsesSocket
from apps.llm.spec import EndpointSpec
from apps.telemetry import instruments

logger = logging.getLogger(__name__)

# After a refused upgrade, and after so many sockets in a row that never answered, HTTP serves for a while.
FALLBACK_S = 600.0
LOSSES = 2
# Between two attempts at a successor for a socket whose time is up.
TEND_PAUSE_S = 0.5
# Sockets that may be opened so that conversations keep their chains; more only for answers at the same time.
SOCKETS_FOR_CHAINS = 16


@dataclass(slots=True)
class Lease:
    """A turn's lane. `continues`: the server remembers this conversation's last response there."""

    socket: ResponsesSocket
    lane: Lane
    box: Mailbox
    continues: bool
    forgotten: str  # the conversation whose chain was on this lane, "" if none was
    key: str = ""  # set with `keep`
    response_id: str = ""

    async def send(self, message: bytes, due: float) -> None:
        """Raises `LlmError`."""
        await self.socket.send(message, due)

    async def events(self, due: float, stage: Stage) -> list[Event]:
        """What has come, at least one event. Raises `LlmError`."""
        return await self.box.take(due, stage)

    def keep(self, key: str, response_id: str) -> None:
        """The answer was heard to its end and can be continued on this lane."""
        self.key, self.response_id = key, response_id


class SocketPool:
    """Lives on the event loop."""

    def __init__(self, spec: EndpointSpec, deadlines: Deadlines) -> None:
        self.connections_opened = 0
        self._spec = spec
        self._deadlines = deadlines
        self._named = spec.quirks.lanes
        self._life_s = min(deadlines.socket_life_s, spec.quirks.socket_life_s)
        self._sockets: list[ResponsesSocket] = []
        self._openings: set[asyncio.Task[None]] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self._waiting = 0
        self._failure: LlmError | None = None  # of the last opening
        self._refusal: UpgradeRefused | None = None
        self._opens_again_at = 0.0
        self._losses = 0
        self._proven = False  # an answer came since an idle socket was last replaced
        self._tended_at = 0.0
        self._closed = False
        self._counted = 0  # busy lanes, as the metric has them

    @asynccontextmanager
    async def lease(self, key: str, due: float) -> AsyncIterator[Lease]:
        """A lane for one turn of conversation `key`, until `due` (loop time). However it ends, the lane is given back.

        Raises `UpgradeRefused` while no socket is to be had, `EndpointFull`, or what the connection failed with.
        """
        lease = await self._leased(key, due)
        try:
            yield lease
        finally:
            self.give_back(lease)

    def holds(self, key: str) -> bool:
        """Whether some lane has the conversation's chain."""
        return any(key in socket.table.keys for socket in self._sockets if socket.table.open)

    def lease_now(self, key: str) -> Lease | None:
        """A lane nobody would miss this very moment, for what may as well be left undone. Give it back."""
        lease = self._lease_of(key, evicts=False)
        self._open_ahead()
        return lease

    def give_back(self, lease: Lease) -> None:
        """Frees the lane, or leaves it to the response that still runs there."""
        if lease.key and lease.box.ended:
            lanes.release(lease.lane, lease.key, _now(), lease.response_id)
            for socket in self._sockets:
                socket.table.disclaim(lease.key, but=lease.lane)
        else:
            lease.socket.discard(lease.box, _now())
        self._tidy()
        self._open_ahead()
        self._lanes_changed()

    async def _leased(self, key: str, due: float) -> Lease:
        full_at = min(_now() + self._deadlines.slot_s, due)
        self._waiting += 1
        try:
            while (lease := self._lease_of(key)) is None:
                self._failure = None
                self._open_for_the_waiting()
                await self._change(due if self._opening else full_at)
                if self._failure is not None and not self._opening:
                    raise self._failure
        finally:
            self._waiting -= 1
        self._open_ahead()
        return lease

    def _lease_of(self, key: str, *, evicts: bool = True) -> Lease | None:
        tables = {socket.table: socket for socket in self._sockets}
        found = lanes.lease(tables, key, _now(), evicts=evicts)
        if found is None:
            return None
        table, lane = found
        self._count_lanes()
        socket = tables[table]
        continues = bool(key) and lane.key == key
        forgotten = "" if continues else lane.key
        return Lease(socket, lane, socket.listen(lane), continues, forgotten)

    async def _change(self, until: float) -> None:
        self._changed.clear()
        try:
            async with asyncio.timeout_at(until):
                await self._changed.wait()
        except TimeoutError as error:
            raise EndpointFull("every lane is taken") from error

    async def tend(self) -> None:
        """Makes sure of an open socket, renews those whose time is up, closes what has drained. Raises `LlmError`."""
        self._tended_at = _now()
        if not self._fresh():
            await self._open_now()
        if fresh := self._fresh():  # else the old one goes on while there is no successor
            for socket in set(self._sockets) - set(fresh):
                socket.retire()
        self._tidy()

    def due(self) -> float:
        """Loop time at which a socket's time will be up; soon, when one could not be renewed in time."""
        times = [socket.retires_at for socket in self._sockets if socket.table.open]
        times += [until for socket in self._sockets if (until := socket.discards_until()) is not None]
        return max(min(times, default=math.inf), self._tended_at + TEND_PAUSE_S)

    @property
    def resting(self) -> bool:
        """Whether HTTP serves because no socket is to be had."""
        return _now() < self._opens_again_at and not self._sockets

    def answered(self) -> None:
        """A response has come to its end: sockets work here."""
        self._losses = 0
        self._proven = True

    async def close(self) -> None:
        """Ends every connection, also of answers that still run."""
        self._closed = True
        for task in self._openings:
            task.cancel()
        for socket in self._sockets:
            socket.abort("closed")
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=self._deadlines.close_s)
            for task in late:
                task.cancel()

    def _fresh(self) -> list[ResponsesSocket]:
        return [socket for socket in self._sockets if socket.table.open and socket.retires_at > _now()]

    async def _open_now(self) -> None:
        if _now() < self._opens_again_at:
            return
        self._failure = None
        if not self._opening:
            self._start_opening()
        await asyncio.wait(self._openings)
        if self._failure is not None and not any(socket.table.open for socket in self._sockets):
            raise self._failure

    def _open_for_the_waiting(self) -> None:
        """As many openings as the waiting turns need. Raises `UpgradeRefused` while none is to be tried."""
        most = math.ceil(self._spec.max_concurrent / self._capacity) + 1
        if self._closed or len(self._sockets) + self._opening >= most:
            return
        if _now() < self._opens_again_at:
            if not self._opening:
                raise self._refusal or UpgradeRefused("sockets do not last here")
            return
        while self._opening * self._capacity < self._waiting:
            self._start_opening()

    def _open_ahead(self) -> None:
        """Beside the turn that took the last good lane, so that the next one need not wait for a handshake."""
        enough = len(self._sockets) >= SOCKETS_FOR_CHAINS or self._opening or _now() < self._opens_again_at
        if not (enough or self._closed) and lanes.wants_another(
            (socket.table for socket in self._sockets), _now()
        ):
            self._start_opening()

    def _replace_idle(self) -> None:
        """Once for each time that answers came, or a server that closes at once would be called for ever.

        Idle sockets end together: only the last of them finds that none is left, and it may not be one that answered.
        """
        before = self._opening
        if self._proven:
            self._open_ahead()
        if self._opening > before:
            self._proven = False

    @property
    def _opening(self) -> int:
        """Openings under way. One that has just ended may still be in the set."""
        return sum(not task.done() for task in self._openings)

    @property
    def _capacity(self) -> int:
        return MOST_IN_FLIGHT if self._named else 1

    def _start_opening(self) -> None:
        task = self._own(self._open(), "socket-opening")
        self._openings.add(task)
        task.add_done_callback(self._openings.discard)

    async def _open(self) -> None:
        try:
            connection = await open_socket(self._spec, self._deadlines.connect_s)
        except LlmError as error:
            self._failed(error)
            return
        finally:
            self._changed.set()  # heard by the waiting after what follows
        if self._closed:
            connection.transport.abort()
            return
        self.connections_opened += 1
        instruments.llm_connections_opened.labels(self._spec.quirks.name).inc()
        instruments.llm_sockets.labels(self._spec.quirks.name).inc()
        retires_at = _now() + lanes.retires_after(self._life_s, secrets.randbelow(1_000) / 1_000)
        socket = ResponsesSocket(
            connection, named=self._named, retires_at=retires_at, changed=self._lanes_changed
        )
        self._sockets.append(socket)
        self._own(self._read(socket), "socket-reader")

    async def _read(self, socket: ResponsesSocket) -> None:
        try:
            await socket.read()
        finally:
            self._sockets.remove(socket)
            self._count_lanes()
            instruments.llm_sockets.labels(self._spec.quirks.name).dec()
            instruments.llm_socket_ends.labels(self._spec.quirks.name, socket.end).inc()
            self._learn(socket)
            self._replace_idle()

    def _lanes_changed(self) -> None:
        self._count_lanes()
        self._changed.set()

    def _count_lanes(self) -> None:
        busy = sum(socket.table.in_flight for socket in self._sockets)
        instruments.llm_lanes_busy.labels(self._spec.quirks.name).inc(busy - self._counted)
        self._counted = busy

    def _learn(self, socket: ResponsesSocket) -> None:
        if socket.knows_no_lanes:
            logger.warning("endpoint %s knows no lanes: one answer a socket from now on", self._spec.name)
            self._named = False
        elif socket.turns_lost and not socket.answered:
            self._losses += 1
            if self._losses >= LOSSES:
                self._rest(UpgradeRefused("sockets do not last here"))

    def _failed(self, error: LlmError) -> None:
        self._failure = error
        if isinstance(error, UpgradeRefused):
            self._rest(error)

    def _rest(self, refusal: UpgradeRefused) -> None:
        logger.warning("endpoint %s: %s; HTTP serves for a while", self._spec.name, refusal)
        self._refusal, self._losses = refusal, 0
        self._opens_again_at = _now() + (refusal.retry_after_s or FALLBACK_S)

    def _tidy(self) -> None:
        """Closes what nobody needs any more. A closing handshake waits for the peer, so it has a task."""
        for socket in self._sockets:
            overdue = socket.discards_until()
            if overdue is not None and overdue <= _now():
                socket.abort("overdue")
            elif not socket.table.open and not socket.table.in_flight and not socket.end:
                socket.end = "retired"
                self._own(socket.close("retired"), "socket-closing")

    def _own(self, work: Coroutine[None, None, None], name: str) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _now() -> float:
    return asyncio.get_running_loop().time()
