"""What a turn may know of its asker: the preloaded copy first, the shop only when the question needs it."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass
from typing import Final, Protocol

from redis.asyncio import Redis

from apps.customers import copies
from apps.customers.connectors import ShopClient, ShopData
from apps.customers.selectors import profile_source_urls, shop_account
from apps.customers.shop import ShopError, ShopUnreachable
from apps.engine.types import Facts, FactsState
from apps.stores.database import in_database
from apps.stores.redis import Unreachable, connect
from apps.telemetry.instruments import redis_failures, shop_fetches, shop_seconds

logger = logging.getLogger(__name__)

NEEDED_DEADLINE_S: Final = 1.0
# A copy that takes longer is late: the shop is asked with what remains, or the turn goes on without.
COPY_DEADLINE_S: Final = 0.1
WARM_DEADLINE_S: Final = 2.0
WARMED_SHOPS: Final = 50

VISITOR: Final = Facts(verified=False, state=FactsState.NONE)


class Asker(Protocol):
    """The part of `Identified` that decides what may be known."""

    @property
    def customer_id(self) -> str: ...

    @property
    def verified(self) -> bool: ...


class FactSources:
    """Owned by the web process: one HTTP client and one Redis client for all customers."""

    def __init__(self, redis: Redis | None = None) -> None:
        self._shop = ShopClient()
        self._given_redis = redis
        self._redis: Redis | None = None

    async def open(self) -> None:
        """Opens the clients and a connection to each shop, side by side; a silent shop holds up no start."""
        await self._shop.open()
        self._redis = self._given_redis or connect()
        urls = await in_database(profile_source_urls, WARMED_SHOPS)
        await asyncio.gather(*(self._shop.warm(url, WARM_DEADLINE_S) for url in urls))

    async def close(self) -> None:
        """Closes the shop's client, and Redis' unless it was given."""
        await self._shop.close()
        if self._redis is not None and self._given_redis is None:
            await self._redis.aclose()
        self._redis = None

    async def facts(self, customer: Asker, needed: bool, deadline_s: float = NEEDED_DEADLINE_S) -> Facts:
        """The asker's facts, within the deadline. Never raises: what is late or broken is `UNAVAILABLE`.

        An unverified visitor has none, whatever is asked: neither Redis nor the shop is looked at.
        """
        if not customer.verified:
            return VISITOR
        started = time.monotonic()
        copied = await self._copy(customer.customer_id, min(COPY_DEADLINE_S, deadline_s))
        if copied is not None:
            return copied
        remaining_s = deadline_s - (time.monotonic() - started)
        return await self._fetched(customer.customer_id, remaining_s) if needed else _unavailable()

    async def _copy(self, customer_id: str, deadline_s: float) -> Facts | None:
        if self._redis is None:
            return None
        try:
            async with asyncio.timeout(deadline_s):
                copy = await copies.read(self._redis, customer_id)
        except Unreachable:
            redis_failures.labels("facts_read").inc()
            return None
        if copy is None:
            return None
        return _known(ShopData(copy.profile, copy.orders), FactsState.WARM)

    async def _fetched(self, customer_id: str, deadline_s: float) -> Facts:
        started = time.monotonic()
        try:
            async with asyncio.timeout(deadline_s):
                account = await in_database(shop_account, customer_id)
                if account is None:
                    return Facts(verified=True, state=FactsState.NONE)
                data = await self._shop.fetch(account, deadline_s - (time.monotonic() - started))
        except ShopError as error:
            return _failed(customer_id, error.reason)
        except TimeoutError:
            return _failed(customer_id, ShopUnreachable.reason)
        finally:
            shop_seconds.observe(time.monotonic() - started)
        shop_fetches.labels("fetched").inc()
        await self._keep(customer_id, data)
        return _known(data, FactsState.COLD)

    async def _keep(self, customer_id: str, data: ShopData) -> None:
        if self._redis is None:
            return
        try:
            async with asyncio.timeout(COPY_DEADLINE_S):
                await copies.write(self._redis, customer_id, data)
        except Unreachable:
            redis_failures.labels("facts_write").inc()


@dataclass(frozen=True, slots=True)
class CustomerFacts:
    """The engine's `FactSource` of one asker."""

    sources: FactSources
    customer: Asker
    deadline_s: float = NEEDED_DEADLINE_S

    async def facts(self, needed: bool) -> Facts:
        return await self.sources.facts(self.customer, needed, self.deadline_s)


def _known(data: ShopData, state: FactsState) -> Facts:
    if data.profile is None:
        return Facts(verified=True, state=FactsState.NONE)
    return Facts(verified=True, state=state, profile=data.profile, orders=data.orders)


def _failed(customer_id: str, reason: str) -> Facts:
    shop_fetches.labels(reason).inc()
    logger.warning("facts of customer %s: %s", customer_id, reason)
    return _unavailable()


def _unavailable() -> Facts:
    return Facts(verified=True, state=FactsState.UNAVAILABLE)
