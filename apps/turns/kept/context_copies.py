"""Copies of contexts in Redis, so that another process continues a conversation where this one stopped.

A copy is never the truth: whoever takes it up adds what the log has after its `seq`, and the log decides whether it
fits. Redis down, a copy lost or broken: the context is read from the log.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import msgspec
from redis.asyncio import Redis

from apps.engine.context import Context
from apps.engine.deadlines import within
from apps.engine.digest.lines import Line
from apps.engine.types import ChatMessage, Speaker
from apps.stores.codecs import Kind, Undecodable, packed, unpacked
from apps.stores.redis import Unreachable
from apps.telemetry import instruments

LIFETIME_S = 600
# The turn waits for a copy so long at most; reading the conversation from the log takes some milliseconds.
LOOK_DEADLINE_S = 0.05
BACKGROUND_DEADLINE_S = 0.5
FAILURES_BEFORE_REST = 3
REST_S = 1.0
MAX_COPY_BYTES = 64 * 1024  # packed; a context at the high mark takes about 15 kB
CAPACITY_BYTES = 24 * 1024 * 1024  # of all copies in one Redis, whose broker needs the rest

# KEYS: copy, order (by time), sizes (and their sum, under ''). ARGV: name, value, lifetime, capacity.
# What has expired is struck off, at most 100 at a time; above the capacity the oldest go. Returns how many went.
_PUT = """
local now = tonumber(redis.call('TIME')[1])
local function strike(name)
  local size = tonumber(redis.call('HGET', KEYS[3], name) or 0)
  redis.call('HINCRBY', KEYS[3], '', 0 - size)
  redis.call('HDEL', KEYS[3], name)
  redis.call('ZREM', KEYS[2], name)
end
for _, name in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now - ARGV[3], 'LIMIT', 0, 100)) do strike(name) end
strike(ARGV[1])
redis.call('SET', KEYS[1], ARGV[2], 'EX', ARGV[3])
redis.call('ZADD', KEYS[2], now, ARGV[1])
redis.call('HSET', KEYS[3], ARGV[1], #ARGV[2])
local total = redis.call('HINCRBY', KEYS[3], '', #ARGV[2])
local gone = 0
while total > tonumber(ARGV[4]) do
  local oldest = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
  if not oldest or oldest == ARGV[1] then break end
  redis.call('DEL', 'context:' .. oldest)
  strike(oldest)
  total = tonumber(redis.call('HGET', KEYS[3], ''))
  gone = gone + 1
end
redis.call('EXPIRE', KEYS[2], ARGV[3] * 2)
redis.call('EXPIRE', KEYS[3], ARGV[3] * 2)
return gone
"""


@dataclass(frozen=True, slots=True)
class Copy:
    """A context as another process left it. `epoch` names the numbering that its `seq` is of."""

    epoch: str
    context: Context


class ContextCopies:
    """One a process. `get` never raises; `put` is for a task beside the turn."""

    def __init__(self, redis: Redis, capacity_bytes: int = CAPACITY_BYTES) -> None:
        self._redis = redis
        self._capacity_bytes = capacity_bytes
        self._put = redis.register_script(_PUT)
        self._failures = 0
        self._resting_until = 0.0

    async def get(self, conversation: str) -> Copy | None:
        """The newest copy; None when there is none, when it is broken, and when Redis is late or down."""
        if time.monotonic() < self._resting_until:
            return None
        stored = await self._ask(self._redis.get(_key(conversation)), LOOK_DEADLINE_S)
        if not isinstance(stored, bytes):
            return None
        try:
            return read(stored)
        except Undecodable:
            instruments.context_copies.labels("broken").inc()
            return None

    async def put(self, conversation: str, copy: bytes) -> None:
        """Keeps what `written` made for ten minutes, unless it is too big."""
        if len(copy) > MAX_COPY_BYTES:
            instruments.context_copies.labels("too_big").inc()
            return
        arguments: list[str | bytes | int] = [conversation, copy, LIFETIME_S, self._capacity_bytes]
        keys = [_key(conversation), "contexts:order", "contexts:sizes"]
        gone = await self._ask(self._put(keys=keys, args=arguments), BACKGROUND_DEADLINE_S)
        if gone is not None:
            instruments.context_copies.labels("written").inc()
            instruments.context_copies.labels("evicted").inc(int(gone))

    async def _ask(self, call: Any, deadline_s: float) -> Any:
        """None when Redis does not answer in time. After three such in a row turns do without it for a second."""
        try:
            async with within(deadline_s):
                answer = await call
        except Unreachable:
            instruments.redis_failures.labels("contexts").inc()
            self._failures += 1
            if self._failures >= FAILURES_BEFORE_REST:
                self._resting_until = time.monotonic() + REST_S
            return None
        self._failures = 0
        return answer


class _Stored(msgspec.Struct, array_like=True, frozen=True):
    shape: int
    epoch: str
    seq: int
    generation: int
    given: int
    head: tuple[tuple[str, str], ...]
    earlier: tuple[tuple[int, Speaker, str], ...]
    digested: tuple[int, ...]
    turns_before: int
    said: tuple[tuple[int, Speaker, str], ...]
    endpoint: str


_SHAPE = 1
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Stored)


def written(epoch: str, context: Context) -> bytes:
    """The context as `read` takes it. About 0.2 ms at the high mark."""
    stored = _Stored(
        shape=_SHAPE,
        epoch=epoch,
        seq=context.seq,
        generation=context.generation,
        given=context.given,
        head=tuple((message.role, message.content) for message in context.head),
        earlier=tuple((line.place, line.speaker, line.text) for line in context.earlier),
        digested=tuple(sorted(context.digested)),
        turns_before=context.turns_before,
        said=tuple((said.place, said.speaker, said.text) for said in context.said),
        endpoint=context.endpoint,
    )
    return packed(Kind.CONTEXT, _encoder.encode(stored))


def read(copy: bytes) -> Copy:
    """What was written. Raises `Undecodable` for anything else, another shape of ours included."""
    try:
        stored = _decoder.decode(unpacked(copy))
    except msgspec.DecodeError as error:
        raise Undecodable(str(error)) from error
    if stored.shape != _SHAPE:
        raise Undecodable("another shape")
    context = Context()
    for place, speaker, text in stored.said:
        context.add(place, speaker, text)
    context.recall(
        tuple(Line(place, speaker, text) for place, speaker, text in stored.earlier),
        set(stored.digested),
        stored.turns_before,
    )
    context.seq, context.generation, context.given = stored.seq, stored.generation, stored.given
    context.head = tuple(ChatMessage(role, content) for role, content in stored.head)
    context.endpoint = stored.endpoint
    return Copy(stored.epoch, context)


def _key(conversation: str) -> str:
    return f"context:{conversation}"
