"""Server-sent events as bytes, in every legal form and a few that are not."""

from __future__ import annotations

import random
from collections.abc import Iterator

import msgspec

from tests.fakes.upstream.profile import Chunking, Dialect, LineEnd
from tests.fakes.upstream.shape import Json

LINE_ENDS = {LineEnd.LF: b"\n", LineEnd.CRLF: b"\r\n", LineEnd.CR: b"\r"}
LARGEST_RANDOM_CHUNK = 24


class Framer:
    """Turns JSON values into event bytes of one dialect. JSON is UTF-8, never `\\u` escapes.

    With `named` an event carries its own `type` as its name.
    """

    def __init__(self, dialect: Dialect, rng: random.Random, *, named: bool = False) -> None:
        self._named = named
        self._dialect = dialect
        self._rng = rng
        self._end = LINE_ENDS[dialect.line_end]
        self._count = 0

    def event(self, value: Json) -> bytes:
        """One event, with whatever the dialect puts round it."""
        self._count += 1
        if self._dialect.obfuscation:
            value = {**value, "obfuscation": "x" * self._rng.randint(1, 16)}
        data = msgspec.json.encode(value)
        around = b""
        if self._dialect.comments:
            around += self.comment("tick")
        if self._dialect.unknown_events:
            around += self._lines(
                b"event: ping", b"id: %d" % self._count, b"retry: 3000", b'data: {"ping":1}'
            )
            around += self._lines(b"event: nothing")  # no data: not an event at all
        name = value.get("type") if self._named else None
        return around + (b"event: %s" % str(name).encode() + self._end if name else b"") + self.raw(data)

    def raw(self, data: bytes) -> bytes:
        """An event with exactly this data."""
        field = b"data: " if self._dialect.space else b"data:"
        if self._dialect.two_lines and (cut := data.find(b",")) > 0:
            return self._lines(field + data[: cut + 1], field + data[cut + 1 :])
        return self._lines(field + data)

    def comment(self, text: str) -> bytes:
        return self._lines(b": " + text.encode())

    def _lines(self, *lines: bytes) -> bytes:
        return b"".join(line + self._end for line in (*lines, b""))


def cut(data: bytes, chunking: Chunking, rng: random.Random) -> Iterator[bytes]:
    """The writes for some bytes."""
    match chunking:
        case Chunking.BYTES:
            yield from (data[at : at + 1] for at in range(len(data)))
        case Chunking.RANDOM:
            while data:
                size = rng.randint(1, LARGEST_RANDOM_CHUNK)
                yield data[:size]
                data = data[size:]
        case Chunking.EVENT | Chunking.BURST:
            yield data
