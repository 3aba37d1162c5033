"""What may be asked beyond the first request of a turn. Pure: the caller brings the clock (monotonic seconds)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum

from apps.engine.bucket import TokenBucket


class Extra(StrEnum):
    """Why one more request is made for the same turn."""

    AGAIN = "again"  # at the same endpoint: the connection or the chain was gone
    ELSEWHERE = "elsewhere"  # the endpoint failed
    HEDGE = "hedge"  # the endpoint is late


class Allowance:
    """Grows by `share` a turn and `per_s` a second up to `most`, with which it begins; each extra takes one."""

    def __init__(self, share: float, most: float, per_s: float = 0.0) -> None:
        self._share = share
        self._bucket = TokenBucket(most, per_s)

    def turn(self, now: float) -> None:
        """A turn begins."""
        self._bucket.fill(now)
        self._bucket.add(self._share)

    def has_one(self, now: float) -> bool:
        """Whether `take` would succeed."""
        self._bucket.fill(now)
        return self._bucket.left >= 1.0

    def take(self, now: float) -> bool:
        """Takes one, if there is one."""
        return self._bucket.take(1.0, now)


_grants: ContextVar[Callable[[Extra], bool] | None] = ContextVar("extra requests", default=None)


@contextmanager
def granted_by(grants: Callable[[Extra], bool]) -> Iterator[None]:
    """Providers of this task, or of a task it starts, ask `grants` before they send a request again."""
    token = _grants.set(grants)
    try:
        yield
    finally:
        _grants.reset(token)


def granted(extra: Extra) -> bool:
    """Whether one more request may be made for the turn that runs here. Outside of turns it may."""
    grants = _grants.get()
    return grants is None or grants(extra)
