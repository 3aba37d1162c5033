"""The stream buffer in Redis: the live turn's text so far, its fence, and what stops it.

Redis down does not stop a stream. Every call has a short deadline; the caller goes on without it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from redis.asyncio import Redis

from apps.engine.deadlines import within
from apps.stores.redis import Breaker, Unreachable
from apps.telemetry import instruments

APPEND_DEADLINE_S = 0.02
CONTROL_DEADLINE_S = 0.5
BUFFER_TTL_S = 900
INTEREST_TTL_S = 60

# KEYS: state, text. ARGV: fence, turn, part, text so far, ttl. Beginning again keeps a stop that was told meanwhile.
_BEGIN = """
local fence = redis.call('HGET', KEYS[1], 'fence')
if fence and tonumber(fence) > tonumber(ARGV[1]) then return 0 end
if fence ~= ARGV[1] then redis.call('HDEL', KEYS[1], 'stop') end
redis.call('HSET', KEYS[1], 'fence', ARGV[1], 'turn', ARGV[2], 'part', ARGV[3])
redis.call('SET', KEYS[2], ARGV[4], 'EX', ARGV[5])
redis.call('EXPIRE', KEYS[1], ARGV[5])
return 1
"""

# KEYS: state, text, interest. ARGV: fence, text, ttl, process, now, bytes before the text.
# Returns {held, owner version, stop, remote customers, remote watchers}; held is -1 taken, 0 out of step, 1 mine.
# An older fence is an earlier turn's: our beginning has not arrived.
# The length finds what an append without an answer did: nothing, its work, or its work later than the next one's.
_APPEND = """
local fence = redis.call('HGET', KEYS[1], 'fence')
if fence and tonumber(fence) > tonumber(ARGV[1]) then return {-1, 0, -1, 0, 0} end
if fence ~= ARGV[1] then return {0, 0, -1, 0, 0} end
if redis.call('STRLEN', KEYS[2]) ~= tonumber(ARGV[6]) then return {0, 0, -1, 0, 0} end
if ARGV[2] ~= '' then redis.call('APPEND', KEYS[2], ARGV[2]) end
redis.call('EXPIRE', KEYS[1], ARGV[3])
redis.call('EXPIRE', KEYS[2], ARGV[3])
local owner = redis.call('HGET', KEYS[1], 'owner') or '0'
local stop = redis.call('HGET', KEYS[1], 'stop') or '-1'
local found = redis.call('HGETALL', KEYS[3])
local customers, watchers = 0, 0
for i = 1, #found, 2 do
  local kind, process = string.match(found[i], '^(%a+):(.+)$')
  if process ~= ARGV[4] and tonumber(found[i + 1]) > tonumber(ARGV[5]) then
    if kind == 'customers' then customers = customers + 1 else watchers = watchers + 1 end
  end
end
return {1, tonumber(owner), tonumber(stop), customers, watchers}
"""

# KEYS: state. ARGV: version, ttl. Told by several tasks and processes, an older one may come last.
_OWNER = """
if tonumber(redis.call('HGET', KEYS[1], 'owner') or '0') >= tonumber(ARGV[1]) then return 0 end
redis.call('HSET', KEYS[1], 'owner', ARGV[1])
redis.call('EXPIRE', KEYS[1], ARGV[2])
return 1
"""

# KEYS: state. ARGV: turn, painted, ttl. A turn that has just given way to another must not end that one.
_STOP = """
if redis.call('HGET', KEYS[1], 'turn') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'stop', ARGV[2])
redis.call('EXPIRE', KEYS[1], ARGV[3])
return 1
"""

# KEYS: state, text. ARGV: fence, ttl. The fence stays: a process that slept through the end must find it taken.
_END = """
local fence = redis.call('HGET', KEYS[1], 'fence')
if fence and tonumber(fence) > tonumber(ARGV[1]) then return 0 end
redis.call('DEL', KEYS[1], KEYS[2])
redis.call('HSET', KEYS[1], 'fence', ARGV[1])
redis.call('EXPIRE', KEYS[1], ARGV[2])
return 1
"""


@dataclass(frozen=True, slots=True)
class Held:
    """What an append learned. `mine` is false when another process holds a newer fence."""

    mine: bool
    out_of_step: bool  # Redis holds another text, or none: begin again with the whole
    owner_version: int
    stop: int | None  # UTF-16 code units painted when the customer pressed stop elsewhere
    remote_customers: bool
    remote_watchers: bool


@dataclass(frozen=True, slots=True)
class Buffered:
    """The live text as it stands in Redis. Trust it only where `fence` is the conversation's."""

    turn: str
    part: int
    fence: int
    text: str
    stop: int | None = None  # as in `Held`


class StreamBuffer:
    """One a process. Where Redis fails, each method says what its answer then means."""

    def __init__(self, redis: Redis, process: str) -> None:
        self._redis = redis
        self._process = process
        self._mark = f"attends:{process}"
        self._begin = redis.register_script(_BEGIN)
        self._append = redis.register_script(_APPEND)
        self._end = redis.register_script(_END)
        self._owner = redis.register_script(_OWNER)
        self._stop = redis.register_script(_STOP)
        self._breaker = Breaker()

    async def begin(
        self,
        conversation: str,
        fence: int,
        turn: str,
        part: int,
        *,
        text: str = "",
        deadline_s: float = CONTROL_DEADLINE_S,
    ) -> bool:
        """Whether this fence holds the stream. True as well when Redis does not answer."""
        keys = [_state(conversation), _text(conversation)]
        call = self._begin(keys=keys, args=[fence, turn, part, text, BUFFER_TTL_S])
        reply = await self._call("begin", call, deadline_s)
        return reply is None or bool(reply)

    async def append(
        self, conversation: str, fence: int, before_bytes: int, text: str, now_s: float
    ) -> Held | None:
        """Adds text behind the `before_bytes` bytes of UTF-8 that the buffer should hold.

        None when Redis did not answer in time; the text may or may not have been added, or be added yet.
        """
        keys = [_state(conversation), _text(conversation), interest_key(conversation)]
        arguments: list[str | int | float] = [fence, text, BUFFER_TTL_S, self._process, now_s, before_bytes]
        reply = await self._call("append", self._append(keys=keys, args=arguments), APPEND_DEADLINE_S)
        if reply is None:
            return None
        held, owner, stop, customers, watchers = (int(value) for value in reply)
        return Held(
            mine=held >= 0,
            out_of_step=held == 0,
            owner_version=owner,
            stop=stop if stop >= 0 else None,
            remote_customers=customers > 0,
            remote_watchers=watchers > 0,
        )

    async def end(self, conversation: str, fence: int) -> None:
        """Drops text and turn, unless a newer fence holds them."""
        keys = [_state(conversation), _text(conversation)]
        await self._call("end", self._end(keys=keys, args=[fence, BUFFER_TTL_S]))

    async def read(self, conversation: str) -> Buffered | None:
        """The live text as far as it is buffered. Raises `Unreachable` errors: an unknown is not an empty."""
        async with within(CONTROL_DEADLINE_S), self._redis.pipeline(transaction=True) as pipe:
            pipe.hgetall(_state(conversation))
            pipe.get(_text(conversation))
            state, text = await pipe.execute()
        if not state or b"turn" not in state:
            return None
        return Buffered(
            turn=state[b"turn"].decode(),
            part=int(state[b"part"]),
            fence=int(state[b"fence"]),
            text=(text or b"").decode("utf-8", "replace"),
            stop=int(state[b"stop"]) if b"stop" in state else None,
        )

    async def tell_owner(self, conversation: str, version: int) -> None:
        """Lets the process that streams notice a takeover at its next flush."""
        told = self._owner(keys=[_state(conversation)], args=[version, BUFFER_TTL_S])
        await self._call("owner", told)

    async def tell_stop(self, conversation: str, turn: str, painted: int) -> bool:
        """Whether the turn is live, and the stop was stored for the process that streams it."""
        told = self._stop(keys=[_state(conversation)], args=[turn, painted, BUFFER_TTL_S])
        return bool(await self._call("stop", told))

    async def show_interest(self, conversation: str, audience: str, until_s: float) -> bool:
        """Says that this process has sockets that listen, so that the streaming process publishes its deltas.

        Whether it was stored.
        """
        key, field = interest_key(conversation), f"{audience}:{self._process}"
        return bool(await self._call("interest", self._set(key, field, str(until_s), INTEREST_TTL_S * 2)))

    async def lose_interest(self, conversation: str, audience: str) -> None:
        """Takes back `show_interest`, before it runs out."""
        await self._call(
            "interest", self._redis.hdel(interest_key(conversation), f"{audience}:{self._process}")
        )

    async def leave_mark(self) -> None:
        """Leaves a key that is there for as long as nothing that was told is lost."""
        await self._call("interest", self._redis.set(self._mark, "", ex=INTEREST_TTL_S))

    async def finds_mark(self) -> bool:
        """Whether it is there. Not where Redis was emptied, or came back without its data."""
        return bool(await self._call("interest", self._redis.exists(self._mark)))

    async def _set(self, key: str, field: str, value: str, ttl_s: int) -> bool:
        """One way to Redis for both, so that no field can be left without an end."""
        async with self._redis.pipeline(transaction=True) as pipe:
            pipe.hset(key, field, value)
            pipe.expire(key, ttl_s)
            await pipe.execute()
        return True

    async def _call(self, operation: str, call: Any, deadline_s: float = CONTROL_DEADLINE_S) -> Any:
        """None when Redis does not answer in time. While the breaker is open it is not asked, so that a stream
        without Redis flows as fast as with it.
        """
        if self._breaker.open:
            call.close()
            return None
        try:
            async with within(deadline_s):
                reply = await call
        except Unreachable:
            instruments.redis_failures.labels(operation).inc()
            self._breaker.note(failed=True)
            return None
        self._breaker.note(failed=False)
        return reply


def _state(conversation: str) -> str:
    return f"live:{conversation}"


def _text(conversation: str) -> str:
    return f"live:{conversation}:text"


def interest_key(conversation: str) -> str:
    """A hash: "audience:process" to the time in seconds until which that process has listening sockets."""
    return f"interest:{conversation}"
