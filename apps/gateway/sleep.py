"""When a customer's line may sleep. Pure: the caller brings the clock (monotonic seconds)."""

from __future__ import annotations

IDLE_S = 600.0


class Idleness:
    """Since when nobody looks and nothing is said."""

    def __init__(self, now: float) -> None:
        self._since: float | None = None
        self._busy_at = now

    def busy(self, now: float) -> None:
        """Something was asked or told."""
        self._busy_at = now

    def seen(self, *, hidden: bool, now: float) -> None:
        """What the page says of itself."""
        if not hidden:
            self._since = None
        elif self._since is None:
            self._since = now

    def long_enough(self, now: float) -> bool:
        """Whether the page was hidden and nothing was said for ten minutes."""
        return self._since is not None and now - max(self._since, self._busy_at) >= IDLE_S
