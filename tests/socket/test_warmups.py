"""What the model reads between two questions: found computed by the next one, ended by it, only where switched on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from apps.accounts.models import bump
from apps.llm.models import ModelEndpoint
from tests.fakes.upstream.faults import Action, Fault, Place, Plan
from tests.fakes.upstream.handle import Upstream
from tests.fakes.upstream.ledger import Seen
from tests.support.metrics import counted
from tests.support.model_line import answers, body_of
from tests.support.processes import Web, wait_for
from tests.support.world import World, made

pytestmark = pytest.mark.usefixtures("orm")

ONE_TOKEN = '"max_tokens":1,'
STALLED = Plan(faults=(Fault(action=Action.STALL, place=Place.DATA),), match=ONE_TOKEN)


async def shop_with(
    upstream: Upstream, reads_drafts: bool = False, articles: bool = False, **fields: Any
) -> World:
    """A site whose model is this one; nobody else's answer is given again."""
    endpoint = {"dialect": "vllm", "prepare_prompts": True} | fields
    return await made(
        model=upstream, endpoint=endpoint, articles=articles, reads_drafts=reads_drafts, answer_cache="off"
    )


def contents(seen: Seen) -> list[str]:
    return [message["content"] for message in body_of(seen)["messages"]]


async def grown(web: Web, **labels: str) -> Callable[[int], Any]:
    """Waits until a counter of warm-ups has grown by so many since now."""

    def warmups() -> float:
        return counted(web, "chatsvc_warmups_total", **labels)

    before = warmups()

    async def by(count: int) -> None:
        await asyncio.to_thread(wait_for, lambda: warmups() >= before + count)

    return by


def warmed(web: Web, end: str) -> float:
    return counted(web, "chatsvc_warmed_total", end=end)


async def test_a_sites_beginning_is_read_when_it_is_new_and_when_its_words_change(
    web: Web, plain_upstream: Upstream
) -> None:
    read = await grown(web, why="site", outcome="read")
    world = await shop_with(plain_upstream)
    await read(1)
    await asyncio.to_thread(bump, world.site, "settings_version")  # nothing that is told to the model
    world.site.instructions = "Always be brief."
    await asyncio.to_thread(world.site.save, update_fields=["instructions"])
    await asyncio.to_thread(bump, world.site, "settings_version")
    await read(2)
    seen = answers(plain_upstream)
    assert ["Always be brief." in contents(one)[0] for one in seen] == [False, True]
    async with world.customer(web) as line:
        await line.say("Hello")
        await line.answer()
    turn = next(one for one in answers(plain_upstream)[2:] if ONE_TOKEN not in one.body)
    # All that came before the question, but for the block that was not full.
    assert turn.cached_tokens > 0.9 * seen[1].prompt_tokens


async def test_what_was_said_is_read_after_the_answer_and_found_by_the_next_question(
    web: Web, plain_upstream: Upstream
) -> None:
    world = await shop_with(plain_upstream)
    read, used = await grown(web, why="turn", outcome="read"), warmed(web, "used")
    async with world.customer(web) as line:
        await line.say("Do lamps dream? " * 40)
        await line.answer()
        await read(1)
        await line.say("And boots?")
        await line.answer()
        await read(2)
    first, second, third, fourth = answers(plain_upstream)[1:]
    assert [ONE_TOKEN in one.body for one in (first, second, third, fourth)] == [
        False,
        True,
        False,
        True,
    ]
    assert contents(second)[:-1] == contents(third)[: len(contents(second)) - 1]
    assert third.cached_tokens >= second.prompt_tokens - 32
    assert warmed(web, "used") == used + 1


async def test_a_question_ends_what_is_being_read(web: Web, plain_upstream: Upstream) -> None:
    world = await shop_with(plain_upstream)
    ended = await grown(web, why="turn", outcome="ended")
    await asyncio.to_thread(wait_for, lambda: len(answers(plain_upstream)) == 1)
    plain_upstream.next(STALLED)
    async with world.customer(web) as line:
        await line.say("Do lamps dream?")
        await line.answer()
        await plain_upstream.until("stalled", 1)
        await line.say("And boots?")
        await plain_upstream.until("aborts", 1)
        await line.answer()
    await ended(1)


async def test_what_is_being_read_for_a_draft_ends_when_its_customer_leaves(
    web: Web, plain_upstream: Upstream
) -> None:
    read, ended = await grown(web, why="site", outcome="read"), await grown(web, why="draft", outcome="ended")
    world = await shop_with(plain_upstream, reads_drafts=True)
    await read(1)
    plain_upstream.next(STALLED)
    async with world.customer(web) as line:
        await line.write("Do lamps dream")
        await plain_upstream.until("stalled", 1)
    await plain_upstream.until("aborts", 1)
    await ended(1)


async def test_a_draft_has_a_known_conversation_read_but_not_twice_in_a_row(
    web: Web, plain_upstream: Upstream
) -> None:
    world = await shop_with(plain_upstream, reads_drafts=True)
    read = await grown(web, why="draft", outcome="read")
    async with world.customer(web) as line:
        for number, text in enumerate(("Do lamps", "Do lamps dream")):
            await line.write(text, number)
            await read(1)
        await line.say("Do lamps dream?")
        await line.answer()
    turn = [one for one in answers(plain_upstream) if ONE_TOKEN not in one.body]
    ahead = [one for one in answers(plain_upstream) if one.serial < turn[0].serial]
    assert len(ahead) == 2  # the site's and the draft's
    assert "Do lamps" not in ahead[1].body


async def test_a_drafts_articles_are_read_too_and_only_its_own_words_are_left(
    web: Web, plain_upstream: Upstream
) -> None:
    world = await shop_with(plain_upstream, reads_drafts=True, articles=True)
    read, used = await grown(web, why="draft", outcome="read"), warmed(web, "used")
    question = "How long is the warranty of a lamp"
    async with world.customer(web) as line:
        await line.write(question)
        await read(1)
        await line.say(f"{question}?")
        await line.answer()
    turn = next(one for one in answers(plain_upstream) if ONE_TOKEN not in one.body)
    ahead = [one for one in answers(plain_upstream) if one.serial < turn.serial][-1]
    assert any("<articles>" in content for content in contents(ahead))
    assert question not in ahead.body
    assert contents(turn)[:-1] == contents(ahead)[:-1]
    assert turn.cached_tokens >= ahead.prompt_tokens - 32
    await asyncio.to_thread(wait_for, lambda: warmed(web, "used") == used + 1)


async def test_what_a_draft_goes_on_from_was_not_wasted(web: Web, plain_upstream: Upstream) -> None:
    world = await shop_with(plain_upstream, reads_drafts=True, articles=True)
    turn, draft = [await grown(web, why=why, outcome="read") for why in ("turn", "draft")]
    async with world.customer(web) as line:
        await line.say("Do lamps dream? " * 200)
        await line.answer()
        await turn(1)
        used, wasted = warmed(web, "used"), warmed(web, "wasted")
        await line.write("How long is the warranty of a lamp")
        await draft(1)
        await line.say("How long is the warranty of a lamp?")
        await line.answer()
        await turn(2)
    assert (warmed(web, "used") - used, warmed(web, "wasted") - wasted) == (1, 0)


async def test_another_draft_has_other_articles_read(web: Web, plain_upstream: Upstream) -> None:
    world = await shop_with(plain_upstream, reads_drafts=True, articles=True)
    read = await grown(web, why="draft", outcome="read")

    def replaced() -> float:
        return counted(web, "chatsvc_drafts_total", end="replaced")

    before = replaced()
    async with world.customer(web) as line:
        await line.write("How long is the warranty of a lamp")
        await read(1)
        number = 1
        while replaced() == before:  # one that comes too soon after another is passed over
            number += 1
            await line.write("Where do you deliver parcels to", number)
        await read(2)
    first, second = answers(plain_upstream)[-2:]
    assert contents(first)[:2] == contents(second)[:2]
    assert contents(first)[2] != contents(second)[2]


async def test_nothing_is_read_ahead_where_the_switch_is_off_or_the_server_keeps_nothing(
    web: Web, plain_upstream: Upstream
) -> None:
    for fields in ({"prepare_prompts": False}, {"dialect": "generic"}):
        world = await shop_with(plain_upstream, **fields)
        async with world.customer(web) as line:
            await line.say("Do lamps dream?")
            await line.answer()
            await line.say("And boots?")
            await line.answer()
    assert [ONE_TOKEN in one.body for one in answers(plain_upstream)] == [False] * 4


async def test_a_person_who_answers_is_not_read_ahead_of(web: Web, plain_upstream: Upstream) -> None:
    world = await shop_with(plain_upstream, reads_drafts=True)
    passed = await grown(web, why="draft", outcome="passed")
    kim = await asyncio.to_thread(world.agent, "Kim")
    async with world.customer(web) as line, world.desk(web, kim) as desk:
        await desk.send({"type": "conversation.take", "id": "t", "conversation": line.conversation})
        await desk.expect("ack", id="t")
        say = {"type": "message.send", "id": "m", "conversation": line.conversation, "text": "Kim here."}
        await desk.send(say)
        await desk.expect("ack", id="m")
        await line.write("Oh hello")
        await passed(1)
    assert len(answers(plain_upstream)) == 1  # the site's own


async def test_ollama_is_asked_to_keep_the_model_loaded(web: Web, plain_upstream: Upstream) -> None:
    read = await grown(web, why="site", outcome="read")
    await shop_with(plain_upstream, dialect="ollama", model="qwen3")
    await read(1)
    asked = answers(plain_upstream)[0]
    assert (asked.path, body_of(asked)) == (
        "/api/generate",
        {"model": "qwen3", "keep_alive": -1, "stream": False},
    )


async def test_a_beginning_that_cannot_be_read_is_nobodys_failure(web: Web, plain_upstream: Upstream) -> None:
    plain_upstream.next(
        Plan(
            faults=(Fault(action=Action.STATUS, place=Place.HEADERS, status=500, code="no"),), match=ONE_TOKEN
        )
    )
    passed = await grown(web, why="site", outcome="passed")
    world = await shop_with(plain_upstream)
    await passed(1)
    async with world.customer(web) as line:
        await line.say("Do lamps dream?")
        await line.answer()
    row = await asyncio.to_thread(ModelEndpoint.objects.get, site=world.site)
    assert row.last_error_kind == ""
