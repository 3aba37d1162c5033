"""Token buckets in Redis, shared by every process: how often something may be done before it must wait."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from redis import Redis
from redis.asyncio import Redis as AsyncRedis

# KEYS: buckets. ARGV: burst and seconds a token for each. Takes one token of each, or of none.
# Returns how many milliseconds until every bucket has one; 0 where they were taken. Redis's clock is the only one.
_TAKE = """
local clock = redis.call('TIME')
local now = clock[1] + clock[2] / 1000000
local left, wait = {}, 0
for i, key in ipairs(KEYS) do
  local burst, seconds = tonumber(ARGV[2 * i - 1]), tonumber(ARGV[2 * i])
  local kept = redis.call('HMGET', key, 'left', 'at')
  left[i] = burst
  if kept[1] then left[i] = math.min(burst, kept[1] + math.max(0, now - kept[2]) / seconds) end
  if left[i] < 1 then wait = math.max(wait, (1 - left[i]) * seconds) end
end
if wait > 0 then return math.ceil(wait * 1000) end
for i, key in ipairs(KEYS) do
  redis.call('HSET', key, 'left', tostring(left[i] - 1), 'at', tostring(now))
  redis.call('EXPIRE', key, math.ceil(ARGV[2 * i - 1] * ARGV[2 * i]))
end
return 0
"""

_GIVE_BACK = """
for _, key in ipairs(KEYS) do
  local left = redis.call('HGET', key, 'left')
  if left then redis.call('HSET', key, 'left', tostring(left + 1)) end
end
return 0
"""


# KEYS: buckets. ARGV: burst, tokens a second and tokens spent for each. Takes them whether they are there or not, down
# to a debt of a whole burst, and returns what is left of each.
_SPEND = """
local clock = redis.call('TIME')
local now = clock[1] + clock[2] / 1000000
local answer = {}
for i, key in ipairs(KEYS) do
  local burst, rate, spent = tonumber(ARGV[3 * i - 2]), tonumber(ARGV[3 * i - 1]), tonumber(ARGV[3 * i])
  local kept = redis.call('HMGET', key, 'left', 'at')
  local left = burst
  if kept[1] then left = math.min(burst, kept[1] + math.max(0, now - kept[2]) * rate) end
  left = math.max(-burst, left - spent)
  redis.call('HSET', key, 'left', tostring(left), 'at', tostring(now))
  redis.call('EXPIRE', key, math.ceil(2 * burst / rate))
  answer[i] = tostring(left)
end
return answer
"""


@dataclass(frozen=True, slots=True)
class Bucket:
    """`burst` at once, then one every `every_s` seconds. Forgotten by Redis once it is full again."""

    key: str
    burst: int
    every_s: float


def take(redis: Redis, buckets: Sequence[Bucket]) -> int:
    """0 where each bucket gave a token; else the whole seconds to wait, and nothing was taken."""
    limits = [limit for bucket in buckets for limit in (bucket.burst, bucket.every_s)]
    wait_ms = redis.eval(_TAKE, len(buckets), *[bucket.key for bucket in buckets], *limits)
    return ceil(int(wait_ms) / 1000)


@dataclass(frozen=True, slots=True)
class Spending:
    """What one process has taken of a bucket of `burst` tokens that gets `a_second` of them."""

    key: str
    burst: int
    a_second: float
    tokens: int


async def spend(redis: AsyncRedis, spendings: Sequence[Spending]) -> list[float]:
    """Takes the tokens, and tells what all processes together have left of each bucket; less than 0 is a debt."""
    limits = [
        limit for spending in spendings for limit in (spending.burst, spending.a_second, spending.tokens)
    ]
    left = await redis.eval(_SPEND, len(spendings), *[spending.key for spending in spendings], *limits)
    return [float(tokens) for tokens in left]


def give_back(redis: Redis, buckets: Sequence[Bucket]) -> None:
    """Returns what `take` took."""
    redis.eval(_GIVE_BACK, len(buckets), *[bucket.key for bucket in buckets])
