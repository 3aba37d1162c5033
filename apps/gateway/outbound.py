"""What waits to be sent to one client. A slow one makes its own text coarser, and nobody else's."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass

import msgspec

from apps.wire.publish import Encoded, Outgoing
from apps.wire.server_frames import Delta
from apps.wire.texts import utf16_length

# A client that lets this many frames or bytes pile up is cut off and resumes from what it has.
QUEUED_FRAMES = 2_000
QUEUED_BYTES = 1024 * 1024
# Text that a client which reports its paint may be sent ahead of it, in UTF-16 code units: some screens full.
AHEAD_UNITS = 4_096

_DELTA = '{"type":"delta"'
_FRAME_BYTES = 64  # of a delta, beside its text


@dataclass(frozen=True, slots=True)
class Close:
    """The last word to a client, as a WebSocket would close."""

    code: int
    reason: str


class Outbound:
    """Frames in their order. Deltas of one stream that wait behind each other become one frame."""

    def __init__(self) -> None:
        self._items: deque[tuple[Encoded | Close, int]] = deque()
        self._bytes = 0
        self._changed = asyncio.Event()
        self._closing = False
        self._reports = False
        self._handle = -1  # of the stream being sent
        self._sent_units = 0
        self._painted_units = 0

    def __len__(self) -> int:
        return len(self._items)

    @property
    def closing(self) -> bool:
        """Whether the last word was said, even if it has not been sent."""
        return self._closing

    def put(self, frame: Encoded | Close) -> bool:
        """Queues a frame; false when there is no room. Never waits. Nothing follows a close."""
        if self._closing:
            return True
        if isinstance(frame, Close):
            self._closing = True
            self._append(frame, 0)
            return True
        if self._items and (whole := _joined(self._items[-1][0], frame)) is not None:
            self._drop_last()
            frame = whole
        size = self._size(frame)
        if len(self._items) >= QUEUED_FRAMES or (self._items and self._bytes + size > QUEUED_BYTES):
            return False
        self._append(frame, size)
        return True

    def painted(self, handle: int, upto: int) -> None:
        """The client shows so much of a stream: as much may follow."""
        self._reports = True
        if handle == self._handle:
            self._painted_units = max(self._painted_units, upto)
            self._changed.set()

    async def get(self) -> Encoded | Close:
        """The next frame. Text far ahead of the paint waits as long as nothing else stands behind it."""
        while (frame := self.get_now()) is None:
            self._changed.clear()
            await self._changed.wait()
        return frame

    def get_now(self) -> Encoded | Close | None:
        """The same without waiting: None where nothing may go."""
        if not self._items or (len(self._items) == 1 and self._is_ahead()):
            return None
        frame, size = self._items.popleft()
        self._bytes -= size
        if (delta := _delta(frame)) is not None:
            self._follow(delta.handle)
            self._sent_units = delta.offset + utf16_length(delta.text)
        return frame

    def clear(self) -> None:
        """Forgets everything that waits, a last word too."""
        self._items.clear()
        self._bytes = 0
        self._closing = False

    def _is_ahead(self) -> bool:
        if not self._reports or (delta := _delta(self._items[0][0])) is None:
            return False
        return delta.handle == self._handle and self._sent_units - self._painted_units >= AHEAD_UNITS

    def _append(self, frame: Encoded | Close, size: int) -> None:
        self._items.append((frame, size))
        self._bytes += size
        self._changed.set()

    def _follow(self, handle: int) -> None:
        if handle != self._handle:
            self._handle, self._painted_units = handle, 0

    def _drop_last(self) -> None:
        _, size = self._items.pop()
        self._bytes -= size

    @staticmethod
    def _size(frame: Encoded) -> int:
        if isinstance(frame, Outgoing) and isinstance(frame.frame, Delta):
            return len(frame.frame.text.encode()) + _FRAME_BYTES
        return len(frame.binary)


def _joined(last: Encoded | Close, frame: Encoded) -> Outgoing | None:
    """Both deltas as one, where the second goes on where the first ends."""
    after = _delta(frame)
    before = _delta(last) if after is not None else None
    if before is None or after is None or before.handle != after.handle:
        return None
    if before.offset + utf16_length(before.text) != after.offset:
        return None
    return Outgoing(msgspec.structs.replace(before, text=before.text + after.text))


def _delta(frame: Encoded | Close) -> Delta | None:
    if isinstance(frame, Close):
        return None
    if isinstance(frame, Outgoing):
        return frame.frame if isinstance(frame.frame, Delta) else None
    # Of another process, which has encoded it.
    return msgspec.json.decode(frame.text, type=Delta) if frame.text.startswith(_DELTA) else None
