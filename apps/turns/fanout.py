"""The live text of one turn on its way to buffer and sockets: first tokens at once, then one frame in 50 ms."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from apps.conversations.commands import OpenedTurn
from apps.turns.between.buffer import APPEND_DEADLINE_S, Held, StreamBuffer
from apps.turns.between.switchboard import Switchboard
from apps.wire.protocol import DELTA_INTERVAL_S, PROMPT_PIECES, WATCH_INTERVAL_S, LiveTurn, TurnEnd
from apps.wire.publish import Audience
from apps.wire.server_frames import Activity, Delta, TurnEnded, TurnStarted
from apps.wire.texts import storable, utf16_length

# The reader's pause and this clock differ by the time of one store: a piece that is so little too soon would wait for
# the tick, and cost a wake of its own.
EARLY_S = 0.01
# With nothing to send, the buffer is still asked this often whether the turn was stopped or taken elsewhere.
CHECK_INTERVAL_S = 0.5
# A Redis that lost its data knows nobody who listens in another process, until each has looked and said so again.
UNKNOWN_LISTENERS_S = 10.0


@dataclass(frozen=True, slots=True)
class Reactions:
    """What the runner does when a flush learns that the turn must end."""

    lost: Callable[[], None]
    taken_over: Callable[[], None]
    stopped: Callable[[int], None]


class Fanout:
    """Owned by the runner of the turn. No delta is sent after `end`."""

    def __init__(
        self,
        switchboard: Switchboard,
        buffer: StreamBuffer,
        *,
        conversation: str,
        opened: OpenedTurn,
        owner_version: int,
        reactions: Reactions,
    ) -> None:
        self._switchboard = switchboard
        self._buffer = buffer
        self._conversation = conversation
        self._opened = opened
        self._owner_version = owner_version
        self._reactions = reactions
        self._text = ""
        self._sent = 0  # characters sent to customers
        self._sent_units = 0
        self._sent_bytes = 0
        self._watched = 0  # characters sent to watchers
        self._watched_units = 0
        self._watched_at = 0.0
        self._flushes = 0
        self._flushed_at = 0.0
        self._lock = asyncio.Lock()
        self._settled = asyncio.Event()
        self._stirred = asyncio.Event()  # `tick` has something to do
        self._holders = 0
        self._free = asyncio.Event()
        self._free.set()
        self._ended = False
        self._remote_customers = True
        self._remote_watchers = True
        self._listeners_unknown_until = 0.0
        self._activity = ("", "")

    @property
    def sent_text(self) -> str:
        """What the customer's sockets have been given."""
        return self._text[: self._sent]

    def view(self) -> LiveTurn:
        """The turn as somebody who joins now must see it."""
        o = self._opened
        return LiveTurn(
            turn=o.turn,
            part=o.part,
            handle=o.fence,
            place=o.place,
            text=self.sent_text,
            activity=self._activity[0],
            subject=self._activity[1],
        )

    def hold(self) -> bool:
        """Stops showing text until as many calls of `release`; false when some was shown already."""
        if self._sent or self._ended:
            return False
        self._holders += 1
        self._free.clear()
        return True

    def release(self) -> None:
        """What was held back goes with the next flush."""
        self._holders -= 1
        if self._holders == 0:
            self._free.set()
            self._stirred.set()

    async def start(self) -> None:
        """Tells that the turn begins, unless it has ended, and takes the buffer; lost where a newer fence has it."""
        if self._ended:
            return
        o = self._opened
        frame = TurnStarted(
            conversation=self._conversation, turn=o.turn, part=o.part, handle=o.fence, place=o.place
        )
        self._to_both(frame)
        async with self._lock:
            if not await self._buffer.begin(self._conversation, o.fence, o.turn, o.part):
                self._reactions.lost()

    def act(self, activity: str, subject: str) -> None:
        """Tells what the assistant does before its first word."""
        self._activity = (activity, subject)
        frame = Activity(
            handle=self._opened.fence, activity=activity, subject=subject, conversation=self._conversation
        )
        self._to_both(frame)

    async def say(self, text: str) -> None:
        """Adds text. The first pieces, and what comes when a frame is due, leave before this returns; the rest with the
        next tick.
        """
        self._text += storable(text)
        if self._flushes < PROMPT_PIECES or self._due_s() <= EARLY_S:
            await self.flush()
        if self._sent != len(self._text):
            self._stirred.set()

    async def flush(self) -> None:
        """Buffers what is new, then sends it. Does nothing while held or after the end."""
        async with self._lock:
            if not self._may_send() or self._sent == len(self._text):
                return
            text, upto = self._text[self._sent :], len(self._text)
            held = await self._store(text)
            # The turn may have been stopped while Redis answered.
            if not self._may_send() or (held is not None and self._must_end(held)):
                return
            self._flushes += 1
            self._flushed_at = time.monotonic()
            self._send_customers(text, upto)
            self._send_watchers(force=self._flushes == 1)

    async def tick(self) -> None:
        """Sends what `say` has left once it is time, until `settle`. Ends by itself: no cancellation can be lost inside
        a Redis call.
        """
        checked = time.monotonic()
        while not self._settled.is_set():
            await _set_within(self._stirred, self._idle_s(checked))
            self._stirred.clear()
            if self._sent != len(self._text) and not await _set_within(self._settled, self._due_s()):
                await self.flush()
            self._send_watchers()
            if time.monotonic() - checked >= CHECK_INTERVAL_S:
                checked = time.monotonic()
                await self._check()

    def settle(self) -> None:
        """The model says nothing more: `tick` ends, and what is left goes with `finish`."""
        self._settled.set()
        self._stirred.set()

    async def finish(self) -> None:
        """Sends what is left; while a newer message is being stored, waits for whether it takes the turn's place."""
        await self._free.wait()
        await self.flush()

    def _idle_s(self, checked: float) -> float:
        """Until what the watchers lack, or the next look at the buffer, is due."""
        due = checked + CHECK_INTERVAL_S
        if self._watched != self._sent:
            due = min(due, self._watched_at + WATCH_INTERVAL_S)
        return max(0.0, min(due - time.monotonic(), WATCH_INTERVAL_S))

    def _due_s(self) -> float:
        """Until the next frame."""
        return max(0.0, self._flushed_at + DELTA_INTERVAL_S - time.monotonic())

    def _may_send(self) -> bool:
        return self._free.is_set() and not self._ended

    def end(self, end: TurnEnd, length: int | None = None) -> None:
        """Says that no further delta follows. Only the first call counts."""
        if self._ended:
            return
        self._send_watchers(force=True)
        self._ended = True
        self._free.set()
        kept = self._sent_units if length is None else length
        frame = TurnEnded(handle=self._opened.fence, end=end, conversation=self._conversation, length=kept)
        self._to_both(frame)

    async def _store(self, text: str) -> Held | None:
        held = await self._buffer.append(
            self._conversation, self._opened.fence, self._sent_bytes, text, time.time()
        )
        if held is None or not held.mine:
            return held
        if held.out_of_step:
            self._listeners_unknown_until = time.monotonic() + UNKNOWN_LISTENERS_S
            if not await self._begin_again(self._text[: self._sent] + text):
                self._reactions.lost()
            return held
        unknown = time.monotonic() < self._listeners_unknown_until
        self._remote_customers = held.remote_customers or unknown
        self._remote_watchers = held.remote_watchers or unknown
        return held

    async def _begin_again(self, text: str) -> bool:
        o = self._opened
        return await self._buffer.begin(
            self._conversation, o.fence, o.turn, o.part, text=text, deadline_s=APPEND_DEADLINE_S
        )

    async def _check(self) -> None:
        async with self._lock:
            if self._ended:
                return
            held = await self._store("")
            if held is not None:
                self._must_end(held)

    def _must_end(self, held: Held) -> bool:
        if not held.mine:
            self._reactions.lost()
        elif held.stop is not None:
            self._reactions.stopped(held.stop)
        elif held.owner_version > self._owner_version:
            self._reactions.taken_over()
        else:
            return False
        return True

    def _send_customers(self, text: str, upto: int) -> None:
        delta = Delta(handle=self._opened.fence, offset=self._sent_units, text=text)
        self._switchboard.send(Audience.CUSTOMERS, self._conversation, delta, abroad=self._remote_customers)
        self._sent = upto
        self._sent_units += utf16_length(text)
        self._sent_bytes += len(text.encode())

    def _send_watchers(self, *, force: bool = False) -> None:
        due = time.monotonic() - self._watched_at >= WATCH_INTERVAL_S
        if self._ended or self._watched == self._sent or not (due or force):
            return
        text = self._text[self._watched : self._sent]
        delta = Delta(
            handle=self._opened.fence, offset=self._watched_units, text=text, conversation=self._conversation
        )
        self._switchboard.send(Audience.WATCHERS, self._conversation, delta, abroad=self._remote_watchers)
        self._watched = self._sent
        self._watched_units += utf16_length(text)
        self._watched_at = time.monotonic()

    def _to_both(self, frame: TurnStarted | Activity | TurnEnded) -> None:
        self._switchboard.send_all(self._conversation, frame)


async def _set_within(event: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True
