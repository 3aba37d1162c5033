"""What is begun while a customer types: used for the very text that is sent, else thrown away, and kept nowhere."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from django.apps import apps
from redis.asyncio import Redis

from apps.conversations.models import Message
from tests.fakes.shop.handle import Shop
from tests.support.client import DEADLINE_S, Client, Frame
from tests.support.metrics import counted, metrics
from tests.support.processes import Deployment, Web, wait_for
from tests.support.world import Open, World, made

pytestmark = pytest.mark.usefixtures("orm")

QUESTION = "How long do I have to return an item?"
OTHER = "Do you repair worn boots?"
SECRET = "quokkamarmalade"


async def shop_that(reads_drafts: bool, shop: Shop | None = None) -> World:
    """A site with the demo's articles. The builtin answers; no answer is given again."""
    return await made(articles=True, shop=shop, reads_drafts=reads_drafts, answer_cache="off")


def searches(web: Web) -> float:
    return sum(
        value for name, value in metrics(web).items() if name.startswith("chatsvc_knowledge_searches_total")
    )


def ended(web: Web, end: str) -> float:
    return counted(web, "chatsvc_drafts_total", end=end)


async def searched(web: Web, times: float) -> None:
    await asyncio.to_thread(wait_for, lambda: searches(web) == times)


@asynccontextmanager
async def talk(world: World, web: Web, **who: str) -> AsyncIterator[tuple[Open, Client]]:
    """A customer's line and an agent who watches it."""
    kim = await asyncio.to_thread(world.agent, "Kim")
    async with world.customer(web, **who) as line, world.desk(web, kim) as desk:
        await desk.send({"type": "conversation.watch", "conversation": line.conversation})
        await desk.expect("watching")
        yield line, desk


async def marks(line: Open, desk: Client, text: str) -> dict[str, str]:
    """Of the turn that answers this."""
    await line.say(text)
    trace: Frame = await desk.expect("waterfall")
    return dict(trace["marks"])


async def test_what_was_drafted_is_not_searched_for_again(web: Web) -> None:
    world = await shop_that(reads_drafts=True)
    before, saved = searches(web), metrics(web)["chatsvc_drafts_saved_seconds_total"]
    async with talk(world, web) as (line, desk):
        await line.write(QUESTION, 1)
        await searched(web, before + 1)
        told = await marks(line, desk, f" {QUESTION}\n")
        answer = await line.answer()
    assert (told["retrieval"], told["drafts"], told["draft_wasted_ms"]) == ("draft", "1", "0.0")
    assert float(told["draft_saved_ms"]) > 0
    assert "60 days" in answer["text"]
    assert searches(web) == before + 1
    assert metrics(web)["chatsvc_drafts_saved_seconds_total"] > saved


async def test_another_text_is_searched_for_and_what_was_begun_is_counted_as_waste(web: Web) -> None:
    world = await shop_that(reads_drafts=True)
    before, changed = searches(web), ended(web, "changed")
    async with talk(world, web) as (line, desk):
        await line.write(OTHER, 1)
        await searched(web, before + 1)
        told = await marks(line, desk, QUESTION)
        answer = await line.answer()
        again = await marks(line, desk, QUESTION)
    assert "retrieval" not in told
    assert told["drafts"] == "1"
    assert float(told["draft_wasted_ms"]) > 0
    assert "60 days" in answer["text"]
    assert "drafts" not in again
    assert (searches(web), ended(web, "changed")) == (before + 3, changed + 1)


async def test_the_newest_draft_wins(web: Web) -> None:
    world = await shop_that(reads_drafts=True)
    replaced = ended(web, "replaced")
    async with talk(world, web) as (line, desk):
        before = searches(web)
        await line.write(OTHER, 1)
        await searched(web, before + 1)
        # A server takes up no draft sooner than the protocol says: the next one that is taken up is the newest.
        number = 1
        while ended(web, "replaced") == replaced:
            number += 1
            await line.write(QUESTION, number)
        await searched(web, before + 2)
        await line.write(OTHER, 1)
        told = await marks(line, desk, QUESTION)
    assert (told["retrieval"], told["drafts"]) == ("draft", "2")
    assert float(told["draft_wasted_ms"]) > 0


async def test_nothing_is_begun_for_a_site_that_does_not_want_it(web: Web) -> None:
    world = await shop_that(reads_drafts=False)
    before = searches(web)
    async with talk(world, web) as (line, desk):
        await line.write(QUESTION, 1)
        told = await marks(line, desk, QUESTION)
        refused = line.client.received("refused")
    assert not {"retrieval", "drafts"} & told.keys()
    assert searches(web) == before + 1
    assert refused == []


async def test_a_draft_for_another_conversation_is_passed_over(web: Web) -> None:
    world = await shop_that(reads_drafts=True)
    before = searches(web)
    async with talk(world, web) as (line, desk), world.customer(web) as other:
        await line.client.send(
            {"type": "draft", "conversation": other.conversation, "text": QUESTION, "number": 1}
        )
        told = await marks(line, desk, QUESTION)
    assert "drafts" not in told
    assert searches(web) == before + 1


async def test_a_customer_who_leaves_takes_the_draft_along(web: Web) -> None:
    world = await shop_that(reads_drafts=True)
    left = ended(web, "left")
    async with world.customer(web) as line:
        await line.write(QUESTION, 1)
    await asyncio.to_thread(wait_for, lambda: ended(web, "left") == left + 1)


async def test_the_orders_that_a_draft_asks_for_are_there_when_it_is_sent(web: Web, shop: Shop) -> None:
    world = await shop_that(reads_drafts=True, shop=shop)
    identity = await asyncio.to_thread(world.identity, "mia")

    def fetched() -> float:
        return counted(web, "chatsvc_prefetches_total", outcome="fetched")

    before = fetched()
    async with talk(world, web, identity=identity) as (line, desk):
        await line.write("Where is my order 1042?", 1)
        await asyncio.to_thread(wait_for, lambda: fetched() == before + 1)
        told = await marks(line, desk, "Where is my order 1042?")
    assert told["profile"] == "warm"


async def test_a_draft_leaves_no_trace_and_reaches_no_agent(web: Web, deployment: Deployment) -> None:
    world = await shop_that(reads_drafts=True)
    before = searches(web)
    redis = Redis.from_url(deployment.redis_url, socket_connect_timeout=DEADLINE_S, socket_timeout=DEADLINE_S)
    async with redis, redis.monitor() as monitor, talk(world, web) as (line, desk):
        await line.write(f"{QUESTION} {SECRET}", 1)
        await searched(web, before + 1)
        await marks(line, desk, QUESTION)
        await redis.echo("the end")
        said: list[str] = []
        while not said or "the end" not in said[-1]:
            said.append(str((await monitor.next_command())["command"]))
        journals = str(desk.journal) + str(line.client.journal)
    stored = await asyncio.to_thread(everything_stored)
    assert QUESTION in stored
    assert QUESTION in journals
    assert not [place for place in (*said, stored, journals, web.output()) if SECRET in place]


def everything_stored() -> str:
    """All rows of all tables."""
    assert Message.objects.exists()
    return str([list(model._default_manager.values()) for model in apps.get_models()])


async def test_what_was_asked_before_is_not_embedded_again_and_what_was_only_drafted_is(web: Web) -> None:
    world = await shop_that(reads_drafts=True)

    def known() -> float:
        return counted(web, "chatsvc_knowledge_vectors_total", how="known")

    before = searches(web)
    async with talk(world, web) as (line, _):
        await line.write("May I bring back a lamp", 1)
        await searched(web, before + 1)
    start = known()
    async with talk(world, web) as (line, desk):
        await marks(line, desk, "May I bring back a lamp")
        assert known() == start
    async with talk(world, web) as (line, desk):
        await marks(line, desk, "May I bring back a lamp")
        assert known() == start + 1
