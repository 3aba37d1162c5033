"""Whether a figure came back. Pure: rows of figures at rest in, a verdict for each figure out."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

Figures = Mapping[str, float]

# Growth over the whole run that is still noise: pools open what a peak needs, allocators keep what they freed.
_NOISE = {
    "asyncio tasks": 4.0,
    "threads": 4.0,
    "web: file descriptors": 12.0,
    "web: system sockets": 12.0,
    "worker: file descriptors": 4.0,
    "worker: system sockets": 4.0,
    "Redis connections": 12.0,
    "PostgreSQL connections": 6.0,
    "model server: connections": 8.0,
    "model sockets": 6.0,
    "model server: sockets": 6.0,
    "outbox rows": 2.0,
    "leases": 0.0,
}
# At rest these are as they were before anybody came.
_AS_BEFORE = (
    "authenticated clients",
    "lines over HTTP",
    "turns running",
    "audiences listened to",
    "model requests in flight",
    "model server: requests open",
    "lanes busy",
    "turns live in the database",
)
_BOUNDED = ("contexts MiB", "answers kept MiB")
# What a MiB of those comes to in memory: by its own estimate of its size, and by the objects it consists of.
_HELD = {"web: heap in use MiB": 2.0, "web: Python objects, thousands": 20.0}
# Of the base line, over the window. What is in use tells a leak; an allocator also keeps what lies between.
_MEMORY_SHARE = 0.02
_MEMORY_FLOOR = 3.0
_RESIDENT = ("web: RSS MiB", "web: PSS MiB", "worker: PSS MiB")
_RESIDENT_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class Verdict:
    """`base` and `end` at rest, `most` under load; the slope is the median of all pairs after the base line."""

    figure: str
    base: float
    most: float
    end: float
    slope_per_min: float
    leaks: bool
    why: str


def judge(before: Figures, rest: Sequence[tuple[float, Figures]], load: Sequence[Figures]) -> list[Verdict]:
    """`before` anybody came; `rest` are (minutes, figures) from the base line on, the last with all long gone."""
    names = {name: None for _, figures in rest for name in figures}
    return [_verdict(name, before, rest, load) for name in names]


def _verdict(
    name: str, before: Figures, rest: Sequence[tuple[float, Figures]], load: Sequence[Figures]
) -> Verdict:
    points = [(minute, figures.get(name, 0.0)) for minute, figures in rest]
    base = before.get(name, 0.0) if name in _AS_BEFORE else points[0][1]
    end = points[-1][1]
    most = max([figures.get(name, 0.0) for figures in load], default=end)
    slope = slope_per_min(points)
    minutes = points[-1][0] - points[0][0]
    filled = sum(max(0.0, rest[-1][1].get(kept, 0.0) - rest[0][1].get(kept, 0.0)) for kept in _BOUNDED)
    leaks, why = _leaks(name, base, end, slope * minutes, filled * _HELD.get(name, 0.0))
    return Verdict(name, base, most, end, slope, leaks, why)


def _leaks(name: str, base: float, end: float, grown: float, held: float) -> tuple[bool, str]:
    """`held` is what bounded caches have taken in meanwhile."""
    if name in _AS_BEFORE:
        return end > base, "as before anybody came"
    if name == "Redis keys without an end":
        return end > base + 1, "may not grow"
    if name.startswith("Redis keys"):
        return False, "each ends by itself"
    if name in _BOUNDED:
        return False, "bounded by its capacity"
    if name in _RESIDENT:
        allowed = base * _RESIDENT_SHARE
        return (
            grown > allowed and end - base > allowed,
            f"within {allowed:.1f}: what is freed may stay resident",
        )
    if name.endswith(("MiB", "thousands")):
        allowed = max(_MEMORY_FLOOR, base * _MEMORY_SHARE) + held
        return grown > allowed and end - base > allowed, f"within {allowed:.1f}"
    allowed = _NOISE.get(name, 0.0)
    return end > base + allowed, f"within {allowed:g}" if allowed else "no more than at the base line"


def slope_per_min(points: Sequence[tuple[float, float]]) -> float:
    """The median slope of all pairs (Theil and Sen): one odd look does not bend it."""
    slopes = [(y2 - y1) / (x2 - x1) for (x1, y1), (x2, y2) in combinations(points, 2) if x2 > x1]
    return statistics.median(slopes) if slopes else 0.0
