"""How many connections an endpoint needs, from what was asked of it lately. Pure: the caller brings the clock."""

from __future__ import annotations

import math
from collections import deque

# The busiest ten seconds of the last ten minutes: a shorter span would take two questions in one second for a rate.
SPAN_S = 10.0
KEPT_SPANS = 60
KEPT_DURATIONS = 500
SPARE = 1.3
# HTTP/2 peers allow at least so many streams (RFC 9113, 6.5.2); httpx does not tell how many it is.
STREAMS = 100


class Demand:
    """Peak rate × P99 duration × 1.3 (Little's law with room), within bounds."""

    def __init__(self) -> None:
        self._spans: deque[tuple[int, int]] = deque(
            maxlen=KEPT_SPANS
        )  # number of the span, answers begun in it
        self._durations: deque[float] = deque(maxlen=KEPT_DURATIONS)

    def began(self, now: float) -> None:
        """An answer was asked for."""
        span = int(now // SPAN_S)
        before = self._spans.pop()[1] if self._spans and self._spans[-1][0] == span else 0
        self._spans.append((span, before + 1))

    def ended(self, duration_s: float) -> None:
        """An answer has held its connection for so long."""
        self._durations.append(duration_s)

    def peak_per_s(self, now: float) -> float:
        """Answers begun a second, in the busiest span."""
        oldest = int(now // SPAN_S) - KEPT_SPANS
        return max((count for span, count in self._spans if span > oldest), default=0) / SPAN_S

    def long_s(self) -> float:
        """How long 99 of 100 answers take at most."""
        times = sorted(self._durations)
        return times[min(int(len(times) * 0.99), len(times) - 1)] if times else 0.0

    def connections(self, now: float, most: int, streams: int = 1) -> int:
        """How many to keep open, at least one; `streams` is how many answers share one."""
        needed = math.ceil(self.peak_per_s(now) * self.long_s() * SPARE)
        return max(1, math.ceil(min(needed, most) / streams))
