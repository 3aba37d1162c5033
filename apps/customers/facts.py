"""What a turn may know of its asker: the preloaded copy first, the shop only when the question needs it."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from django.db import DatabaseError
from redis.asyncio import Redis

from apps.customers import copies
from apps.customers.connectors import ShopClient, ShopData
from apps.customers.selectors import profile_source_urls, shop_account
from apps.customers.shop import ShopError, ShopUnreachable
from apps.engine.deadlines import FACTS_FETCH_S, within
from apps.engine.types import Facts, FactsState
from apps.stores.database import in_database
from apps.stores.redis import Unreachable
from apps.telemetry.instruments import redis_failures, shop_fetches, shop_seconds

logger = logging.getLogger(__name__)

# A copy that takes longer is late: the shop is asked with what remains, or the turn goes on without.
COPY_DEADLINE_S: Final = 0.1
WARM_DEADLINE_S: Final = 2.0
WARMED_SHOPS: Final = 50

VISITOR: Final = Facts(verified=False, state=FactsState.NONE)
UNKNOWN: Final = Facts(verified=True, state=FactsState.NONE)  # the site has no shop, or the shop knows nobody
UNAVAILABLE: Final = Facts(verified=True, state=FactsState.UNAVAILABLE)


class Asker(Protocol):
    """The part of `Identified` that decides what may be known."""

    @property
    def customer_id(self) -> str: ...

    @property
    def verified(self) -> bool: ...


class Refreshed(StrEnum):
    """What became of a copy that should be renewed ahead of its use."""

    FRESH = "fresh"  # it lives long enough
    FETCHED = "fetched"
    NOTHING = "nothing"  # a visitor, or nothing to fetch from
    FAILED = "failed"  # the shop or Redis did not answer


class FactSources:
    """Owned by the web process: one HTTP client for all shops, beside the process's Redis client."""

    def __init__(self, redis: Redis) -> None:
        self._shop = ShopClient()
        self._redis = redis

    async def open(self) -> None:
        """Opens the client and a connection to each shop, side by side; a silent shop holds up no start."""
        await self._shop.open()
        urls = await in_database(profile_source_urls, WARMED_SHOPS)
        await asyncio.gather(*(self._shop.warm(url, WARM_DEADLINE_S) for url in urls))

    async def close(self) -> None:
        """Closes the client; Redis' is its owner's."""
        await self._shop.close()

    async def facts(self, asker: Asker, needed: bool, deadline_s: float = FACTS_FETCH_S) -> Facts:
        """The asker's facts, within the deadline. Never raises: what is late or broken is `UNAVAILABLE`.

        An unverified visitor has none, whatever is asked: neither Redis nor the shop is looked at.
        """
        if not asker.verified:
            return VISITOR
        ends = time.monotonic() + deadline_s
        copied = await self._copy(asker.customer_id, min(COPY_DEADLINE_S, deadline_s))
        if copied is not None:
            return _known(copied, FactsState.WARM)
        return await self._fetched(asker.customer_id, ends) if needed else UNAVAILABLE

    async def refresh(self, asker: Asker, outlives_s: float, deadline_s: float = FACTS_FETCH_S) -> Refreshed:
        """Renews the copy unless it lives for `outlives_s` more. Never raises; nothing is looked at for visitors."""
        if not asker.verified:
            return Refreshed.NOTHING
        ends = time.monotonic() + deadline_s
        try:
            async with within(COPY_DEADLINE_S):
                lives_s = await copies.lives_s(self._redis, asker.customer_id)
        except Unreachable:
            redis_failures.labels("facts_read").inc()
            return Refreshed.FAILED  # there is nowhere to keep a copy
        if lives_s >= min(outlives_s, copies.LIFETIME_S - 1):
            return Refreshed.FRESH
        match (await self._fetched(asker.customer_id, ends)).state:
            case FactsState.COLD:
                return Refreshed.FETCHED
            case FactsState.NONE:
                return Refreshed.NOTHING
            case _:
                return Refreshed.FAILED

    async def _copy(self, customer_id: str, deadline_s: float) -> ShopData | None:
        try:
            async with within(deadline_s):
                return await copies.read(self._redis, customer_id)
        except Unreachable:
            redis_failures.labels("facts_read").inc()
            return None

    async def _fetched(self, customer_id: str, ends: float) -> Facts:
        started = time.monotonic()
        try:
            async with within(ends - started):
                account = await in_database(shop_account, customer_id)
                if account is None:
                    return UNKNOWN
                data = await self._shop.fetch(account, ends - time.monotonic())
        except ShopError as error:
            return _failed(customer_id, error.reason)
        except TimeoutError:
            return _failed(customer_id, ShopUnreachable.reason)
        except DatabaseError:
            logger.exception("the shop of customer %s could not be looked up", customer_id)
            return _failed(customer_id, "database")
        finally:
            shop_seconds.observe(time.monotonic() - started)
        shop_fetches.labels("fetched").inc()
        await self._keep(customer_id, data, min(COPY_DEADLINE_S, ends - time.monotonic()))
        return _known(data, FactsState.COLD)

    async def _keep(self, customer_id: str, data: ShopData, deadline_s: float) -> None:
        try:
            async with within(deadline_s):
                await copies.write(self._redis, customer_id, data)
        except Unreachable:
            redis_failures.labels("facts_write").inc()


@dataclass(frozen=True, slots=True)
class CustomerFacts:
    """The engine's `FactSource` of one asker."""

    sources: FactSources
    asker: Asker

    async def facts(self, needed: bool, deadline_s: float) -> Facts:
        return await self.sources.facts(self.asker, needed, deadline_s)


def _known(data: ShopData, state: FactsState) -> Facts:
    if data.profile is None:
        return UNKNOWN
    return Facts(verified=True, state=state, profile=data.profile, orders=data.orders)


def _failed(customer_id: str, reason: str) -> Facts:
    shop_fetches.labels(reason).inc()
    logger.warning("facts of customer %s: %s", customer_id, reason)
    return UNAVAILABLE
