"""One allowance for all processes, kept in a real Redis, and each one's own without it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from apps.gateway.allowance import Bound
from apps.gateway.rates import Rates, of_address, of_person
from apps.stores.buckets import Spending, spend
from apps.stores.ids import new_id
from apps.stores.redis import connect
from tests.support.metrics import counted_here

pytestmark = pytest.mark.usefixtures("redis_url")


@asynccontextmanager
async def process() -> AsyncIterator[Rates]:
    redis = connect()
    rates = Rates(redis)
    sharing = asyncio.create_task(rates.share())
    try:
        yield rates
    finally:
        sharing.cancel()
        await redis.aclose()


def failures() -> float:
    return counted_here("chatsvc_redis_failures_total", operation="rates")


def slow(burst: int = 10) -> Bound:
    """So slow that nothing comes back within a test."""
    return Bound("person", new_id(), burst, 0.001)


async def told(bound: Bound, taken: int) -> None:
    """Waits until Redis knows of so many."""
    redis = connect()
    async with asyncio.timeout(10):
        while True:
            [left] = await spend(
                redis, [Spending(f"rate:person:{bound.key}", bound.burst, bound.a_second, 0)]
            )
            if round(bound.burst - left) >= taken:
                break
            await asyncio.sleep(0.01)
    await redis.aclose()


async def test_two_processes_share_one_allowance() -> None:
    bound = slow()
    async with process() as one, process() as two:
        assert [one.take((bound,)) for _ in range(8)] == [None] * 8
        await told(bound, 8)
        passed = 0
        async with asyncio.timeout(10):
            while two.take((bound,)) is None:
                passed += 1
                await told(bound, 8 + passed)
    assert 2 <= passed <= 3  # the first is let pass before it has heard; 8 were taken of 10


async def test_without_redis_each_process_counts_for_itself(settings: Any, tmp_path: Any) -> None:
    settings.REDIS_URL = f"unix://{tmp_path}/nothing.sock"
    before = failures()
    bound = slow()
    async with process() as alone:
        assert [alone.take((bound,)) is None for _ in range(11)] == [True] * 10 + [False]
        async with asyncio.timeout(10):
            while failures() == before:  # noqa: ASYNC110 - a counter has no event
                await asyncio.sleep(0.01)
        assert alone.take((bound,)) is not None


async def test_a_debt_never_exceeds_a_burst_and_is_paid_back_in_time() -> None:
    redis = connect()
    key = f"rate:person:{new_id()}"
    [left] = await spend(redis, [Spending(key, 10, 0.001, 500)])
    assert left == pytest.approx(-10, abs=0.01)
    assert 0 < await redis.ttl(key) <= 20_000
    await redis.aclose()


async def test_bounds_name_whom_they_bound() -> None:
    assert of_address("8.8.8.8")[0].key == "8.8.8.8"
    assert of_address("127.0.0.1") == ()
    assert of_person("mia").of == "person"
