"""The process's Redis client. Every caller brings its deadline, and says what happens without Redis."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from django.conf import settings
from redis import Redis as BlockingRedis
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from apps.telemetry import instruments

OPERATION_TIMEOUT_S = 1.0
FAILURES_BEFORE_REST = 3
REST_S = 1.0

T = TypeVar("T")

# What a caller may catch: the server is down, slow, full or restarting.
Unreachable = (RedisError, OSError, TimeoutError)


def connect() -> Redis:
    """A client with a bounded pool; the owner closes it. Connects on first use.

    It has no time-out of its own: redis-py would write under `asyncio.wait_for`, which before Python 3.12 swallows
    a cancellation that comes as the write ends. One in eight was lost so in a busy loop, and a turn never ended.
    """
    return Redis.from_url(
        settings.REDIS_URL,
        max_connections=100,
        socket_timeout=None,
        socket_connect_timeout=OPERATION_TIMEOUT_S,
        health_check_interval=30,
        # One more try finds a connection that a restart has closed; more would only delay the answer "down".
        retry=Retry(NoBackoff(), 1),
        decode_responses=False,
    )


def connect_blocking() -> BlockingRedis:
    """The worker's client; whoever opens it closes it. Connects on first use."""
    return BlockingRedis.from_url(
        settings.REDIS_URL, socket_timeout=OPERATION_TIMEOUT_S, socket_connect_timeout=OPERATION_TIMEOUT_S
    )


def ask_blocking(call: Callable[[BlockingRedis], T], *, operation: str, otherwise: T) -> T:
    """What Redis answers within its time-outs; else `otherwise`, counted as a failure of the operation."""
    try:
        with connect_blocking() as redis:
            return call(redis)
    except Unreachable:
        instruments.redis_failures.labels(operation).inc()
        return otherwise


@dataclass(slots=True)
class Breaker:
    """Open for a second after three failures in a row: whoever can do without Redis then does so at once."""

    _failures: int = 0
    _resting_until: float = 0.0  # monotonic

    @property
    def open(self) -> bool:
        """Whether calls are to be left out now."""
        return time.monotonic() < self._resting_until

    def note(self, *, failed: bool) -> None:
        """Takes note of how a call ended. The first failure after a rest begins another."""
        self._failures = self._failures + 1 if failed else 0
        if self._failures >= FAILURES_BEFORE_REST:
            self._resting_until = time.monotonic() + REST_S


class LayerConnections:
    """Counts those of the channel layer. `connected` is a `redis_connect_func` of redis-py."""

    def __init__(self) -> None:
        self.made = 0

    async def connected(self, connection: Any) -> None:
        await connection.on_connect()
        self.made += 1


# A further connection means that the one before was cut, and that something may be missed.
layer_connections = LayerConnections()
