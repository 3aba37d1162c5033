"""The copies of kept answers in Redis, which all processes share. With Redis down each has its own."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from redis.asyncio import Redis

from apps.engine.cache import TTL_S, Answer, Scope
from apps.engine.deadlines import within
from apps.stores.redis import Breaker, Unreachable
from apps.telemetry import instruments

# A look-up waits so long at most, and the search runs meanwhile: a hit saves hundreds of milliseconds.
LOOK_DEADLINE_S = 0.05
BACKGROUND_DEADLINE_S = 0.5
MAX_ENTRIES = 2000  # of one site, language and version
BATCH = 100
# Processes tell the time by their own clocks, and list an answer a moment after they stamped it.
CLOCKS_APART_S = 10.0


class _Copy(msgspec.Struct, array_like=True, frozen=True):
    language: str
    plain: str
    text: str
    sources: tuple[tuple[str, str], ...]
    vector: bytes  # float16, little-endian; empty for none
    stored_s: float


class AnswerCopies:
    """One key an answer, and one sorted set a scope that lists them by time. All of them expire."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._breaker = Breaker()

    async def get(self, scope: Scope, key: str) -> Answer | None:
        """The answer to these words, whoever kept it. None as well when Redis is late or down."""
        if self._breaker.open:
            return None
        found = await _ask(self._redis.get(_entry(scope, key)), LOOK_DEADLINE_S)
        self._breaker.note(failed=found is _LATE)
        return _read(found) if found and found is not _LATE else None

    async def put(self, scope: Scope, answer: Answer) -> None:
        """Shares an answer until it expires. Beyond the cap the oldest are no longer listed."""
        listed = _listed(scope)
        async with self._redis.pipeline(transaction=False) as pipe:
            pipe.set(_entry(scope, answer.key), _written(answer), ex=int(TTL_S))
            pipe.zadd(listed, {answer.key: answer.stored_s})
            pipe.zremrangebyrank(listed, 0, -MAX_ENTRIES - 1)
            pipe.expire(listed, int(TTL_S))
            await _ask(pipe.execute(), BACKGROUND_DEADLINE_S)

    async def since(self, scope: Scope, stored_s: float) -> list[Answer]:
        """The oldest answers kept since then, at most a hundred."""
        listed = self._redis.zrangebyscore(
            _listed(scope), stored_s - CLOCKS_APART_S, "+inf", start=0, num=BATCH
        )
        keys = await _ask(listed, BACKGROUND_DEADLINE_S)
        if not keys or keys is _LATE:
            return []
        named = [_entry(scope, key.decode()) for key in keys]
        found = await _ask(self._redis.mget(named), BACKGROUND_DEADLINE_S)
        return [] if found is _LATE else [_read(copy) for copy in found if copy]


_LATE = object()


async def _ask(call: Any, deadline_s: float) -> Any:
    """`_LATE` when Redis does not answer in time."""
    try:
        async with within(deadline_s):
            return await call
    except Unreachable:
        instruments.redis_failures.labels("answers").inc()
        return _LATE


def _entry(scope: Scope, key: str) -> str:
    return f"answer:{scope.key}:{key}"


def _listed(scope: Scope) -> str:
    return f"answers:{scope.key}"


def _written(answer: Answer) -> bytes:
    vector = b"" if answer.vector is None else answer.vector.astype("<f2").tobytes()
    copy = _Copy(answer.language, answer.plain, answer.text, answer.sources, vector, answer.stored_s)
    return msgspec.msgpack.encode(copy)


def _read(written: bytes) -> Answer:
    copy = msgspec.msgpack.decode(written, type=_Copy)
    vector = np.frombuffer(copy.vector, "<f2").astype(np.float32) if copy.vector else None
    return Answer(copy.language, copy.plain, copy.text, copy.sources, vector, copy.stored_s)
