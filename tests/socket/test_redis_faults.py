"""What two web processes do when the Redis between them is killed, emptied, silent or full."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis as RedisClient

from tests.chaos.links import Link
from tests.fakes.upstream.faults import Plan
from tests.fakes.upstream.handle import Upstream
from tests.fakes.upstream.script import Text, words
from tests.support.breaking import Redis
from tests.support.client import DEADLINE_S
from tests.support.processes import Deployment, Web, ended_after, own_port
from tests.support.stored import assert_whole, stored
from tests.support.world import Open, act, made

pytestmark = pytest.mark.usefixtures("orm")

LONG = words(250)


class Reachable(Redis):
    """One with a port besides."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        super().__init__(folder)
        self.port = own_port()
        with RedisClient.from_url(self.url, socket_connect_timeout=DEADLINE_S) as client:
            client.config_set("port", self.port)


@pytest.fixture
def first_and_heir(deployment: Deployment) -> Iterator[tuple[Reachable, Reachable]]:
    first = Reachable(deployment.var_dir / "first")
    with ended_after(first):
        heir = Reachable(deployment.var_dir / "heir")
        with ended_after(heir):
            yield first, heir


async def healed(*webs: Web) -> None:
    for web in webs:
        await asyncio.to_thread(web.wait_ready)


async def test_a_redis_that_dies_and_comes_back_empty_costs_nobody_a_word(
    redis_pair: tuple[Web, Web], redis: Redis, plain_upstream: Upstream
) -> None:
    world = await made(model=plain_upstream)
    plain_upstream.always(Plan(script=Text(LONG), tokens_per_s=100))
    async with world.tabs(*redis_pair) as (asker, other):
        await asker.say("Tell me everything")
        started = await asker.client.expect("turn.started")
        await asker.client.expect("delta")
        redis.lose_everything()
        answer = await asker.answer()
        assert answer["text"] == asker.shown(started["handle"]) == LONG
        assert (await other.message(LONG))["part"] == 1
    assert [row[2] for row in await stored(asker.conversation)] == ["complete", "complete"]
    await assert_whole(asker.conversation)
    await healed(*redis_pair)


async def test_live_text_reaches_the_other_process_again_when_redis_was_emptied(
    redis_pair: tuple[Web, Web], redis_client: RedisClient, plain_upstream: Upstream
) -> None:
    world = await made(model=plain_upstream)
    plain_upstream.always(Plan(script=Text(LONG), tokens_per_s=15))
    async with world.tabs(*redis_pair) as (asker, other):
        await asyncio.to_thread(redis_client.flushall)
        await asker.say("Tell me everything")
        await other.client.expect("delta")
        await _stopped(asker)
    await assert_whole(asker.conversation)


async def test_live_text_reaches_a_socket_that_came_to_the_other_process_without_redis(
    redis_pair: tuple[Web, Web], redis: Redis, plain_upstream: Upstream
) -> None:
    world = await made(model=plain_upstream)
    plain_upstream.always(Plan(script=Text(LONG), tokens_per_s=15))
    token = world.visitor()
    async with world.customer(redis_pair[0], token=token) as asker:
        redis.kill()
        async with world.customer(redis_pair[1], token=token) as other:
            redis.start()
            redis.wait_ready()
            await asker.say("Tell me everything")
            await other.client.expect("delta")
            await _stopped(asker)
    await assert_whole(asker.conversation)


async def _stopped(asker: Open) -> None:
    started = asker.client.received("turn.started")[-1]
    await asker.client.send(
        {
            "type": "turn.stop",
            "conversation": asker.conversation,
            "turn": started["turn"],
            "painted": len(asker.shown(started["handle"])),
        }
    )
    await asker.client.expect("turn.ended")


async def test_what_was_said_while_redis_was_away_reaches_the_other_process_once_it_is_back(
    redis_pair: tuple[Web, Web], redis: Redis
) -> None:
    world = await made()
    kim = await asyncio.to_thread(world.agent, "Kim")
    async with (
        world.customer(redis_pair[0]) as told,
        world.customer(redis_pair[0]) as telling,
        world.desk(redis_pair[1], kim) as desk,
    ):
        await desk.expect("ack", id=await act(desk, "conversation.take", told.conversation))
        await told.client.expect("event", kind="owner")
        redis.kill()
        said = await act(desk, "message.send", told.conversation, text="Are you there?")
        await desk.expect("ack", id=said)
        await telling.say("I want to talk to a person")
        redis.start()
        redis.wait_ready()
        await told.message("Are you there?")
        await told.client.expect("history", after=told.client.received("event")[-1]["seq"])
        await desk.expect("inbox.row", where=lambda f: f["row"]["conversation"] == telling.conversation)
        await healed(*redis_pair)
    await assert_whole(told.conversation)


async def test_a_silent_redis_delays_no_word_and_leaves_a_whole_buffer(
    redis_pair: tuple[Web, Web], redis: Redis, plain_upstream: Upstream
) -> None:
    world = await made(model=plain_upstream)
    plain_upstream.always(Plan(script=Text(LONG), tokens_per_s=60))
    token = world.visitor()
    async with world.customer(redis_pair[0], token=token) as asker:
        await asker.say("Tell me everything")
        started = await asker.client.expect("turn.started")
        await asker.client.expect("delta")
        with redis.silent():
            for _ in range(20):
                await asker.client.expect("delta")
        for _ in range(5):
            await asker.client.expect("delta")
        async with world.customer(redis_pair[1], token=token) as again:
            text = again.welcome["live"]["text"]
            assert text
            assert LONG.startswith(text)
            answer = await again.answer()
            await again.client.expect("turn.ended")
        assert again.resumed() == answer["text"] == LONG
    assert asker.shown(started["handle"])
    await assert_whole(asker.conversation)
    await healed(*redis_pair)


async def test_a_full_redis_stops_no_stream(
    redis_pair: tuple[Web, Web], redis: Redis, plain_upstream: Upstream
) -> None:
    world = await made(model=plain_upstream)
    plain_upstream.always(Plan(script=Text(LONG), tokens_per_s=300))
    client = RedisClient.from_url(redis.url, socket_connect_timeout=DEADLINE_S, socket_timeout=DEADLINE_S)
    try:
        client.config_set("maxmemory", "1")
        async with world.customer(redis_pair[0]) as line:
            await line.say("Tell me everything")
            started = await line.client.expect("turn.started")
            assert (await line.answer())["text"] == line.shown(started["handle"]) == LONG
            await line.client.expect("turn.ended", end="finished")
    finally:
        client.config_set("maxmemory", "256mb")
        client.close()
    await assert_whole(line.conversation)
    await healed(*redis_pair)


async def test_a_redis_that_lost_its_place_is_left_although_it_keeps_its_connections(
    deployment: Deployment, first_and_heir: tuple[Reachable, Reachable], plain_upstream: Upstream
) -> None:
    first, heir = first_and_heir
    world = await made(model=plain_upstream)
    plain_upstream.always(Plan(script=Text(LONG), tokens_per_s=15))
    token = world.visitor()
    async with Link(first.port) as address:
        here = await asyncio.to_thread(
            Web, deployment, "before", REDIS_URL=f"redis://127.0.0.1:{address.port}"
        )
        with ended_after(here):
            async with world.customer(here, token=token) as asker:
                address.lead_to(heir.port)
                with RedisClient.from_url(first.url, socket_connect_timeout=DEADLINE_S) as client:
                    await asyncio.to_thread(client.slaveof, "127.0.0.1", heir.port)
                there = await asyncio.to_thread(
                    Web, deployment, "after", REDIS_URL=f"redis://127.0.0.1:{heir.port}"
                )
                with ended_after(there):
                    async with world.customer(there, token=token) as other:
                        await asker.say("Tell me everything")
                        # What was missed is told from the database; live text comes this way or not at all.
                        await other.client.expect("delta")
                        await _stopped(asker)
    await assert_whole(asker.conversation)
