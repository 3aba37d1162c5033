"""How many visitors one address and one site may make: each becomes a row as soon as its token opens a line.

Without Redis visitors come unlimited, as everybody does who is there already; their lines are bounded all the same.
"""

from __future__ import annotations

from apps.stores.addresses import public_neighbourhood
from apps.stores.buckets import Bucket, take
from apps.stores.redis import ask_blocking
from apps.telemetry import instruments


def seconds_to_wait(site: str, address: str) -> int:
    """0 where another visitor of the site may come from the address, which is counted; else whole seconds."""
    buckets = (of_site(site), *_of_address(address))
    wait_s = ask_blocking(lambda redis: take(redis, buckets), operation="visits", otherwise=0)
    if wait_s:
        instruments.over_rate.labels("visits").inc()
    return wait_s


def of_site(site: str) -> Bucket:
    """Everybody's: 360,000 an hour, so that a script leaves room for the other sites."""
    return Bucket(f"visits:site:{site}", burst=2_000, every_s=0.01)


def _of_address(address: str) -> tuple[Bucket, ...]:
    """A token lasts a month: a school behind one address fits. One of a house's own network may be a proxy's."""
    here = public_neighbourhood(address)
    return (Bucket(f"visits:address:{here}", burst=100, every_s=2),) if here else ()
