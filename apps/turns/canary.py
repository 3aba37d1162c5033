"""The canary: a task that beat sends every 5 s. What a worker has stamped last tells whether tasks get done.

Nothing a customer sees waits for one; mails, new articles and preloads do.
"""

from __future__ import annotations

from typing import Final

from redis import Redis as BlockingRedis
from redis.asyncio import Redis

LATE_S: Final = 30.0
_KEY: Final = "canary"
# Redis counts the age, so that clocks need not agree; an older one is as good as none.
_KEPT_MS: Final = 24 * 3600 * 1000


def stamp(redis: BlockingRedis) -> None:
    """By the worker that had the task. Raises what redis-py raises."""
    redis.set(_KEY, 1, px=_KEPT_MS)


async def age_s(redis: Redis) -> float | None:
    """Since a worker last did the task; None where none has, in a day. Raises `Unreachable` errors."""
    left_ms = await redis.pttl(_KEY)
    return (_KEPT_MS - left_ms) / 1000 if left_ms >= 0 else None
