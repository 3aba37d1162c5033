"""How many visitors one address and one site may make, counted in a real Redis."""

from __future__ import annotations

import asyncio
import secrets
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from apps.customers.visits import of_site
from apps.stores.buckets import Bucket, Spending, spend
from apps.stores.redis import connect
from tests.db.admin_world import Corner, corner

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis_url")]


def somewhere() -> str:
    """A network on the internet from which nobody has asked yet."""
    return f"2600:{secrets.randbelow(2**16):x}:{secrets.randbelow(2**16):x}:1::"


def visit(site: str, address: str, token: str | None = None) -> Any:
    client = Client(REMOTE_ADDR=address)
    asked = {"site": site, "token": token}
    return client.post("/api/v1/widget/session", asked, content_type="application/json")


def test_an_address_makes_a_hundred_visitors_and_is_then_told_to_wait(ours: Corner) -> None:
    network = somewhere()
    assert [visit(ours.site.pk, f"{network}{n:x}").status_code for n in range(100)] == [200] * 100
    # One may have come back meanwhile.
    refused = next(answer for _ in range(50) if (answer := visit(ours.site.pk, network)).status_code != 200)
    body = refused.json()
    assert (refused.status_code, body["code"], set(body)) == (
        429,
        "slow_down",
        {"code", "message", "retry_after_s"},
    )
    assert int(refused["Retry-After"]) == body["retry_after_s"]
    assert 0 < body["retry_after_s"] <= 2
    assert visit(ours.site.pk, somewhere()).status_code == 200


def test_addresses_that_may_be_a_proxys_bound_nobody(ours: Corner) -> None:
    assert [visit(ours.site.pk, "10.0.0.7").status_code for _ in range(110)] == [200] * 110


async def in_debt(bucket: Bucket) -> None:
    """So many have come that nothing is left for a while."""
    redis = connect()
    try:
        await spend(redis, [Spending(bucket.key, bucket.burst, 1 / bucket.every_s, 2 * bucket.burst)])
    finally:
        await redis.aclose()


def test_a_sites_crowd_leaves_room_for_the_other_sites(ours: Corner) -> None:
    asyncio.run(in_debt(of_site(ours.site.pk)))
    assert visit(ours.site.pk, somewhere()).status_code == 429
    assert visit(corner("theirs").site.pk, somewhere()).status_code == 200


def test_whoever_was_there_before_the_crowd_stays(ours: Corner) -> None:
    before = visit(ours.site.pk, somewhere()).json()
    asyncio.run(in_debt(of_site(ours.site.pk)))
    again = visit(ours.site.pk, somewhere(), before["token"])
    assert (again.status_code, again.json().get("customer")) == (200, before["customer"])
    assert visit(ours.site.pk, somewhere(), before["token"] + "x").status_code == 429


def test_without_redis_visitors_come(ours: Corner, settings: Any, tmp_path: Path) -> None:
    settings.REDIS_URL = f"unix://{tmp_path}/nothing.sock"
    here = somewhere()
    assert [visit(ours.site.pk, here).status_code for _ in range(110)] == [200] * 110
