"""What comes in the very moment in which an answer ends: stop, a hand-over, an agent, another tab."""

from __future__ import annotations

import asyncio
from operator import itemgetter

import pytest

from apps.conversations.models import Conversation
from apps.wire.texts import utf16_length
from tests.fakes.upstream.faults import Plan
from tests.fakes.upstream.handle import Upstream
from tests.fakes.upstream.script import Text, words
from tests.support.processes import Web
from tests.support.stored import assert_whole, stored
from tests.support.world import Open, act, made

pytestmark = pytest.mark.usefixtures("orm")

WORDS = words(12)
ROUNDS = 12


async def test_stop_against_the_last_token_keeps_what_was_said_to_be_kept(
    web_pair: tuple[Web, Web], plain_upstream: Upstream
) -> None:
    world = await made(model=plain_upstream)
    plain_upstream.always(Plan(script=Text(WORDS), tokens_per_s=200))
    async with world.tabs(*web_pair) as (line, other):
        for round_ in range(ROUNDS):
            await line.say(f"Question {round_}?")
            started = await line.client.expect("turn.started")
            while utf16_length(line.shown(started["handle"])) < len(WORDS) * round_ // ROUNDS:
                await line.client.expect("delta", handle=started["handle"])
            painted = utf16_length(line.shown(started["handle"]))
            stop = {"conversation": line.conversation, "turn": started["turn"], "painted": painted}
            await (line, other)[round_ % 2].client.send({"type": "turn.stop", **stop})
            ended = await line.client.expect("turn.ended", handle=started["handle"])
            kept = [row for row in await stored(line.conversation) if row[0] == started["place"]]
            while not kept and ended.get("length", 0):
                kept = [row for row in await stored(line.conversation) if row[0] == started["place"]]
            text = kept[0][3] if kept else ""
            assert utf16_length(text) == ended.get("length", 0)
            assert WORDS.startswith(text)
            assert len(text) >= painted
            at = line.client.journal.index(ended)
            late = [f for f in line.client.journal[at:] if f["type"] == "delta"]
            assert [f for f in late if f["handle"] == started["handle"]] == []
        await line.client.send({"type": "ping"})
        await line.client.expect("pong")
    await assert_whole(line.conversation)


@pytest.mark.parametrize("verb", ["conversation.take", "conversation.resolve", "handoff.request"])
async def test_an_answer_that_meets_a_person_is_kept_once_and_leaves_one_owner(
    web_pair: tuple[Web, Web], plain_upstream: Upstream, verb: str
) -> None:
    world = await made(model=plain_upstream)
    plain_upstream.always(Plan(script=Text(WORDS), tokens_per_s=200))
    kim = await asyncio.to_thread(world.agent, "Kim")
    async with world.desk(web_pair[1], kim) as desk:
        for round_ in range(ROUNDS):
            async with world.customer(web_pair[0]) as line:
                await line.say("Hello?")
                started = await line.client.expect("turn.started")
                while len(line.shown(started["handle"])) < len(WORDS) * round_ // ROUNDS:
                    await line.client.expect("delta")
                who = line.client if verb == "handoff.request" else desk
                await who.expect("ack", id=await act(who, verb, line.conversation))
                ended = await line.client.expect("turn.ended")
                if ended.get("length", 0):
                    await line.answer()  # the event may come behind the end
            row = await asyncio.to_thread(Conversation.objects.get, pk=line.conversation)
            wanted = {
                "conversation.take": ("agent", "open"),
                "conversation.resolve": ("assistant", "resolved"),
                "handoff.request": ("queue", "open"),
            }
            assert (row.owner_kind, row.status) == wanted[verb]
            answers = [
                text for _, author, _, text in await stored(line.conversation) if author == "assistant"
            ]
            assert answers == ([WORDS[: ended.get("length", 0)]] if ended.get("length", 0) else [])
            await assert_whole(line.conversation)


async def test_many_tabs_that_send_at_once_see_one_order(
    web_pair: tuple[Web, Web], plain_upstream: Upstream
) -> None:
    world = await made(model=plain_upstream)
    plain_upstream.always(Plan(script=Text("Yes.")))
    async with world.tabs(*web_pair) as (one, two):
        assert one.conversation == two.conversation

        async def speak(tab: Open) -> None:
            for n in range(10):
                # The same id from both: a duplicated tab sends what the first has queued.
                await tab.say(f"Message {n}", f"{n}")

        await asyncio.gather(speak(one), speak(two))
        await one.say("The end.")
        texts = [*(f"Message {n}" for n in range(10)), "The end."]
        orders = []
        for tab in (one, two):
            for text in texts:
                await tab.message(text)
            # What two processes have said may arrive in another order, or again: the number is the order.
            events = {
                event["seq"]: event for event in sorted(tab.client.received("event"), key=itemgetter("seq"))
            }
            assert all(event == events[event["seq"]] for event in tab.client.received("event"))
            said = [event["message"] for event in events.values() if event.get("message")]
            orders.append([message["text"] for message in said if message["author"] == "customer"])
    assert sorted(orders[0]) == sorted(texts)
    assert orders[0] == orders[1]
