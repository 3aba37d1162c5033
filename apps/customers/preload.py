"""The worker's half of the preload: a customer's profile and orders into Redis, before they are asked for."""

from __future__ import annotations

from functools import cache

from redis import Redis

from apps.customers import copies
from apps.customers.connectors import fetch_sync
from apps.customers.selectors import shop_account
from apps.stores.redis import connect_blocking


def fetch_into_redis(customer_id: str) -> bool:
    """Fetches and stores the copy; False where there is nothing to fetch (visitors, sites without a source).

    Repeatable. Raises `ShopError` and redis' errors: the task decides on a retry.
    """
    account = shop_account(customer_id)
    if account is None:
        return False
    copies.write_sync(_redis(), customer_id, fetch_sync(account))
    return True


@cache
def _redis() -> Redis:
    return connect_blocking()
