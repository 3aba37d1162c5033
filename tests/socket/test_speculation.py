"""Answers begun for drafts: given where the very prompt comes, else thrown away, and without any effect till then."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from typing import Any

import pytest
from django.db import transaction

from apps.conversations.models import Event, Message
from apps.rulebook.models import Rule
from tests.fakes.upstream.faults import Plan, refusal
from tests.fakes.upstream.handle import Upstream
from tests.fakes.upstream.script import Text, ToolCall, words
from tests.support.breaking import locked_database
from tests.support.client import Frame
from tests.support.http_line import http_line
from tests.support.metrics import counted, metrics
from tests.support.model_line import answers
from tests.support.processes import Deployment, Web, wait_for
from tests.support.world import Open, World, made

pytestmark = pytest.mark.usefixtures("orm")

QUESTION = "Do lamps dream?"
SAID = "Only in winter."


async def shop_with(upstream: Upstream, tokens: int = 100_000, places: int = 10, **rule: Any) -> World:
    """A site that begins answers early."""
    return await made(
        model=upstream,
        endpoint={"max_concurrent": places},
        rule=rule or None,
        reads_drafts=True,
        answer_cache="off",
        speculation_tokens=tokens,
    )


def ended(web: Web, end: str) -> float:
    return counted(web, "chatsvc_speculations_total", end=end)


async def grows(web: Web, end: str, before: float) -> None:
    await asyncio.to_thread(wait_for, lambda: ended(web, end) == before + 1)


async def answered(upstream: Upstream, times: int) -> None:
    """The model has ended so many answers."""
    await asyncio.to_thread(
        wait_for, lambda: [bool(seen.ended) for seen in answers(upstream)] == [True] * times
    )


async def marks(world: World, web: Web, line: Open, text: str) -> dict[str, str]:
    """Of the turn that answers this."""
    kim = await asyncio.to_thread(world.agent, "Kim")
    async with world.desk(web, kim) as desk:
        await desk.send({"type": "conversation.watch", "conversation": line.conversation})
        await desk.expect("watching")
        await line.say(text)
        trace: Frame = await desk.expect("waterfall")
    return dict(trace["marks"])


async def test_the_answer_to_a_draft_is_there_when_it_is_sent(web: Web, plain_upstream: Upstream) -> None:
    world, used = await shop_with(plain_upstream), ended(web, "used")
    plain_upstream.next(Plan(script=Text(SAID)))
    async with world.customer(web) as line:
        await line.write(f" {QUESTION}\n")
        await answered(plain_upstream, 1)
        assert line.client.received("delta") == line.client.received("turn.started") == []
        assert not await asyncio.to_thread(Event.objects.filter(conversation=line.conversation).exists)
        told = await marks(world, web, line, QUESTION)
        answer = await line.answer()
    assert (answer["text"], told["speculation"]) == (SAID, "used")
    assert float(told["speculation_saved_ms"]) >= 0
    assert len(answers(plain_upstream)) == 1
    assert ended(web, "used") == used + 1


async def test_what_was_said_so_far_is_shown_at_once_and_the_rest_as_it_comes(
    web: Web, plain_upstream: Upstream
) -> None:
    world = await shop_with(plain_upstream)
    plain_upstream.next(Plan(script=Text(words(400)), tokens_per_s=40))
    async with world.customer(web) as line:
        await line.write(QUESTION)
        await plain_upstream.until("tokens_sent", 8)
        await line.say(QUESTION)
        started = await line.client.expect("turn.started")
        for _ in range(4):
            await line.client.expect("delta")
        shown = line.shown(started["handle"])
        stop = {
            "type": "turn.stop",
            "conversation": line.conversation,
            "turn": started["turn"],
            "painted": len(shown),
        }
        await line.client.send(stop)
        answer = await line.answer()
        await plain_upstream.until("aborts", 1)
    assert shown.startswith("word0 word1 word2 word3")
    assert (answer["text"], answer["state"]) == (shown, "stopped")
    assert len(answers(plain_upstream)) == 1


async def test_for_another_text_it_is_thrown_away_and_counted_as_waste(
    web: Web, plain_upstream: Upstream
) -> None:
    world, changed = await shop_with(plain_upstream), ended(web, "changed")
    wasted = counted(web, "chatsvc_speculation_tokens_total", end="wasted")
    plain_upstream.next(Plan(script=Text("Never shown. " * 300), tokens_per_s=50), Plan(script=Text(SAID)))
    async with world.customer(web) as line:
        await line.write(QUESTION)
        await plain_upstream.until("tokens_sent", 3)
        told = await marks(world, web, line, "And boots?")
        answer = await line.answer()
        await plain_upstream.until("aborts", 1)
    texts = await asyncio.to_thread(
        lambda: list(Message.objects.filter(conversation=line.conversation).values_list("text", flat=True))
    )
    assert "speculation" not in told
    assert (answer["text"], sorted(texts)) == (SAID, sorted(["And boots?", SAID]))
    assert ended(web, "changed") == changed + 1
    assert counted(web, "chatsvc_speculation_tokens_total", end="wasted") > wasted


async def test_a_text_that_only_reads_the_same_is_asked_anew(web: Web, plain_upstream: Upstream) -> None:
    world, differed = await shop_with(plain_upstream), ended(web, "differed")
    plain_upstream.next(Plan(script=Text("Never shown.")), Plan(script=Text(SAID)))
    async with world.customer(web) as line:
        await line.write("Do  lamps dream?")
        await answered(plain_upstream, 1)
        await line.say(QUESTION)
        answer = await line.answer()
    assert answer["text"] == SAID
    assert ended(web, "differed") == differed + 1


@pytest.mark.parametrize(
    ("tokens", "rule", "end"),
    [(100_000, {"reply_en": "Fixed."}, "passed"), (100_000, {"tag": "x"}, "passed"), (10, {}, "capped")],
)
async def test_nothing_is_begun_where_a_rule_acts_or_the_tokens_are_used_up(
    tokens: int, rule: dict[str, Any], end: str, web: Web, plain_upstream: Upstream
) -> None:
    world, before = await shop_with(plain_upstream, tokens, **rule), ended(web, end)
    async with world.customer(web) as line:
        await line.write(QUESTION)
        await grows(web, end, before)
    assert answers(plain_upstream) == []


async def test_half_of_an_endpoints_places_are_left_to_questions(web: Web, plain_upstream: Upstream) -> None:
    world, busy = await shop_with(plain_upstream, places=2), ended(web, "busy")
    plain_upstream.next(Plan(script=Text("Never shown. " * 300), tokens_per_s=20))
    plain_upstream.always(Plan(script=Text(SAID)))
    async with world.customer(web) as first, world.customer(web) as second, world.customer(web) as asker:
        await first.write(QUESTION)
        await plain_upstream.until("tokens_sent", 3)
        await second.write(QUESTION)
        await grows(web, "busy", busy)
        await asker.say("And boots?")
        answer = await asker.answer()
    assert answer["text"] == SAID
    assert len(answers(plain_upstream)) == 2


async def test_a_rule_that_came_in_between_is_obeyed(web: Web, plain_upstream: Upstream) -> None:
    world, differed = await shop_with(plain_upstream), ended(web, "differed")
    plain_upstream.next(Plan(script=Text("Never shown.")))
    plain_upstream.always(Plan(script=Text(SAID)))

    def change() -> None:
        with transaction.atomic():
            Rule.objects.create(site=world.site, name="a", condition="true", instruction="Be brief.")
            Rule.objects.create(site=world.site, name="b", condition='text == "Known?"', reply_en="Known.")

    async with world.customer(web) as line, world.customer(web) as other:
        await line.write(QUESTION)
        await answered(plain_upstream, 1)
        await asyncio.to_thread(change)
        said = ""
        while said != "Known.":
            await other.say("Known?")
            said = (await other.answer())["text"]
        await line.say(QUESTION)
        answer = await line.answer()
    assert answer["text"] == SAID
    assert ended(web, "differed") == differed + 1


async def test_a_customer_who_left_is_answered_with_what_was_begun(
    web: Web, deployment: Deployment, plain_upstream: Upstream
) -> None:
    world, used = await shop_with(plain_upstream), ended(web, "used")
    plain_upstream.always(Plan(script=Text(SAID)))
    hello = {"type": "hello", "token": world.visitor(), "locale": "en"}
    address = f"http://127.0.0.1:{web.port}"
    with ExitStack() as lock:
        async with http_line(address, "customer", "stream", hello=hello) as client:
            line = Open(client, await client.expect("welcome"))
            await line.write(QUESTION)
            await answered(plain_upstream, 1)
            lock.enter_context(locked_database(deployment.database_url))
            sent = {"type": "message.send", "id": "m", "conversation": line.conversation, "text": QUESTION}
            await client.send(sent)
        await asyncio.to_thread(wait_for, lambda: not metrics(web)['chatsvc_http_lines{transport="stream"}'])
    await grows(web, "used", used)
    assert len(answers(plain_upstream)) == 1


async def test_a_model_that_wants_a_person_gets_one_only_in_its_turn(
    web: Web, plain_upstream: Upstream
) -> None:
    world, acted = await shop_with(plain_upstream), ended(web, "acted")
    plain_upstream.always(Plan(script=ToolCall()))
    async with world.customer(web) as line:
        await line.write(QUESTION)
        await grows(web, "acted", acted)
        assert not await asyncio.to_thread(Event.objects.filter(conversation=line.conversation).exists)
        await line.say(QUESTION)
        await line.client.expect("event", kind="owner")
    assert len(answers(plain_upstream)) == 2


async def test_one_that_failed_is_nobodys_failure(web: Web, plain_upstream: Upstream) -> None:
    world = await shop_with(plain_upstream)
    plain_upstream.next(refusal(400, "bad_request"), Plan(script=Text(SAID)))
    async with world.customer(web) as line:
        await line.write(QUESTION)
        await answered(plain_upstream, 1)
        await line.say(QUESTION)
        answer = await line.answer()
    assert answer["text"] == SAID
