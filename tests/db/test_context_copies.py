"""Copies of contexts in Redis: bounded, versioned, and never more than the log says."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import redis.asyncio

from apps.engine.context import Context, Marks
from apps.engine.types import Speaker
from apps.stores.codecs import Kind, Undecodable, packed, unpacked
from apps.turns.kept.context_copies import ContextCopies, read, written


@pytest.fixture
async def client(redis_url: str) -> AsyncIterator[redis.asyncio.Redis]:
    async with redis.asyncio.Redis.from_url(redis_url) as client:
        await client.flushdb()
        yield client


def told(*texts: str, seq: int = 9) -> Context:
    context = Context(seq=seq)
    for place, text in enumerate(texts, 1):
        context.add(place, Speaker.CUSTOMER if place % 2 else Speaker.ASSISTANT, text)
    return context


async def test_a_copy_is_read_as_it_was_written(client: redis.asyncio.Redis) -> None:
    context = told(*(f"Order {n} costs {n} euro, said twice. " * 8 for n in range(200)))
    outgrown = context.outgrown(Marks(high_tokens=1_000, low_tokens=800))
    assert outgrown is not None
    assert context.shorten(outgrown, outgrown.shortened())
    context.endpoint = "fake"
    copies = ContextCopies(client)
    await copies.put("c1", written("e1", context))
    copy = await copies.get("c1")
    assert copy is not None
    assert (copy.epoch, copy.context) == ("e1", context)
    assert await copies.get("c2") is None


async def test_all_copies_together_stay_below_the_capacity_and_the_oldest_go(
    client: redis.asyncio.Redis,
) -> None:
    copies = ContextCopies(client, capacity_bytes=1_000)
    values = {f"c{n}": packed(Kind.RECORD, bytes(299)) for n in range(5)}
    for name, value in values.items():
        await copies.put(name, value)
    await copies.put("c4", values["c4"])
    left = [name for name in values if await client.exists(f"context:{name}")]
    assert left == ["c2", "c3", "c4"]
    assert await client.hgetall("contexts:sizes") == {
        b"": b"900", b"c2": b"300", b"c3": b"300", b"c4": b"300",
    }  # fmt: skip


async def test_a_context_too_big_is_not_copied(client: redis.asyncio.Redis) -> None:
    await ContextCopies(client).put("c1", bytes(100_000))
    assert not await client.exists("context:c1")


async def test_without_redis_there_is_no_copy() -> None:
    async with redis.asyncio.Redis(host="127.0.0.1", port=1) as nowhere:
        copies = ContextCopies(nowhere)
        await copies.put("c1", written("e1", told("Hello")))
        assert await copies.get("c1") is None


def test_small_values_are_never_compressed_and_contexts_are() -> None:
    text = b"where is my order 1042? " * 100
    assert packed(Kind.CONTEXT, text[:500]) == b"\x00" + text[:500]
    assert packed(Kind.RECORD, text) == b"\x00" + text
    assert len(packed(Kind.CONTEXT, text)) < len(text) / 10
    assert unpacked(packed(Kind.CONTEXT, text)) == text


@pytest.mark.parametrize(
    "broken", [b"", b"\x02rest", b"\x01rest", b"\x00rest", packed(Kind.CONTEXT, bytes(5_000_000))]
)
def test_what_is_no_copy_is_refused(broken: bytes) -> None:
    with pytest.raises(Undecodable):
        read(broken)
