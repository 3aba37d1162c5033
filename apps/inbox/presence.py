"""Which agents are there. A lease in Redis for each socket; a disconnect that never arrives just runs out."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from typing import Any, TypeVar

from redis.asyncio import Redis

from apps.stores.redis import Unreachable
from apps.telemetry import instruments

# Three heartbeats, and more than a minute: browsers run the timers of a hidden page no oftener.
LEASE_S = 90
RENEW_S = 15
DEADLINE_S = 0.5

T = TypeVar("T")


class Presence:
    """Leases by workspace. An agent is online while a socket holds a lease and *away* was not chosen."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    async def renew(self, workspace: str, agent: str, socket: str) -> None:
        """Extends the socket's lease by 90 s, and forgets leases that ran out."""
        await self._ask(self._renewed(workspace, f"{agent}:{socket}"), None)

    async def leave(self, workspace: str, agent: str, socket: str) -> None:
        """Ends the socket's lease at once."""
        await self._ask(self._redis.zrem(_leases(workspace), f"{agent}:{socket}"), 0)

    async def set_away(self, workspace: str, agent: str, away: bool) -> None:
        """A choice of the agent, kept until chosen otherwise: no heartbeat undoes it."""
        if away:
            await self._ask(self._redis.sadd(_away(workspace), agent), 0)
        else:
            await self._ask(self._redis.srem(_away(workspace), agent), 0)

    async def online(self, workspace: str) -> frozenset[str]:
        """Agents who can be reached. Empty when Redis does not answer: nobody is promised who may not be there."""
        leases: Any
        away: Any
        leases, away = await asyncio.gather(
            self._ask(self._redis.zrangebyscore(_leases(workspace), time.time(), "+inf"), []),
            self._ask(self._redis.smembers(_away(workspace)), set()),
        )
        present = {lease.decode().partition(":")[0] for lease in leases}
        return frozenset(present - {agent.decode() for agent in away})

    async def _renewed(self, workspace: str, lease: str) -> None:
        now, key = time.time(), _leases(workspace)
        async with self._redis.pipeline(transaction=False) as pipe:
            pipe.zadd(key, {lease: now + LEASE_S})
            # A socket whose process died never says good-bye.
            pipe.zremrangebyscore(key, "-inf", now)
            pipe.expire(key, 2 * LEASE_S)
            await pipe.execute()

    async def _ask(self, call: Awaitable[T], otherwise: T) -> T:
        try:
            async with asyncio.timeout(DEADLINE_S):
                return await call
        except Unreachable:
            instruments.redis_failures.labels("presence").inc()
            return otherwise


def _leases(workspace: str) -> str:
    return f"presence:{workspace}"


def _away(workspace: str) -> str:
    return f"away:{workspace}"
