"""How much one visitor, one address and one workspace may ask of all processes together.

Each process decides by what it knows, at once, and tells Redis what it has let pass; Redis answers with what is left of
all. So the path of a message waits for nothing, and what passes too much is what processes let pass in between.
Without Redis each goes on by its own count.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from redis.asyncio import Redis

from apps.gateway.allowance import Allowances, Bound, Wait
from apps.stores.addresses import public_neighbourhood
from apps.stores.buckets import Spending, spend
from apps.stores.redis import Unreachable
from apps.telemetry import instruments

TELL_INTERVAL_S = 0.05
DEADLINE_S = 0.5
AT_ONCE = 500

# (at once, then a second) of frames that reach the database.
PERSON_RATE = (100, 2.0)
ADDRESS_RATE = (1_000, 50.0)
WORKSPACE_RATE = (5_000, 500.0)


def of_person(person: str) -> Bound:
    """A visitor or an agent, on whatever sockets."""
    return Bound("person", person, *PERSON_RATE)


def of_workspace(workspace: str) -> Bound:
    """Everybody of a workspace, so that its crowd leaves room for the others."""
    return Bound("workspace", workspace, *WORKSPACE_RATE)


def of_address(address: str) -> tuple[Bound, ...]:
    """Everybody behind an address of the internet. One of a house's own network may be a proxy's, and bounds nobody."""
    here = public_neighbourhood(address)
    return (Bound("address", here, *ADDRESS_RATE),) if here else ()


class Rates:
    """The allowances of this process, kept in step with those of the others."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._allowances = Allowances()
        self._taken = asyncio.Event()

    def take(self, bounds: Sequence[Bound]) -> Wait | None:
        """None where one action may be done now, which is counted; else how long to wait. Never blocks."""
        wait = self._allowances.take(bounds, time.monotonic())
        if wait is None:
            self._taken.set()
        else:
            instruments.over_rate.labels(wait.of).inc()
        return wait

    async def share(self) -> None:
        """Tells and hears what is taken, for ever. What Redis does not take is not told again."""
        while True:
            await self._taken.wait()
            self._taken.clear()
            told = list(self._allowances.to_tell().items())
            for at in range(0, len(told), AT_ONCE):
                await self._tell(told[at : at + AT_ONCE])
            await asyncio.sleep(TELL_INTERVAL_S)

    async def _tell(self, told: list[tuple[Bound, int]]) -> None:
        spendings = [
            Spending(f"rate:{bound.of}:{bound.key}", bound.burst, bound.a_second, taken)
            for bound, taken in told
        ]
        try:
            async with asyncio.timeout(DEADLINE_S):
                left = await spend(self._redis, spendings)
        except Unreachable:
            instruments.redis_failures.labels("rates").inc()
            return
        self._allowances.heard(zip([bound for bound, _ in told], left, strict=True), time.monotonic())
