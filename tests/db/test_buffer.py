"""Whose the live text in Redis is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from apps.stores.ids import new_id
from apps.stores.redis import connect
from apps.turns.between.buffer import APPEND_DEADLINE_S, StreamBuffer
from tests.support.metrics import counted_here

pytestmark = pytest.mark.usefixtures("redis_url")


@pytest.fixture
async def buffer() -> AsyncIterator[StreamBuffer]:
    redis = connect()
    yield StreamBuffer(redis, "process")
    await redis.aclose()


async def test_a_turn_whose_beginning_did_not_arrive_is_not_lost_to_the_turn_before(
    buffer: StreamBuffer,
) -> None:
    conversation = new_id()
    await buffer.begin(conversation, 1, "first", 1)
    await buffer.end(conversation, 1)
    held = await buffer.append(conversation, 2, 0, "Hello", 0.0)
    assert held is not None
    assert held.mine
    assert held.out_of_step
    assert await buffer.begin(conversation, 2, "second", 1, text="Hello")
    held = await buffer.append(conversation, 2, 5, " there", 0.0)
    assert held is not None
    assert not held.out_of_step
    buffered = await buffer.read(conversation)
    assert buffered is not None
    assert (buffered.turn, buffered.fence, buffered.text) == ("second", 2, "Hello there")


async def test_an_answer_of_redis_that_came_in_time_counts_for_a_process_that_was_busy(
    buffer: StreamBuffer,
) -> None:
    conversation, loop = new_id(), asyncio.get_running_loop()
    await buffer.begin(conversation, 1, "first", 1)
    await buffer.append(conversation, 1, 0, "Hello", 0.0)
    failures = counted_here("chatsvc_redis_failures_total", operation="append")

    def busy() -> None:
        until = loop.time() + 2 * APPEND_DEADLINE_S
        while loop.time() < until:
            pass

    appending = asyncio.create_task(buffer.append(conversation, 1, 5, " there", 0.0))
    loop.call_soon(busy)  # behind the task's first step, which has asked
    held = await appending
    assert held is not None
    assert held.mine
    assert counted_here("chatsvc_redis_failures_total", operation="append") == failures


@pytest.mark.parametrize("ended", [False, True])
async def test_a_newer_fence_takes_the_text_also_when_it_has_ended(
    buffer: StreamBuffer, *, ended: bool
) -> None:
    conversation = new_id()
    await buffer.begin(conversation, 1, "first", 1)
    await buffer.begin(conversation, 2, "second", 1)
    if ended:
        await buffer.end(conversation, 2)
    held = await buffer.append(conversation, 1, 0, "Hello", 0.0)
    assert held is not None
    assert not held.mine
    assert not await buffer.begin(conversation, 1, "first", 1, text="Hello")


async def test_a_stop_that_comes_late_does_not_end_the_next_turn(buffer: StreamBuffer) -> None:
    conversation = new_id()
    await buffer.begin(conversation, 1, "first", 1)
    assert await buffer.tell_stop(conversation, "first", 3)
    await buffer.begin(conversation, 2, "second", 1)
    assert not await buffer.tell_stop(conversation, "first", 3)
    held = await buffer.append(conversation, 2, 0, "Hello", 0.0)
    assert held is not None
    assert held.stop is None
    await buffer.end(conversation, 2)
    assert not await buffer.tell_stop(conversation, "second", 3)


async def test_news_of_an_earlier_owner_does_not_hide_the_newer_one(buffer: StreamBuffer) -> None:
    conversation = new_id()
    await buffer.begin(conversation, 1, "first", 1)
    await buffer.tell_owner(conversation, 3)
    await buffer.tell_owner(conversation, 2)
    held = await buffer.append(conversation, 1, 0, "Hello", 0.0)
    assert held is not None
    assert held.owner_version == 3
