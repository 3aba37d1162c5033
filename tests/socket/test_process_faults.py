"""Web processes that are killed, frozen or kept waiting by the database in the middle of a turn."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from apps.conversations.models import Conversation, Message
from tests.fakes.upstream.faults import Action, Fault, Place, Plan
from tests.fakes.upstream.handle import Upstream
from tests.fakes.upstream.script import Text, words
from tests.support.breaking import locked_database
from tests.support.client import Frame
from tests.support.processes import Deployment, Web
from tests.support.stored import assert_whole, stored
from tests.support.world import Open, act, made

pytestmark = pytest.mark.usefixtures("orm")

LONG = words(250)


@asynccontextmanager
async def amid_an_answer(
    webs: tuple[Web, Web], upstream: Upstream, tokens_per_s: float, then: str
) -> AsyncIterator[tuple[Open, Open, Frame]]:
    """Two tabs, one on each process, while the first one's answers `LONG`; that turn's start. Next comes `then`."""
    world = await made(model=upstream)
    upstream.next(Plan(script=Text(LONG), tokens_per_s=tokens_per_s), Plan(script=Text(then)))
    async with world.tabs(*webs) as (line, other):
        await line.say("First?")
        started = await line.client.expect("turn.started")
        await line.client.expect("delta")
        yield line, other, started


async def test_a_process_killed_before_the_first_word_is_answered_for_by_another(
    web_pair: tuple[Web, Web], plain_upstream: Upstream
) -> None:
    world = await made(model=plain_upstream)
    silent = Fault(action=Action.STALL, place=Place.DATA)
    plain_upstream.next(Plan(faults=(silent,)), Plan(script=Text("Here I am.")))
    token = world.visitor()
    async with world.customer(web_pair[1], token=token) as other:
        async with world.customer(web_pair[0], token=token) as line:
            await line.say("Hello?")
            await plain_upstream.until("stalled", 1)
            await asyncio.to_thread(web_pair[0].kill)
        await other.message("Here I am.")
        await other.client.expect("turn.ended", end="finished")
    assert [row[1:] for row in await stored(line.conversation)] == [
        ("customer", "complete", "Hello?"),
        ("assistant", "complete", "Here I am."),
    ]
    await assert_whole(line.conversation)


async def test_a_process_killed_with_a_second_question_waiting_leaves_neither_unanswered(
    web_pair: tuple[Web, Web], plain_upstream: Upstream
) -> None:
    async with amid_an_answer(web_pair, plain_upstream, 40, "To both.") as (line, other, _):
        await line.say("Second?")
        await asyncio.to_thread(web_pair[0].kill)
        await other.message("To both.")
        await other.client.expect("turn.ended", end="finished")
    rows = await stored(line.conversation)
    assert [row[1] for row in rows].count("customer") == 2
    assert [row[2] for row in rows].count("interrupted") == 1
    await assert_whole(line.conversation)


async def test_a_process_ended_at_its_grace_leaves_its_turn_to_another(
    web_pair: tuple[Web, Web], plain_upstream: Upstream
) -> None:
    async with amid_an_answer(web_pair, plain_upstream, 10, "And the rest.") as (line, other, _):
        assert await asyncio.to_thread(web_pair[0].stop) == 0
        assert (await line.client.closed())[0] == 1012
        await other.message("And the rest.")
        await other.client.expect("turn.ended", end="finished")
    [question, kept, rest] = await stored(line.conversation)
    assert (question[2], kept[2], rest[2]) == ("complete", "interrupted", "complete")
    assert LONG.startswith(kept[3])
    await assert_whole(line.conversation)


async def test_a_process_that_slept_finds_its_turn_in_other_hands_and_says_nothing_more(
    web_pair: tuple[Web, Web], plain_upstream: Upstream
) -> None:
    async with amid_an_answer(web_pair, plain_upstream, 20, "While you slept.") as (line, other, started):
        web_pair[0].signal(signal.SIGSTOP)
        try:
            await other.message("While you slept.")
        finally:
            web_pair[0].signal(signal.SIGCONT)
        await line.client.expect("turn.ended", handle=started["handle"], end="superseded")
        await plain_upstream.until("requests_open", 0, exactly=True)
        await line.message("While you slept.")
        await line.client.send({"type": "ping"})
        await line.client.expect("pong")
    rows = await stored(line.conversation)
    assert [row[2] for row in rows] == ["complete", "interrupted", "complete"]
    assert LONG.startswith(rows[1][3])
    kinds = [f for f in line.client.journal if f["type"] == "delta" and f["handle"] == started["handle"]]
    ended = next(i for i, f in enumerate(line.client.journal) if f["type"] == "turn.ended")
    assert all(line.client.journal.index(f) < ended for f in kinds)
    await assert_whole(line.conversation)


async def test_a_database_locked_in_mid_stream_delays_acknowledgements_and_loses_nothing(
    web_pair: tuple[Web, Web], deployment: Deployment, plain_upstream: Upstream
) -> None:
    async with amid_an_answer(web_pair, plain_upstream, 200, "And to that.") as (line, other, started):
        with locked_database(deployment.database_url):
            await line.client.send(
                {"type": "message.send", "id": "second", "conversation": line.conversation, "text": "Second?"}
            )
            while line.shown(started["handle"]) != LONG:
                await line.client.expect("delta")
            assert not [f for f in line.client.received("ack") if f["id"] == "second"]
        await line.client.expect("ack", id="second")
        for tab in (line, other):
            await tab.message(LONG)
            await tab.message("And to that.")
    assert [row[1:3] for row in await stored(line.conversation)] == [
        ("customer", "complete"),
        ("assistant", "complete"),
        ("customer", "complete"),
        ("assistant", "complete"),
    ]
    await assert_whole(line.conversation)


async def test_take_hand_back_and_questions_at_once_leave_one_order_for_all(
    web_pair: tuple[Web, Web], plain_upstream: Upstream
) -> None:
    world = await made(model=plain_upstream)
    plain_upstream.always(Plan(script=Text("An answer of a few words."), tokens_per_s=100))
    kim = await asyncio.to_thread(world.agent, "Kim")
    async with (
        world.tabs(*web_pair) as (one, two),
        world.desk(web_pair[1], kim) as desk,
    ):
        conversation = one.conversation

        async def ask(tab: Open, count: int) -> None:
            for n in range(count):
                await tab.say(f"Question {n}?")

        async def seesaw(count: int) -> None:
            for _ in range(count):
                for verb in ("conversation.take", "conversation.hand_back"):
                    await desk.expect("ack", id=await act(desk, verb, conversation))

        await asyncio.gather(ask(one, 6), ask(two, 6), seesaw(6))
        await one.say("The last one.")
        for tab in (one, two):
            await tab.message("The last one.")
        # Whoever spoke last, the last question is answered, and nothing is left running.
        await asyncio.to_thread(web_pair[0].wait_until, lambda: settled(conversation))
    rows = await stored(conversation)
    assert rows[-1][1] == "assistant"
    assert [row[1] for row in rows].count("customer") == 13
    await assert_whole(conversation)
    first, second = ({f["seq"]: f for f in tab.client.received("event")} for tab in (one, two))
    shared = first.keys() & second.keys()
    assert [first[seq] for seq in shared] == [second[seq] for seq in shared]
    assert "The last one." in [(first[seq].get("message") or {}).get("text") for seq in shared]


def settled(conversation: str) -> bool:
    row = Conversation.objects.get(pk=conversation)
    last = Message.objects.filter(conversation=row).order_by("-place").first()
    return row.turn == "" and last is not None and last.author == "assistant"
