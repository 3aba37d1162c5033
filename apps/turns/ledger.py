"""Records of ended turns on their way to the database: off the reply path, in batches, never more than fit."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict, deque

from django.db import DatabaseError, transaction

from apps.conversations.models import Conversation
from apps.stores.database import in_database
from apps.telemetry import instruments
from apps.telemetry.waterfall import bounded_paint
from apps.turns.between.switchboard import Switchboard
from apps.turns.models import Turn
from apps.wire import protocol as wire
from apps.wire import server_frames as server
from apps.wire.publish import Audience

logger = logging.getLogger(__name__)

WAITING_ROWS = 2_000
BATCH_ROWS = 100  # on SQLite a longer transaction would hold up the writer of messages
PAUSE_S = 0.5  # what ends within it is written together, most paints of short answers included
AGAIN_S = 2.0
TRIES = 3
# Of turns that have ended, this many may still be reported as painted.
REMEMBERED = 1_000


class Ledger:
    """One a process. `keep` and `painted` never wait; `run` writes for as long as the process lives."""

    def __init__(self, switchboard: Switchboard) -> None:
        self._switchboard = switchboard
        self._rows: deque[Turn] = deque()
        self._paints: deque[Turn] = deque()  # of rows already taken to be written
        self._recent: OrderedDict[tuple[str, int], Turn] = OrderedDict()
        self._wake = asyncio.Event()
        self._writing = asyncio.Lock()

    def keep(self, row: Turn) -> None:
        """Shows the record to watching agents and stores it soon. Where too many wait it is dropped and counted."""
        self._show(row)
        if len(self._rows) >= WAITING_ROWS:
            instruments.dropped.labels("turn_records").inc()
            return
        self._rows.append(row)
        self._recent[row.conversation_id, row.handle] = row
        if len(self._recent) > REMEMBERED:
            self._recent.popitem(last=False)
        self._wake.set()

    def painted(self, conversation: str, handle: int, ms: float) -> bool:
        """The client showed the first text of an ended turn; false when this process does not know it."""
        row = self._recent.get((conversation, handle))
        if row is None:
            return False
        if row.painted_ms is not None or row.ttft_ms is None:
            return True
        row.painted_ms = bounded_paint(ms, row.first_frame_ms)
        instruments.painted_seconds.observe(row.painted_ms / 1000)
        self._show(row)
        if row not in self._rows:
            self._paints.append(row)
            self._wake.set()
        return True

    def unstored(self, conversation: str) -> Turn | None:
        """The conversation's newest record that the database does not hold yet."""
        return next((row for row in reversed(self._rows) if row.conversation_id == conversation), None)

    async def run(self) -> None:
        """Writes what has come, for ever."""
        while True:
            await self._wake.wait()
            await asyncio.sleep(PAUSE_S)
            await self.write()

    async def write(self) -> None:
        """Writes everything that waits now. What the database refuses again and again is dropped and counted."""
        async with self._writing:
            self._wake.clear()
            while self._rows or self._paints:
                rows = [self._rows.popleft() for _ in range(min(BATCH_ROWS, len(self._rows)))]
                paints = [self._paints.popleft() for _ in range(min(BATCH_ROWS, len(self._paints)))]
                await self._write(rows, paints)

    async def _write(self, rows: list[Turn], paints: list[Turn]) -> None:
        for attempt in range(TRIES):
            try:
                await in_database(_store, rows, paints)
            except DatabaseError:
                logger.exception("%d records of turns could not be stored", len(rows))
                if attempt + 1 < TRIES:
                    await asyncio.sleep(AGAIN_S)
            else:
                return
        instruments.dropped.labels("turn_records").inc(len(rows))

    def _show(self, row: Turn) -> None:
        self._switchboard.send(Audience.WATCHERS, row.conversation_id, waterfall_frame(row))


def waterfall_frame(row: Turn) -> server.Waterfall:
    """The record as watching agents see it."""
    return server.Waterfall(
        conversation=row.conversation_id,
        turn=row.turn,
        stages=tuple(wire.Stage(name=name, start_ms=start, ms=ms) for name, start, ms in row.bars()),
        marks=row.marks,
        part=row.part,
        painted_ms=row.painted_ms,
        added_ms=row.added_ms,
    )


def _store(rows: list[Turn], paints: list[Turn]) -> None:
    with transaction.atomic():
        wanted = {row.conversation_id for row in rows}
        known = set(Conversation.objects.filter(pk__in=wanted).values_list("pk", flat=True))
        Turn.objects.bulk_create([row for row in rows if row.conversation_id in known], ignore_conflicts=True)
        for row in paints:
            unseen = Turn.objects.filter(turn=row.turn, part=row.part, painted_ms=None)
            unseen.update(painted_ms=row.painted_ms)
