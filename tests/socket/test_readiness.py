"""What `/readyz` says while the stores are away, and that it says so no longer than they are."""

from __future__ import annotations

import asyncio

import pytest
from redis import Redis as RedisClient

from tests.chaos.links import Link
from tests.fakes.upstream.faults import Plan
from tests.fakes.upstream.handle import Upstream
from tests.fakes.upstream.script import Text, words
from tests.support.breaking import Redis
from tests.support.processes import Deployment, Web, ended_after, own_port
from tests.support.readiness import ready
from tests.support.world import act, made

pytestmark = pytest.mark.usefixtures("orm")

LONG = words(250)
# No worker runs here, which makes nothing red.
WELL = {"database": "ok", "redis": "ok", "live": "ok", "worker": "late"}


async def until_checks(web: Web, wanted: dict[str, str]) -> None:
    """Waits until the checks are these."""
    async with asyncio.timeout(30):
        while (await ready(web))[1]["checks"] != wanted:  # noqa: ASYNC110 - a page that is asked, no event
            await asyncio.sleep(0.1)


async def heard_elsewhere(one: Web, two: Web) -> None:
    """What an agent of the one process says reaches a customer of the other, with no gap to fetch."""
    world = await made()
    kim = await asyncio.to_thread(world.agent, "Kim")
    async with world.customer(one) as told, world.desk(two, kim) as desk:
        await desk.expect("ack", id=await act(desk, "conversation.take", told.conversation))
        await told.client.expect("event", kind="owner")
        await act(desk, "message.send", told.conversation, text="Can you hear me?")
        await told.message("Can you hear me?")


async def test_a_redis_that_is_away_is_named_and_forgotten_once_it_is_back(
    redis_pair: tuple[Web, Web], redis: Redis
) -> None:
    status, said = await ready(redis_pair[0])
    assert (status, said["status"], said["checks"]) == (200, "degraded", WELL)
    redis.kill()
    try:
        await until_checks(
            redis_pair[0], {"database": "ok", "redis": "failed", "live": "cut off", "worker": "unknown"}
        )
        status, said = await ready(redis_pair[0])
        assert (status, said["status"], set(said["means"])) == (503, "failing", {"redis", "live", "worker"})
        # For balancers that would be left without any server: customers are served without Redis.
        status, said = await ready(redis_pair[0], "?exclude=redis")
        assert (status, said["status"]) == (200, "degraded")
        world = await made()
        async with world.customer(redis_pair[0]) as line:
            await line.say("Is anybody there?")
            await line.answer()
    finally:
        redis.start()
        redis.wait_ready()
    for web in redis_pair:
        await until_checks(web, WELL)
    await heard_elsewhere(*redis_pair)
    # What a balancer was told is no error of this process, however often it asks.
    assert "Service Unavailable: /readyz" not in redis_pair[0].output()


async def test_a_process_that_hears_nothing_beside_a_redis_that_answers_is_not_ready(
    redis_pair: tuple[Web, Web], redis_client: RedisClient
) -> None:
    redis_client.acl_setuser("default", enabled=True, commands=["-subscribe"])
    try:
        redis_client.client_kill_filter(_type="pubsub")
        await until_checks(redis_pair[0], {**WELL, "live": "deaf"})
        for query in ("", "?exclude=redis"):
            status, said = await ready(redis_pair[0], query)
            assert (status, said["status"], set(said["means"])) == (503, "failing", {"live", "worker"})
    finally:
        redis_client.acl_setuser("default", enabled=True, commands=["+subscribe"])
    for web in redis_pair:
        await until_checks(web, WELL)
    await heard_elsewhere(*redis_pair)


async def test_a_redis_that_takes_nothing_is_named(
    redis_pair: tuple[Web, Web], redis_client: RedisClient
) -> None:
    redis_client.slaveof("127.0.0.1", own_port())  # as one that has lost its place to another
    try:
        await until_checks(redis_pair[0], {**WELL, "redis": "failed", "worker": "unknown"})
    finally:
        redis_client.slaveof()
    await until_checks(redis_pair[0], WELL)


async def test_connections_that_redis_kills_are_made_again(
    redis_pair: tuple[Web, Web], redis_client: RedisClient
) -> None:
    for kind in ("pubsub", "normal"):
        redis_client.client_kill_filter(_type=kind, skipme=True)
    for web in redis_pair:
        await until_checks(web, WELL)
    await heard_elsewhere(*redis_pair)


async def test_a_slow_redis_delays_no_answer_and_connections_that_die_without_a_word_are_replaced(
    deployment: Deployment, redis_pair: tuple[Web, Web], distant: Link, plain_upstream: Upstream
) -> None:
    world = await made(model=plain_upstream)
    plain_upstream.always(Plan(script=Text(LONG), tokens_per_s=300))
    # Not on this thread: the network that it starts behind runs here. The thread lives as long as the loop.
    far = await asyncio.to_thread(Web, deployment, "ready-far", REDIS_URL=f"redis://127.0.0.1:{distant.port}")
    with ended_after(far):
        await until_checks(far, WELL)
        distant.delay(0.7)
        async with world.customer(far) as line:
            await line.say("Tell me everything")
            started = await line.client.expect("turn.started")
            assert (await line.answer())["text"] == line.shown(started["handle"]) == LONG
        status, said = await ready(far)
        assert (status, said["checks"]["redis"]) == (503, "late")
        distant.delay(0)
        await until_checks(far, WELL)
        distant.strand()
        await until_checks(far, {**WELL, "live": "deaf"})
        await until_checks(far, WELL)
        await heard_elsewhere(far, redis_pair[0])


async def test_a_connection_that_redis_never_answers_is_replaced(
    deployment: Deployment, redis_pair: tuple[Web, Web], redis_client: RedisClient, distant: Link
) -> None:
    far = await asyncio.to_thread(
        Web, deployment, "ready-unanswered", REDIS_URL=f"redis://127.0.0.1:{distant.port}"
    )
    with ended_after(far):
        await until_checks(far, WELL)
        distant.strand_next()
        redis_client.client_kill_filter(_type="pubsub")
        await until_checks(far, {**WELL, "live": "deaf"})
        await until_checks(far, WELL)
        await heard_elsewhere(far, redis_pair[0])
