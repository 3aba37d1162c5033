"""What several modules of socket tests break."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from redis import Redis as RedisClient

from tests.chaos.links import Link
from tests.support.breaking import Redis
from tests.support.client import DEADLINE_S
from tests.support.processes import Deployment, Web, ended_after, own_port


@pytest.fixture(scope="module")
def redis(deployment: Deployment) -> Iterator[Redis]:
    """A Redis of the module's own, beside the deployment's."""
    process = Redis(deployment.var_dir)
    with ended_after(process):
        yield process


@pytest.fixture(scope="module")
def redis_pair(deployment: Deployment, redis: Redis) -> Iterator[tuple[Web, Web]]:
    """Two web processes on that Redis."""
    one = Web(deployment, "redis-one", REDIS_URL=redis.url)
    with ended_after(one):
        two = Web(deployment, "redis-two", REDIS_URL=redis.url)
        with ended_after(two):
            yield one, two


@pytest.fixture
def redis_client(redis: Redis) -> Iterator[RedisClient]:
    """For what is asked of that Redis itself."""
    client = RedisClient.from_url(redis.url, socket_connect_timeout=DEADLINE_S, socket_timeout=DEADLINE_S)
    yield client
    client.close()


@pytest.fixture
async def distant(redis_client: RedisClient) -> AsyncIterator[Link]:
    """A network between whoever uses it and that Redis."""
    port = own_port()
    redis_client.config_set("port", port)
    async with Link(port) as link:
        yield link
