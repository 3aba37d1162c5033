"""The agent's line: the inbox live, one owner at a time, and the assistant silent beside a human."""

from __future__ import annotations

import asyncio

import pytest
from django.contrib.sessions.models import Session
from websockets.exceptions import InvalidStatus

from apps.accounts.models import Agent
from apps.conversations.models import Conversation
from apps.telemetry.waterfall import STAGES
from tests.fakes.upstream.faults import FAILING, Plan
from tests.fakes.upstream.handle import Upstream
from tests.fakes.upstream.script import Text, ToolCall, words
from tests.support.client import Client, connected
from tests.support.processes import Web
from tests.support.stored import stored
from tests.support.world import act, made

pytestmark = pytest.mark.usefixtures("orm")

LONG = words(300)


async def test_an_agent_sees_a_conversation_live_tokens_too(web: Web, plain_upstream: Upstream) -> None:
    world = await made(model=plain_upstream)
    plain_upstream.always(Plan(script=Text(LONG), tokens_per_s=300))
    kim = await asyncio.to_thread(world.agent, "Kim")
    async with world.customer(web) as line, world.desk(web, kim) as desk:
        await line.say("Hello?")
        row = (await desk.expect("inbox.row"))["row"]
        await desk.send({"type": "conversation.watch", "conversation": line.conversation})
        watching = await desk.expect("watching")
        live = (watching.get("live") or {}).get("text", "")
        await desk.expect("turn.ended", conversation=line.conversation)
        for delta in desk.received("delta"):
            live = live[: delta["offset"]] + delta["text"]
        waterfall = await desk.expect("waterfall")
    assert (row["conversation"], row["last_line"]) == (line.conversation, "Hello?")
    assert live == LONG
    assert [stage["name"] for stage in waterfall["stages"]] == list(STAGES)
    took = {stage["name"]: stage["ms"] for stage in waterfall["stages"]}
    assert min(took[name] for name in ("receive", "context", "first_token", "first_frame", "last_token")) > 0


async def test_of_two_agents_on_two_processes_one_wins_and_the_other_is_told(
    web_pair: tuple[Web, Web],
) -> None:
    world = await made()
    kim, ana = [await asyncio.to_thread(world.agent, name) for name in ("Kim", "Ana")]
    async with (
        world.customer(web_pair[0]) as line,
        world.desk(web_pair[0], kim) as one,
        world.desk(web_pair[1], ana) as two,
    ):
        await line.client.send({"type": "handoff.request", "id": "h", "conversation": line.conversation})
        await asyncio.gather(*(desk.expect("inbox.row") for desk in (one, two)))
        await asyncio.gather(*(act(desk, "conversation.take", line.conversation) for desk in (one, two)))
        outcomes = await asyncio.gather(*(_outcome(desk) for desk in (one, two)))
        owner = await line.client.expect("event", kind="owner", where=lambda f: f["owner"]["kind"] == "agent")
    assert sorted(outcomes) == ["ack", "already_taken"]
    winner = ("Kim", "Ana")[outcomes.index("ack")]
    assert owner["owner"]["name"] == winner
    refused = (one, two)[outcomes.index("already_taken")].received("refused")[0]
    assert refused["message"] == winner


async def test_a_takeover_cuts_the_answer_and_the_assistant_stays_silent(
    web_pair: tuple[Web, Web], plain_upstream: Upstream
) -> None:
    world = await made(model=plain_upstream)
    plain_upstream.always(Plan(script=Text(LONG), tokens_per_s=40))
    kim = await asyncio.to_thread(world.agent, "Kim")
    async with world.customer(web_pair[0]) as line, world.desk(web_pair[1], kim) as desk:
        await line.say("Hello?")
        started = await line.client.expect("turn.started")
        for _ in range(4):
            await line.client.expect("delta")
        take = await act(desk, "conversation.take", line.conversation)
        await desk.expect("ack", id=take)
        ended = await line.client.expect("turn.ended")
        answer = await line.answer()
        await asyncio.to_thread(plain_upstream.wait, "aborts", 1)
        requests = plain_upstream.counts().requests
        await line.say("Is somebody there?")
        await act(desk, "message.send", line.conversation, text="Kim here. Let me look.")
        said = await line.client.expect(
            "event", kind="message", where=lambda f: f["message"]["author"] == "agent"
        )
    assert (ended["end"], answer["state"]) == ("taken_over", "taken_over")
    assert answer["text"] == line.shown(started["handle"])
    assert said["message"]["name"] == "Kim"
    assert plain_upstream.counts().requests == requests
    assert len(line.client.received("turn.started")) == 1


async def test_handing_back_lets_the_assistant_answer_what_is_open(
    web: Web, plain_upstream: Upstream
) -> None:
    world = await made(model=plain_upstream)
    plain_upstream.always(Plan(script=Text("I am back.")))
    kim = await asyncio.to_thread(world.agent, "Kim")
    async with world.customer(web) as line, world.desk(web, kim) as desk:
        await desk.expect("ack", id=await act(desk, "conversation.take", line.conversation))
        await line.say("Are you a person?")
        await desk.expect("ack", id=await act(desk, "conversation.hand_back", line.conversation))
        answer = await line.answer()
    assert answer["text"] == "I am back."


@pytest.mark.parametrize("shown", [False, True])
async def test_a_question_whose_answer_a_takeover_cut_is_answered_after_handing_back(
    web: Web, plain_upstream: Upstream, shown: bool
) -> None:
    world = await made(model=plain_upstream)
    plain_upstream.always(
        Plan(script=Text(LONG), tokens_per_s=40) if shown else FAILING["stall_before_first_data"]
    )
    kim = await asyncio.to_thread(world.agent, "Kim")
    async with world.customer(web) as line, world.desk(web, kim) as desk:
        await line.say("How long is the warranty?")
        await line.client.expect("delta" if shown else "turn.started")
        await desk.expect("ack", id=await act(desk, "conversation.take", line.conversation))
        await line.client.expect("turn.ended", end="taken_over")
        plain_upstream.always(Plan(script=Text("Two years.")))
        await desk.expect("ack", id=await act(desk, "conversation.hand_back", line.conversation))
        await line.message("Two years.")
    cut = [("assistant", "taken_over")] if shown else []
    rows = [row[1:3] for row in await stored(line.conversation)]
    assert rows == [("customer", "complete"), *cut, ("assistant", "complete")]


async def test_the_models_action_hands_over_and_announces(web: Web, plain_upstream: Upstream) -> None:
    world = await made(model=plain_upstream)
    call = ToolCall(arguments='{"reason": "wants a person", "team": "returns"}', text="One moment.")
    plain_upstream.always(Plan(script=call))
    kim = await asyncio.to_thread(world.agent, "Kim")
    async with world.customer(web) as line, world.desk(web, kim) as desk:
        await line.say("I need a human being")
        row = await desk.expect("inbox.row", where=lambda f: f["row"]["owner"]["kind"] == "queue")
        queue = await line.client.expect("queue")
        answer = await line.answer()
    assert (row["row"]["owner"]["reason"], row["row"]["owner"]["team"]) == ("model", "Returns")
    assert row["row"]["waiting_since"]
    assert (queue["position"], queue["availability"]["online"]) == (1, True)
    assert answer["text"] == "One moment."


async def test_resolving_and_undoing_it(web: Web) -> None:
    world = await made()
    kim = await asyncio.to_thread(world.agent, "Kim")
    async with world.customer(web) as line, world.desk(web, kim) as desk:
        await line.client.send({"type": "handoff.request", "id": "h", "conversation": line.conversation})
        await line.client.expect("ack", id="h")
        await desk.expect("ack", id=await act(desk, "conversation.resolve", line.conversation))
        await desk.expect("ack", id=await act(desk, "conversation.reopen", line.conversation))
        statuses = [await line.client.expect("event", kind="status") for _ in range(2)]
    assert [event["status"] for event in statuses] == ["resolved", "open"]
    stored = await asyncio.to_thread(Conversation.objects.get, pk=line.conversation)
    assert (stored.status, stored.owner_kind) == ("open", "queue")
    assert stored.waiting_since is not None


async def test_who_does_not_own_it_cannot_write_or_hand_back(web: Web) -> None:
    world = await made()
    kim, ana = [await asyncio.to_thread(world.agent, name) for name in ("Kim", "Ana")]
    async with world.customer(web) as line, world.desk(web, kim) as one, world.desk(web, ana) as two:
        await line.say("Hello")
        await one.expect("ack", id=await act(one, "conversation.take", line.conversation))
        for verb, fields in (
            ("message.send", {"text": "Me too"}),
            ("conversation.hand_back", {}),
            ("conversation.resolve", {}),
        ):
            refused = await two.expect("refused", id=await act(two, verb, line.conversation, **fields))
            assert (refused["code"], refused["message"]) == ("not_owner", "Kim owns this conversation")


async def test_another_workspaces_conversation_does_not_exist(web: Web) -> None:
    world, other = await made(), await made()
    spy = await asyncio.to_thread(other.agent, "Spy")
    async with world.customer(web) as line, other.desk(web, spy) as desk:
        await line.say("A secret")
        await desk.send({"type": "conversation.watch", "conversation": line.conversation})
        assert (await desk.expect("refused"))["code"] == "not_found"
        take = await act(desk, "conversation.take", line.conversation)
        assert (await desk.expect("refused", id=take))["code"] == "not_found"
        await line.say("Another secret")
        await desk.send({"type": "ping"})
        await desk.expect("pong")
    assert "secret" not in str(desk.journal)


async def test_going_away_and_leaving_change_who_is_reachable(web: Web) -> None:
    world = await made()
    kim = await asyncio.to_thread(world.agent, "Kim")
    async with world.desk(web, kim) as desk:
        async with world.customer(web) as line:
            assert line.welcome["availability"]["online"] is True
        await desk.send({"type": "presence.set", "online": False})
        await desk.expect("presence", where=lambda f: not f["agents"][0]["online"])
        async with world.customer(web) as line:
            assert line.welcome["availability"]["online"] is False


async def test_who_waits_hears_when_the_queue_moves_and_when_somebody_comes(
    web_pair: tuple[Web, Web],
) -> None:
    world = await made()
    kim = await asyncio.to_thread(world.agent, "Kim")
    async with world.customer(web_pair[0]) as first, world.customer(web_pair[1]) as second:
        for line in (first, second):
            await act(line.client, "handoff.request", line.conversation)
            await line.client.expect("queue", where=lambda f: not f["availability"]["online"])
        await second.client.expect("queue", position=2)
        async with world.desk(web_pair[0], kim) as desk:
            await second.client.expect("queue", position=2, where=lambda f: f["availability"]["online"])
            await act(desk, "conversation.take", first.conversation)
            await second.client.expect("queue", position=1, where=lambda f: f["availability"]["online"])
        await second.client.expect("queue", position=1, where=lambda f: not f["availability"]["online"])


async def test_a_customers_typing_reaches_the_watching_agent_and_back(web: Web) -> None:
    world = await made()
    kim = await asyncio.to_thread(world.agent, "Kim")
    async with world.customer(web) as line, world.desk(web, kim) as desk:
        await line.say("Hello")
        await desk.send({"type": "conversation.watch", "conversation": line.conversation})
        await desk.expect("watching")
        await line.client.send({"type": "typing.set", "conversation": line.conversation, "on": True})
        assert (await desk.expect("typing"))["author"] == "customer"
        await desk.send({"type": "typing.set", "conversation": line.conversation, "on": True})
        assert (await line.client.expect("typing"))["name"] == "Kim"


async def test_a_foreign_page_is_refused_before_it_is_accepted(web: Web) -> None:
    world = await made()
    kim = await asyncio.to_thread(world.agent, "Kim")
    with pytest.raises(InvalidStatus) as refused:
        async with connected(f"{web.ws}/ws/agent", origin="https://evil.example", cookie=kim):
            pass
    assert refused.value.response.status_code == 403


@pytest.mark.parametrize("state", ["no cookie", "a forged cookie", "a deactivated agent"])
async def test_only_an_active_agent_gets_in(web: Web, state: str) -> None:
    world = await made()
    cookie = await asyncio.to_thread(world.agent, "Kim")
    if state == "a deactivated agent":
        await asyncio.to_thread(lambda: Agent.objects.filter(workspace=world.workspace).update(active=False))
    given = {"no cookie": None, "a forged cookie": "sessionid=forged"}.get(state, cookie)
    async with connected(f"{web.ws}/ws/agent", origin=web.origin, cookie=given) as desk:
        await desk.send({"type": "hello"})
        assert (await desk.closed())[0] == 4401
        assert desk.received("refused")[0]["code"] == "bad_token"


@pytest.mark.parametrize("end", ["logs out", "is deactivated"])
async def test_an_agent_who_is_one_no_longer_changes_nothing_more(web: Web, end: str) -> None:
    world = await made()
    cookie = await asyncio.to_thread(world.agent, "Kim")

    def gone() -> None:
        if end == "logs out":
            Session.objects.filter(pk=cookie.partition("=")[2]).delete()
        else:
            Agent.objects.filter(workspace=world.workspace).update(active=False)

    async with world.customer(web) as line, world.desk(web, cookie) as desk:
        await line.say("Hello")
        await asyncio.to_thread(gone)
        taken = await act(desk, "conversation.take", line.conversation)
        assert (await desk.closed())[0] == 4401
        [refused] = desk.received("refused")
        row = await asyncio.to_thread(Conversation.objects.get, pk=line.conversation)
    assert (refused["code"], refused["id"]) == ("bad_token", taken)
    assert row.owner_kind == "assistant"


async def _outcome(desk: Client) -> str:
    """`ack`, or the code of the refusal."""
    frame = await desk.expect_one_of("ack", "refused")
    return str(frame.get("code", "ack"))
