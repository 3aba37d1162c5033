"""A bucket of tokens that refills evenly. Pure: the caller brings the clock (monotonic seconds)."""

from __future__ import annotations


class TokenBucket:
    """Begins with `burst` tokens and gets `a_second` back up to that. `left` is as of the last `fill`."""

    __slots__ = ("_at", "a_second", "burst", "left")

    def __init__(self, burst: float, a_second: float, now: float = 0.0) -> None:
        self.burst = burst
        self.a_second = a_second
        self.left = float(burst)
        self._at = now

    def fill(self, now: float) -> None:
        """Adds what has come since the last time."""
        self.left = min(self.burst, self.left + max(0.0, now - self._at) * self.a_second)
        self._at = now

    def take(self, tokens: float, now: float) -> bool:
        """Takes so many, if there are so many."""
        self.fill(now)
        if tokens > self.left:
            return False
        self.left -= tokens
        return True

    def add(self, tokens: float) -> None:
        """So many more, up to a full bucket."""
        self.left = min(self.burst, self.left + tokens)

    @property
    def wait_s(self) -> float:
        """Seconds from the last `fill` until there is one token; 0 where there is."""
        return max(0.0, 1 - self.left) / self.a_second
