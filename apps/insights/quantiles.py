"""The middle and the tail of what was measured. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from apps.telemetry.waterfall import GAP_BOUNDS_MS

SHARES = (0.5, 0.95, 0.99)


@dataclass(frozen=True, slots=True)
class Quantiles:
    """In milliseconds, of `count` measurements."""

    count: int
    p50: float
    p95: float
    p99: float


def of_values(values: Iterable[float]) -> Quantiles | None:
    """By the nearest rank; None of nothing."""
    ranked = sorted(values)
    if not ranked:
        return None
    p50, p95, p99 = (ranked[math.ceil(share * len(ranked)) - 1] for share in SHARES)
    return Quantiles(len(ranked), round(p50, 1), round(p95, 1), round(p99, 1))


def of_gaps(counts: Sequence[int]) -> Quantiles | None:
    """Of gaps counted by the classes of `GAP_BOUNDS_MS`, evenly inside a class. The open class counts as its bound."""
    total = sum(counts)
    if not total:
        return None
    p50, p95, p99 = (_at(share * total, counts) for share in SHARES)
    return Quantiles(total, round(p50, 1), round(p95, 1), round(p99, 1))


def summed(rows: Iterable[Sequence[int]]) -> list[int]:
    """Counts of many turns together."""
    total = [0] * (len(GAP_BOUNDS_MS) + 1)
    for counts in rows:
        for index, count in enumerate(counts):
            total[index] += count
    return total


def _at(rank: float, counts: Sequence[int]) -> float:
    below = 0.0
    for lower, upper, count in zip((0, *GAP_BOUNDS_MS), GAP_BOUNDS_MS, counts, strict=False):
        if count and below + count >= rank:
            return lower + (upper - lower) * (rank - below) / count
        below += count
    return float(GAP_BOUNDS_MS[-1])
