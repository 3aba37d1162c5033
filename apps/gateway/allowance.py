"""What somebody may do before they must wait, counted here and corrected by what all processes have counted.

Pure: the caller brings the clock (monotonic seconds) and carries the numbers to and fro.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from apps.engine.bucket import TokenBucket

# Whoever acted least lately is forgotten first, and begins anew with a full bucket.
BUCKETS = 20_000


@dataclass(frozen=True, slots=True)
class Bound:
    """`burst` actions at once, then `a_second`. `of` says of what it is a bound, `key` of which one."""

    of: str
    key: str
    burst: int
    a_second: float


@dataclass(frozen=True, slots=True)
class Wait:
    """The bound that was reached, and the seconds until it allows one action."""

    of: str
    seconds: float


class Allowances:
    """Buckets of tokens by what they bound."""

    def __init__(self) -> None:
        self._buckets: OrderedDict[Bound, TokenBucket] = OrderedDict()
        self._untold: Counter[Bound] = Counter()  # taken here since the others were told

    def take(self, bounds: Sequence[Bound], now: float) -> Wait | None:
        """Takes one token of each; or of none, and tells the longest wait."""
        buckets = [self._filled(bound, now) for bound in bounds]
        waits = [
            Wait(bound.of, bucket.wait_s)
            for bound, bucket in zip(bounds, buckets, strict=True)
            if bucket.left < 1
        ]
        if waits:
            return max(waits, key=lambda wait: wait.seconds)
        for bucket in buckets:
            bucket.left -= 1
        self._untold.update(bounds)
        return None

    def to_tell(self) -> Mapping[Bound, int]:
        """What was taken of which since the last call."""
        told, self._untold = self._untold, Counter()
        return told

    def heard(self, left: Iterable[tuple[Bound, float]], now: float) -> None:
        """What all have left together, as of the last `to_tell`: never more than that is left here."""
        for bound, tokens in left:
            bucket = self._filled(bound, now)
            bucket.left = min(bucket.left, tokens - self._untold[bound])

    def _filled(self, bound: Bound, now: float) -> TokenBucket:
        bucket = self._buckets.get(bound)
        if bucket is None:
            bucket = self._buckets[bound] = TokenBucket(bound.burst, bound.a_second, now)
            if len(self._buckets) > BUCKETS:
                self._buckets.popitem(last=False)
        self._buckets.move_to_end(bound)
        bucket.fill(now)
        return bucket
