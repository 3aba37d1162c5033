"""What finished conversations teach, and what is fetched ahead because of it. The shop and Redis are real."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import pytest_asyncio
import redis

from apps.accounts.models import Site
from apps.conversations.models import Conversation, Message
from apps.conversations.opening import empty_conversation
from apps.customers.facts import FactSources
from apps.customers.identity import Identified, identify
from apps.customers.models import Customer
from apps.engine.types import FactsState
from apps.stores.database import in_database
from apps.stores.ids import new_id
from apps.stores.redis import connect
from apps.telemetry.waterfall import Waterfall
from apps.turns.ahead.foresight import MAX_A_CONVERSATION, MAX_A_SITE, Answered, Foresight
from apps.turns.ahead.learned import (
    FEWEST_CONVERSATIONS,
    LearnedResident,
    learn,
    moves_of,
    sites_that_prefetch,
)
from apps.turns.job import Said
from apps.turns.tasks import learn_site
from apps.wire.publish import Audience, Encoded
from chatsvc.owner import ProcessOwner
from tests.fakes.shop.handle import Shop
from tests.fakes.upstream.handle import Upstream
from tests.support.client import decode
from tests.support.metrics import counted_here
from tests.support.world import World, make_world

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis_url")]

HELLO, ORDER = "Good morning", "Where is my order?"


def talked(site: Site, *texts: str, pause_s: float = 20.0, ended: timedelta = timedelta(hours=1)) -> str:
    """A conversation in which the assistant answered each text at once."""
    customer = Customer.objects.create(site=site, external_id=new_id())
    at = datetime.now(UTC) - ended
    row = Conversation.objects.create(
        workspace=site.workspace, site=site, customer=customer, last_seq=3 * len(texts)
    )
    Conversation.objects.filter(pk=row.pk).update(last_at=at)
    for number, text in enumerate(texts):
        asked_at = at - timedelta(seconds=pause_s * (len(texts) - number))
        for place, (author, said) in enumerate((("customer", text), ("assistant", "Of course."))):
            Message.objects.create(
                conversation=row, place=3 * number + 2 * place + 1, author=author, text=said, created_at=asked_at,
                turn=new_id() if author == "assistant" else "",
            )  # fmt: skip
    return str(row.pk)


def habit(site: Site, *texts: str, **how: Any) -> None:
    for _ in range(FEWEST_CONVERSATIONS):
        talked(site, *texts, **how)


def learned_version(site: Site) -> int:
    return Site.objects.get(pk=site.pk).learned_version


def metric(name: str, **labels: str) -> float:
    return counted_here(f"chatsvc_{name}_total", **labels)


# What is learned.


def test_what_was_learned_is_loaded_and_announced_by_a_version(site: Site) -> None:
    habit(site, HELLO, ORDER, pause_s=25.0)
    before = learned_version(site)
    assert LearnedResident().load(site.pk) is None
    assert learn(site.pk)
    assert learned_version(site) == before + 1
    learned = LearnedResident().load(site.pk)
    assert learned is not None
    assert learned.pause_s == 25.0
    assert learned.predictor.requests == 1  # the first message of a conversation follows nothing


def test_nothing_is_learned_from_few_or_running_conversations_or_twice_from_the_same(site: Site) -> None:
    for _ in range(FEWEST_CONVERSATIONS - 1):
        talked(site, HELLO, ORDER)
    talked(site, HELLO, ORDER, ended=timedelta(minutes=1))
    assert not learn(site.pk)
    talked(site, HELLO, ORDER)
    assert learn(site.pk)
    assert not learn(site.pk)
    talked(site, HELLO, ORDER, ended=timedelta(minutes=31))
    assert learn(site.pk)


def test_learning_costs_the_same_queries_for_few_and_many_messages(
    site: Site, django_assert_num_queries: Callable[[int], Any]
) -> None:
    short, long = talked(site, HELLO), talked(site, *[HELLO, ORDER] * 10)
    with django_assert_num_queries(2):
        assert len(moves_of(short)) == 2
    with django_assert_num_queries(2):
        assert len(moves_of(long)) == 40


# What is fetched ahead.


class Desk:
    """A site that has learned, one process's foresight, and verified customers."""

    def __init__(self, world: World, resident: LearnedResident, facts: FactSources) -> None:
        self.world = world
        self.site = world.site
        self.facts = facts
        self.mia = identify("", world.identity("mia"))
        self._tasks: list[asyncio.Task[None]] = []
        self.foresight = Foresight(resident, facts, self._spawn)

    def _spawn(self, coroutine: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        self._tasks.append(asyncio.create_task(coroutine, name=name))
        return self._tasks[-1]

    async def answered(
        self, conversation: str, question: str, *, processing_s: float = 1.0, who: Identified | None = None
    ) -> None:
        """A turn ends; returns when the look ahead has ended too."""
        asker = who or self.mia
        self.foresight.answered(Answered(self.site.pk, conversation, asker, question, processing_s))
        while self._tasks:
            await self._tasks.pop()


@pytest_asyncio.fixture
async def desk(shop: Shop) -> AsyncIterator[Desk]:
    """After a greeting this site's customers ask for their order, and after that they greet again."""

    def prepared() -> tuple[World, LearnedResident]:
        world = make_world(shop=shop)
        habit(world.site, HELLO, ORDER, HELLO)
        Site.objects.filter(pk=world.site.pk).update(prefetch=True)
        assert learn(world.site.pk)
        resident = LearnedResident()
        resident.refresh(world.site.pk, 1)
        return world, resident

    world, resident = await in_database(prepared)
    client = connect()
    facts = FactSources(client)
    await facts.open()
    try:
        yield await in_database(Desk, world, resident, facts)
    finally:
        await facts.close()
        await client.aclose()


def fetches(shop: Shop) -> int:
    return sum(path.endswith("/orders") for path in shop.counts().paths)


def forget_copy(desk: Desk, url: str) -> None:
    with redis.Redis.from_url(url) as client:
        client.delete(f"profile:{desk.mia.customer_id}")


async def test_facts_are_fetched_before_the_question_that_probably_needs_them(desk: Desk, shop: Shop) -> None:
    used = metric("prefetched", end="used")
    hits = metric("predictions", outcome="hit")
    conversation = await in_database(talked, desk.site, HELLO)
    await desk.answered(conversation, HELLO)
    assert fetches(shop) == 1
    facts = await desk.facts.facts(desk.mia, needed=True)
    assert (facts.state, fetches(shop)) == (FactsState.WARM, 1)
    await desk.answered(conversation, ORDER)
    assert metric("prefetched", end="used") == used + 1
    assert metric("predictions", outcome="hit") == hits + 1


async def test_nothing_is_fetched_when_the_next_question_needs_nothing(desk: Desk, shop: Shop) -> None:
    conversation = await in_database(talked, desk.site, HELLO, ORDER)
    await desk.answered(conversation, ORDER)
    assert fetches(shop) == 0


async def test_a_copy_that_lives_long_enough_is_not_fetched_again(desk: Desk, shop: Shop) -> None:
    await desk.facts.facts(desk.mia, needed=True)
    fresh = metric("prefetches", outcome="fresh")
    await desk.answered(await in_database(talked, desk.site, HELLO), HELLO)
    assert (fetches(shop), metric("prefetches", outcome="fresh")) == (1, fresh + 1)


async def test_a_copy_about_to_expire_is_fetched_again(desk: Desk, shop: Shop, redis_url: str) -> None:
    await desk.facts.facts(desk.mia, needed=True)
    with redis.Redis.from_url(redis_url) as client:
        client.expire(f"profile:{desk.mia.customer_id}", 30)
    await desk.answered(await in_database(talked, desk.site, HELLO), HELLO)
    assert fetches(shop) == 2


async def test_nothing_is_fetched_while_turns_take_longer_than_customers_read(desk: Desk, shop: Shop) -> None:
    busy = metric("prefetches", outcome="busy")
    conversation = await in_database(talked, desk.site, HELLO)
    await desk.answered(conversation, HELLO, processing_s=29.0)  # the usual pause is 20 s
    assert (fetches(shop), metric("prefetches", outcome="busy")) == (0, busy + 1)
    await desk.answered(conversation, HELLO, processing_s=28.0)
    assert fetches(shop) == 1


async def test_a_visitor_has_nothing_fetched(desk: Desk, shop: Shop) -> None:
    visitor = await in_database(identify, desk.world.visitor(), "")
    await desk.answered(await in_database(talked, desk.site, HELLO), HELLO, who=visitor)
    assert fetches(shop) == 0


async def test_a_conversation_has_its_fetches_counted_and_then_no_more(
    desk: Desk, shop: Shop, redis_url: str
) -> None:
    conversation = await in_database(talked, desk.site, HELLO)
    for _ in range(MAX_A_CONVERSATION + 3):
        await desk.answered(conversation, ORDER)  # keeps coming true
        forget_copy(desk, redis_url)
    assert fetches(shop) == MAX_A_CONVERSATION


async def test_a_site_has_its_fetches_counted_and_then_no_more(
    desk: Desk, shop: Shop, redis_url: str
) -> None:
    conversations = [await in_database(talked, desk.site, HELLO) for _ in range(MAX_A_SITE + 3)]
    for conversation in conversations:
        await desk.answered(conversation, HELLO)
        forget_copy(desk, redis_url)
    assert fetches(shop) == MAX_A_SITE


async def test_predictions_that_never_come_true_are_no_longer_acted_on_until_they_do(
    desk: Desk, shop: Shop, redis_url: str
) -> None:
    async def greeted_twice_then(question: str) -> int:
        """How many fetches it took; the answers to both greetings promise that the order is asked for."""
        before = fetches(shop)
        conversation = await in_database(talked, desk.site, HELLO)
        for text in (HELLO, HELLO, question):
            await desk.answered(conversation, text)
            forget_copy(desk, redis_url)
        return fetches(shop) - before

    wasted = metric("prefetched", end="wasted")
    early = [await greeted_twice_then(HELLO) for _ in range(6)]
    assert early[0] == 3
    assert await greeted_twice_then(HELLO) == 0
    assert metric("prefetched", end="wasted") > wasted
    assert sum([await greeted_twice_then(ORDER) for _ in range(12)]) > 0


async def test_a_shop_that_is_down_costs_nothing_but_the_fetch(desk: Desk, shop: Shop) -> None:
    failed = metric("prefetches", outcome="failed")
    await asyncio.to_thread(shop.refuse)
    await desk.answered(await in_database(talked, desk.site, HELLO), HELLO)
    assert metric("prefetches", outcome="failed") == failed + 1


class EndHeard:
    """A customer's socket that waits for the end of a turn."""

    def __init__(self) -> None:
        self.end = asyncio.Event()

    def deliver(self, frame: Encoded) -> None:
        if decode(frame.text)["type"] == "turn.ended":
            self.end.set()


@pytest.mark.parametrize("wanted", [True, False])
async def test_in_a_running_process_an_answer_is_followed_by_the_fetch_where_the_site_wants_it(
    desk: Desk, shop: Shop, plain_upstream: Upstream, wanted: bool
) -> None:
    await in_database(desk.world.model, plain_upstream)
    await in_database(Site.objects.filter(pk=desk.site.pk).update, prefetch=wanted)
    owner = ProcessOwner()
    await owner.start()
    try:
        conversation = await in_database(empty_conversation, desk.mia.customer_id, "en")
        hits = metric("predictions", outcome="hit")
        for text in (HELLO, ORDER):
            said = Said(
                conversation=conversation, site=desk.site.pk, asker=desk.mia, name="", client_id=new_id(),
                text=text, locale="en", received=Waterfall(),
            )  # fmt: skip
            before, heard = shop.counts().requests, EndHeard()
            await owner.office.attendance.join(Audience.CUSTOMERS, conversation, heard)
            await owner.office.supervisor.customer_message(said)
            await asyncio.wait_for(heard.end.wait(), 10)
            await shop.until("requests", before + 2 if wanted == (text is HELLO) else before)
    finally:
        await owner.drain(5.0)
    assert fetches(shop) == 1
    assert metric("predictions", outcome="hit") == hits + wanted


def test_only_sites_that_want_it_are_learned_from(site: Site) -> None:
    habit(site, HELLO, ORDER)
    assert sites_that_prefetch() == []
    Site.objects.filter(pk=site.pk).update(prefetch=True)
    assert sites_that_prefetch() == [site.pk]
    before = learned_version(site)
    learn_site(site.pk)
    assert learned_version(site) == before + 1
