"""The stages of one turn, in milliseconds from the receipt of the question: the same names on every transport."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, NamedTuple

# In the order in which a cold turn goes through them. What a turn had no need of took 0 ms.
STAGES: Final = (
    "dns", "tcp", "tls", "gateway", "receive", "auth", "rules", "profile", "retrieval", "cache", "context", "queue",
    "first_token", "first_frame", "painted", "last_token",
)  # fmt: skip
# What happened before the turn began, and so only once where an answer needs several parts.
ONCE: Final = frozenset({"gateway", "receive", "auth"})
# Marks of an answer begun ahead, which only its first part can have used.
OF_AHEAD: Final = frozenset({"asked_early_ms", "speculation", "speculation_saved_ms"})
# No client that tells the truth reports more: its own text is given up long before.
PAINT_LIMIT_MS: Final = 600_000.0
# Upper bounds of the classes in which the gaps between two pieces of an answer are counted; the last has none.
GAP_BOUNDS_MS: Final = (1, 2, 5, 10, 20, 30, 50, 75, 100, 150, 250, 500, 1_000)


class Bar(NamedTuple):
    """A stage as it is shown. `start_ms` is that of its longest piece, `ms` the sum of all."""

    name: str
    start_ms: float
    ms: float

    @property
    def end_ms(self) -> float:
        return self.start_ms + self.ms


@dataclass(slots=True)
class Waterfall:
    """Collects stages and marks. `marks` says what was warm, such as {"profile": "warm"}."""

    started: float = field(default_factory=time.monotonic)
    marks: dict[str, str] = field(default_factory=dict)
    gaps: list[int] = field(default_factory=lambda: [0] * (len(GAP_BOUNDS_MS) + 1))
    painted_ms: float | None = None
    part_ms: float = 0.0  # when the part of now began; 0 of the first
    _asked_ms: float | None = None
    _spoke: float | None = None
    _pieces: list[Bar] = field(default_factory=list)
    _first_token: float | None = None
    _last_token: float = 0.0

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Times a block, also when it raises."""
        begun = time.monotonic()
        try:
            yield
        finally:
            self.add(name, begun, time.monotonic())

    def add(self, name: str, begun: float, ended: float) -> None:
        """A piece of a stage between two monotonic times, in seconds."""
        self._pieces.append(Bar(name, (begun - self.started) * 1000, (ended - begun) * 1000))

    def asked_early(self, early: Waterfall, spoke: float) -> None:
        """The model was asked before the turn was open, and first spoke at `spoke`, monotonic. The stages of that,
        since the same receipt, are those which the first token waited for: they take the place of the turn's own.
        """
        names = {piece.name for piece in early._pieces}
        self._pieces = [piece for piece in self._pieces if piece.name not in names] + early._pieces
        self._asked_ms, self._spoke = max(piece.end_ms for piece in early._pieces), spoke

    def elapsed_ms(self) -> float:
        """Since the receipt of the question."""
        return (time.monotonic() - self.started) * 1000

    def token(self) -> float | None:
        """A piece of the answer came: the seconds since the one before, None for the first.

        The stage of the first one began where the model was asked, which is where the last stage before it ended. What
        a model said early and was kept until the question was stored is no time of the model's.
        """
        before, self._last_token = self._last_token, time.monotonic()
        if self._first_token is None:
            self._first_token = self._last_token
            asked_ms = self._asked_ms
            if asked_ms is None:
                asked_ms = max((piece.end_ms for piece in self._pieces), default=0.0)
            spoke = self._first_token if self._spoke is None else self._spoke
            self.add("first_token", asked_ms / 1000 + self.started, spoke)
            return None
        gap = self._last_token - before
        self.gaps[bisect_left(GAP_BOUNDS_MS, gap * 1000)] += 1
        return gap

    def next_part(self) -> None:
        """The answer broke off and begins again: what was measured of it is another record's."""
        self.part_ms = self.elapsed_ms()
        self._pieces = [piece for piece in self._pieces if piece.name in ONCE]
        self.gaps = [0] * len(self.gaps)
        self.marks = {name: value for name, value in self.marks.items() if name not in OF_AHEAD}
        self.painted_ms, self._first_token, self._asked_ms, self._spoke = None, None, None, None

    def paint(self, ms: float) -> bool:
        """The client showed the first text so long after the customer submitted the question. Only the first counts."""
        if self.painted_ms is not None or self._first_token is None:
            return False
        self.painted_ms = bounded_paint(ms, self.bar("first_frame").end_ms)
        return True

    def bar(self, name: str) -> Bar:
        """The stage as it is shown; where it did not happen, nothing at the receipt."""
        pieces = [piece for piece in self._pieces if piece.name == name]
        if not pieces:
            return Bar(name, 0.0, 0.0)
        return Bar(name, max(pieces, key=lambda piece: piece.ms).start_ms, sum(piece.ms for piece in pieces))

    def bars(self) -> tuple[Bar, ...]:
        """Every stage in order. One that did not happen has 0 ms where the one before it ended."""
        bars: list[Bar] = []
        for name in STAGES:
            bar = self._told(name)
            bars.append(Bar(name, bars[-1].end_ms, 0.0) if bar.ms == 0.0 and bars else bar)
        return tuple(bars)

    def _told(self, name: str) -> Bar:
        if name == "painted":
            return paint_bar(self.bar("first_frame").end_ms, self.painted_ms)
        if name == "last_token" and self._first_token is not None:
            start_ms = (self._first_token - self.started) * 1000
            return Bar(name, start_ms, (self._last_token - self._first_token) * 1000)
        return self.bar(name)

    def ttft_ms(self) -> float | None:
        """Receipt of the question, or the beginning of a later part, to the model's first token; None where nothing was
        said.
        """
        return None if self._first_token is None else (self._first_token - self.started) * 1000 - self.part_ms

    def added_ms(self) -> float | None:
        """What we add to the model's own time: receipt to the request's last byte, and first token to first frame, with
        what it was kept for because its question was not stored yet. Of a later part from where that began.

        The time for which the search alone was waited for is left out, since that is a figure of its own.
        """
        if self._first_token is None:
            return None
        search, facts = self.bar("retrieval"), self.bar("profile")
        alone_ms = max(0.0, search.end_ms - max(facts.end_ms, search.start_ms))
        asked_ms, spoke_ms = self.bar("first_token").start_ms, self.bar("first_token").end_ms
        kept_ms = (self._first_token - self.started) * 1000 - spoke_ms
        return asked_ms - self.part_ms - alone_ms + kept_ms + self.bar("first_frame").ms


def bounded_paint(ms: float, first_frame_end_ms: float) -> float:
    """What a client reports, no less than the server's own part of it and no more than the limit."""
    return min(max(ms, first_frame_end_ms), PAINT_LIMIT_MS)


def paint_bar(first_frame_end_ms: float, painted_ms: float | None) -> Bar:
    """From the first frame to the screen. Both ways over the network are in it: no clock tells them apart."""
    return Bar("painted", first_frame_end_ms, max(0.0, (painted_ms or 0.0) - first_frame_end_ms))
