"""Leaves a Redis that has lost its place to another.

It keeps its connections and refuses what is written over them; what is published there reaches only those who have not
left it either.
"""

from __future__ import annotations

import asyncio
import logging

from redis.asyncio import Redis
from redis.exceptions import ReadOnlyError

from apps.stores.redis import OPERATION_TIMEOUT_S, Unreachable
from apps.telemetry import instruments
from apps.turns.between.switchboard import Switchboard

logger = logging.getLogger(__name__)

LOOK_INTERVAL_S = 2.0
# Until the address leads to the new one, every try cuts this process off from the others for a second.
LONGEST_PAUSE_S = 30.0


class Failover:
    """One a process; `run` as long as it lives."""

    def __init__(self, redis: Redis, switchboard: Switchboard) -> None:
        self._redis = redis
        self._switchboard = switchboard

    async def run(self) -> None:
        """Writes every 2 s, for ever. Where that is refused, all connections are made anew."""
        pause_s = LOOK_INTERVAL_S
        while True:
            await asyncio.sleep(pause_s)
            if await self._takes_writes():
                pause_s = LOOK_INTERVAL_S
                continue
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            logger.warning("Redis is a replica now: connections are made anew, next in %.0f s", pause_s)
            instruments.redis_failures.labels("failover").inc()
            await self._redis.connection_pool.disconnect()
            await self._switchboard.begin_anew()

    async def _takes_writes(self) -> bool:
        try:
            async with asyncio.timeout(OPERATION_TIMEOUT_S):
                await self._redis.set("written", 1, ex=60)
        except ReadOnlyError:
            return False
        except Unreachable:
            pass  # away, slow or full: its connections say so themselves
        return True
