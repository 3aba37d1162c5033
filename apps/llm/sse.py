"""Server-sent events from bytes, incrementally. Pure: no I/O, no JSON, no knowledge of what the events mean.

Follows the WHATWG event-stream format; lines end at CR, LF or CRLF and nowhere else (U+2028 may stand in a text).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"
LIMIT_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class SseEvent:
    """One dispatched event. `name` is "" where the stream gave none."""

    name: str
    data: str


class SseOverflow(ValueError):
    """An event grew beyond the parser's limit; the stream cannot be followed any further."""


class SseParser:
    """Feed it chunks as they come; any chunking of the same bytes gives the same events."""

    def __init__(self, limit_bytes: int = LIMIT_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._partial = bytearray()
        self._name = b""
        self._lines: list[bytes] = []
        self._held_bytes = 0
        self._after_cr = False
        self._at_start = True

    def feed(self, chunk: bytes) -> Iterator[SseEvent]:
        """Yields the events this chunk completes; iterate to the end. Raises `SseOverflow`."""
        if self._after_cr and chunk[:1] == b"\n":
            chunk = chunk[1:]
            self._after_cr = False
        if not chunk:
            return
        self._after_cr = chunk.endswith(b"\r")
        *complete, rest = _LINE_END.split(chunk)
        for piece in complete:
            self._hold(piece)
            event = self._line(bytes(self._partial))
            self._partial.clear()
            if event is not None:
                yield event
        self._hold(rest)

    def _hold(self, piece: bytes) -> None:
        self._partial += piece
        if self._held_bytes + len(self._partial) > self._limit_bytes:
            raise SseOverflow(f"an event of more than {self._limit_bytes} bytes")

    def _line(self, line: bytes) -> SseEvent | None:
        if self._at_start:
            self._at_start = False
            line = line.removeprefix(_BOM)
        if not line:
            return self._dispatch()
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._lines.append(value)
            self._held_bytes += len(value) + 1
        elif field == b"event":
            self._name = value
        return None

    def _dispatch(self) -> SseEvent | None:
        lines, name = self._lines, self._name
        self._lines, self._name, self._held_bytes = [], b"", 0
        if not lines:
            return None
        # Decoded after joining: a character cut by a chunk border is whole again here.
        return SseEvent(name.decode("utf-8", "replace"), b"\n".join(lines).decode("utf-8", "replace"))
