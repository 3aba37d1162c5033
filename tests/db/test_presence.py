"""Which agents are there, by leases in a real Redis."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from redis.asyncio import Redis

from apps.inbox.presence import Presence
from apps.stores.ids import new_id
from apps.stores.redis import connect


@pytest.fixture
async def redis(redis_url: str) -> AsyncIterator[Redis]:
    client = connect()
    yield client
    await client.aclose()


@pytest.fixture
def workspace() -> str:
    return new_id()


@pytest.fixture
def presence(redis: Redis) -> Presence:
    return Presence(redis)


async def test_an_agent_is_there_while_one_of_the_sockets_is(presence: Presence, workspace: str) -> None:
    await presence.renew(workspace, "kim", "one")
    await presence.renew(workspace, "kim", "two")
    await presence.leave(workspace, "kim", "one")
    assert await presence.online(workspace) == {"kim"}
    await presence.leave(workspace, "kim", "two")
    assert await presence.online(workspace) == set()


async def test_a_heartbeat_does_not_undo_the_choice_to_be_away(presence: Presence, workspace: str) -> None:
    await presence.set_away(workspace, "kim", away=True)
    await presence.renew(workspace, "kim", "one")
    assert await presence.online(workspace) == set()
    await presence.set_away(workspace, "kim", away=False)
    assert await presence.online(workspace) == {"kim"}


async def test_a_lease_that_ran_out_counts_no_more_and_is_forgotten(
    presence: Presence, workspace: str, redis: Redis
) -> None:
    key = f"presence:{workspace}"
    await redis.zadd(key, {"ana:dead": time.time() - 1})
    assert await presence.online(workspace) == set()
    await presence.renew(workspace, "kim", "one")
    assert await redis.zrange(key, 0, -1) == [b"kim:one"]


async def test_another_workspaces_agents_are_not_there(presence: Presence, workspace: str) -> None:
    await presence.renew(new_id(), "kim", "one")
    assert await presence.online(workspace) == set()


async def test_without_redis_nobody_is_promised(workspace: str, settings: Any, tmp_path: Any) -> None:
    settings.REDIS_URL = f"unix://{tmp_path}/nothing.sock"
    client = connect()
    presence = Presence(client)
    await presence.renew(workspace, "kim", "one")
    assert await presence.online(workspace) == set()
    await client.aclose()
