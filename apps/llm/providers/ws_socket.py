"""One WebSocket to a model server: who reads it, and which lane gets what."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from apps.engine.deadlines import Until
from apps.llm.errors import BadData, BrokenStream, ConnectionExpired, LlmError, Stage, Stalled
from apps.llm.providers.lanes import Lane, LaneTable, release
from apps.llm.providers.responses_events import Event, parsed

# Events that may wait for a turn that does not take them. An answer has fewer; a turn so far behind is given up.
MAILBOX_EVENTS = 8_192
# How long a response nobody listens to may go on before its socket is closed for it.
DISCARDS_FOR_S = 60.0


class Mailbox:
    """What came for one turn. After a failure it still gives the events that came before."""

    def __init__(self, lane: Lane) -> None:
        self.lane = lane
        self.began = False  # an event has come
        self.ended = False  # its last event has come
        self.response_id = ""
        self.discarded_at: float | None = None
        self._events: deque[Event] = deque()
        self._failure: LlmError | None = None
        self._arrived = asyncio.Event()

    def put(self, event: Event) -> None:
        """An event of this turn; dropped when nobody listens."""
        self.began = True
        self.ended = self.ended or event.terminal
        self.response_id = event.response_id or self.response_id
        if self.discarded_at is not None:
            return
        if len(self._events) >= MAILBOX_EVENTS:
            self.fail(BrokenStream("the turn did not keep up with its answer"))
            return
        self._events.append(event)
        self._arrived.set()

    def fail(self, failure: LlmError) -> None:
        self._failure = self._failure or failure
        self._arrived.set()

    async def take(self, due: float, stage: Stage) -> list[Event]:
        """All that has come, at least one. Raises `Stalled` at `due` and the failure behind the last event."""
        try:
            async with Until(due):
                await self._arrived.wait()
        except TimeoutError as error:
            raise Stalled(stage) from error
        self._arrived.clear()
        events = list(self._events)
        self._events.clear()
        if self._failure is not None:
            if not events:
                raise self._failure
            self._arrived.set()
        return events


class ResponsesSocket:
    """Lives from its upgrade to the end of `read`, whose task its pool owns."""

    def __init__(
        self, connection: ClientConnection, *, named: bool, retires_at: float, changed: Callable[[], None]
    ) -> None:
        self.table = LaneTable(named=named)
        self.retires_at = retires_at
        self.knows_no_lanes = False  # though it was thought to
        self.answered = 0  # responses that came to their end here
        self.turns_lost = 0  # that were running when the peer ended it
        self.end = ""  # why it ended, once it has
        self._connection = connection
        self._boxes: dict[str | None, Mailbox] = {}
        self._changed = changed

    async def read(self) -> None:
        """Until the connection ends, by either side. Never raises but when cancelled."""
        failure: LlmError = BrokenStream("the reader was stopped")
        try:
            while not self.end:
                self._deliver(parsed(await self._connection.recv(decode=False)))
        except ConnectionClosed as error:
            failure = BrokenStream(f"the connection ended: {error}")
            self.turns_lost = 0 if self.end else len(self._running())
            self.end = self.end or "lost"
        except BadData as error:
            failure = error
            self.end = "garbage"
        finally:
            self.end = self.end or "closed"
            self.abort(self.end)
            self._fail_all(failure)
            self._changed()

    async def send(self, message: bytes, due: float) -> None:
        """Raises `BrokenStream`, `Stalled`."""
        try:
            async with Until(due):
                await self._connection.send(message, text=True)
        except ConnectionClosed as error:
            raise BrokenStream(f"the connection ended: {error}", began=False) from error
        except TimeoutError as error:
            raise Stalled(Stage.FIRST_DATA) from error

    def listen(self, lane: Lane) -> Mailbox:
        """The box of a turn that has just leased `lane`."""
        box = self._boxes[lane.name] = Mailbox(lane)
        return box

    def retire(self) -> None:
        """No new turns; those that run go on."""
        self.table.open = False

    def abort(self, why: str) -> None:
        """Ends it at once, without a closing handshake: waiting for one can hang."""
        self.end = self.end or why
        self.retire()
        self._connection.transport.abort()

    async def close(self, why: str) -> None:
        """Ends it politely, when nothing runs there."""
        self.end = self.end or why
        self.retire()
        await self._connection.close()

    def discard(self, box: Mailbox, now: float) -> None:
        """Nobody listens any more. A lane is free again when its response has ended; a lone one takes the socket along,
        which is what makes the server stop."""
        if box.ended or self.end:
            release(box.lane, "", now, box.response_id)
        elif self.table.named:
            box.discarded_at = now
        else:
            self.abort("cancelled")
        self._changed()

    def discards_until(self) -> float | None:
        """Loop time at which a response nobody listens to has gone on for too long; None without one."""
        since = [box.discarded_at for box in self._boxes.values() if box.discarded_at is not None]
        return min(since) + DISCARDS_FOR_S if since else None

    def _deliver(self, event: Event) -> None:
        if event.type == "error":
            failure = event.failure()
            if event.stream_id is None or isinstance(failure, ConnectionExpired):
                self._connection_error(event, failure)
                return
        if event.stream_id is None and self.table.named:
            self._laneless(event)
            return
        box = self._boxes.get(event.stream_id if self.table.named else None)
        if box is not None:
            self._put(box, event)

    def _put(self, box: Mailbox, event: Event) -> None:
        if not box.lane.busy or _is_straggler(box, event):
            return
        box.put(event)
        if not box.ended:
            return
        self.answered += event.type != "error"
        if box.discarded_at is not None:
            box.discarded_at = None
            release(box.lane, "", asyncio.get_running_loop().time(), box.response_id)
            self._changed()

    def _laneless(self, event: Event) -> None:
        """An event of a response that names no lane, on a socket that has lanes."""
        running = self._running()
        if not running or not event.type.startswith("response."):
            return
        self._learn_that_there_are_no_lanes()
        if len(running) == 1:
            self._put(running[0], event)
            return
        self._fail_all(BadData("answers came without their lanes"))
        self.abort("garbage")

    def _connection_error(self, event: Event, failure: LlmError) -> None:
        """An error that names no lane: of the only answer that runs, else of the connection."""
        running = self._running()
        if event.names_unknown_lane:
            self._learn_that_there_are_no_lanes()
            failure = ConnectionExpired("the server knows no lanes", began=False)
        elif len(running) == 1 and not isinstance(failure, ConnectionExpired):
            self._put(running[0], event)
            return
        self._fail_all(failure)
        self.abort("expired" if isinstance(failure, ConnectionExpired) else "error")

    def _learn_that_there_are_no_lanes(self) -> None:
        self.knows_no_lanes = True
        self.retire()

    def _fail_all(self, failure: LlmError) -> None:
        for box in self._running():
            box.fail(_as_seen_by(box, failure))

    def _running(self) -> list[Mailbox]:
        return [box for box in self._boxes.values() if box.lane.busy and not box.ended]


def _is_straggler(box: Mailbox, event: Event) -> bool:
    """Whether it is of the lane's last response: a new one begins with its creation, or is refused."""
    if event.response_id:
        return event.response_id == box.lane.response_id
    return not box.response_id and event.type != "response.created" and not event.terminal


def _as_seen_by(box: Mailbox, failure: LlmError) -> LlmError:
    """The connection's failure as a turn's own: one that had heard nothing was not the cause of any."""
    if isinstance(failure, ConnectionExpired):
        return ConnectionExpired(str(failure), began=box.began)
    if isinstance(failure, BrokenStream) or not box.began:
        return BrokenStream(str(failure), began=box.began)
    return failure
