"""What happens to a turn when a process, a model, Redis or a worker fails beside it."""

from __future__ import annotations

import asyncio

import pytest

from apps.engine.languages import Language
from apps.rulebook.models import Rule
from apps.turns.sentences import NO_MODEL
from tests.fakes.shop.handle import Shop
from tests.fakes.upstream.faults import Action, Fault, Place, Plan, refusal
from tests.fakes.upstream.handle import Upstream
from tests.fakes.upstream.script import Text, words
from tests.support.client import DEADLINE_S, Frame
from tests.support.model_line import answers
from tests.support.processes import Deployment, Web, Worker
from tests.support.stored import assert_whole, stored
from tests.support.world import Open, World, act, made

pytestmark = pytest.mark.usefixtures("orm")

LONG = words(250)


async def test_a_killed_process_loses_nothing_and_glues_nothing(web: Web, plain_upstream: Upstream) -> None:
    world = await made(model=plain_upstream)
    plain_upstream.next(
        Plan(script=Text(LONG), tokens_per_s=40), Plan(script=Text("Once more, from the start."))
    )
    token = world.visitor()
    async with world.customer(web, token=token) as line:
        await line.say("Tell me everything")
        started = await line.client.expect("turn.started")
        for _ in range(6):
            await line.client.expect("delta")
        painted = line.shown(started["handle"])
        web.kill()
    web.revive()
    async with world.customer(web, token=token, conversation=line.conversation) as again:
        answer = await again.message("Once more, from the start.")
    [question, kept, retried] = await stored(line.conversation)
    assert question[1:] == ("customer", "complete", "Tell me everything")
    assert kept[1:3] == ("assistant", "interrupted")
    assert kept[3].startswith(painted)
    assert LONG.startswith(kept[3])
    assert retried[1:] == ("assistant", "complete", "Once more, from the start.")
    assert answer["part"] == 2
    await assert_whole(line.conversation)


async def test_a_restart_lets_a_short_answer_finish(web: Web, plain_upstream: Upstream) -> None:
    world = await made(model=plain_upstream)
    text = words(60)
    plain_upstream.always(Plan(script=Text(text), tokens_per_s=100))
    async with world.customer(web) as line:
        await line.say("Hello?")
        await line.client.expect("delta")
        stopping = asyncio.create_task(asyncio.to_thread(web.stop))
        code, _ = await line.client.closed()
        assert await stopping == 0
    assert code == 1012
    assert (await stored(line.conversation))[1][2:] == ("complete", text)
    await assert_whole(line.conversation)


async def test_a_model_that_breaks_off_again_and_again_leaves_an_honest_sentence(
    web: Web, plain_upstream: Upstream
) -> None:
    world = await made(model=plain_upstream)
    reset = Fault(action=Action.RESET, place=Place.STREAM, after_tokens=5)
    plain_upstream.next(*[Plan(script=Text(LONG), faults=(reset,))] * 3)
    async with world.customer(web) as line:
        await line.say("Hello?")
        for _ in range(3):
            await line.client.expect("turn.ended", end="interrupted")
        await line.message(NO_MODEL[Language.ENGLISH])
    states = [row[2] for row in await stored(line.conversation)]
    assert states == ["complete", *["interrupted"] * 3, "complete"]
    await assert_whole(line.conversation)


async def test_a_model_that_breaks_off_leaves_its_part_and_a_new_part_answers(
    web: Web, plain_upstream: Upstream
) -> None:
    world = await made(model=plain_upstream)
    reset = Fault(action=Action.RESET, place=Place.STREAM, after_tokens=20)
    # Slowly: what breaks off before its question is stored is asked anew, and nobody sees it.
    broken = Plan(script=Text(LONG), faults=(reset,), tokens_per_s=20)
    plain_upstream.next(broken, Plan(script=Text("The whole answer.")))
    async with world.customer(web) as line:
        await line.say("Hello?")
        await line.client.expect("turn.ended", end="interrupted")
        await line.client.expect("turn.ended", end="finished")
    rows = await stored(line.conversation)
    assert [row[2] for row in rows] == ["complete", "interrupted", "complete"]
    assert (LONG.startswith(rows[1][3]), rows[2][3]) == (True, "The whole answer.")
    await assert_whole(line.conversation)


async def test_with_every_model_down_the_builtin_answers(web: Web, plain_upstream: Upstream) -> None:
    world = await made(model=plain_upstream)
    plain_upstream.always(refusal(500, "server_error"))
    async with world.customer(web) as line:
        await line.say("What is the meaning of kayaks?")
        answer = await line.answer()
    assert answer["text"]
    await assert_whole(line.conversation)


async def test_an_upstream_that_is_dead_at_the_start_does_not_stop_the_service(
    deployment: Deployment, plain_upstream: Upstream
) -> None:
    world = await made(model=plain_upstream)
    await asyncio.to_thread(plain_upstream.refuse)
    late = Web(deployment, "late-web")
    try:
        async with world.customer(late) as line:
            await line.say("Do you sell lamps?")
            assert (await line.answer())["text"]
    finally:
        late.kill()


async def test_a_reached_spend_cap_lets_the_builtin_answer(web: Web, plain_upstream: Upstream) -> None:
    world = await made(model=plain_upstream, daily_spend_cap="0.00")
    async with world.customer(web) as line:
        await line.say("Do you sell lamps?")
        assert (await line.answer())["text"]
    assert plain_upstream.counts().tokens_sent == 0


async def test_with_the_assistant_off_a_person_is_owed(web: Web) -> None:
    world = await made(assistant_enabled=False)
    async with world.customer(web) as line:
        await line.say("Hello?")
        owner = await line.client.expect("event", kind="owner")
    assert (owner["owner"]["kind"], owner["owner"]["reason"]) == ("queue", "assistant_off")


def gold_refunds(world: World, name: str) -> None:
    Rule.objects.create(
        site=world.site,
        name=name,
        condition='tier == "gold" && text_lower.contains("refund")',
        handoff=True,
        team=world.teams["Returns"],
    )


async def until_a_rule_acts(line: Open) -> Frame:
    """Asks again and again until the question goes to a person; the new owner."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            await line.say("I want a refund for my tent")
            while (news := await line.client.expect_one_of("event", "turn.ended"))["type"] == "event":
                if news["kind"] == "owner":
                    owner: Frame = news["owner"]
                    return owner


async def test_a_rule_acts_in_every_process_without_any_announcement(
    web_pair: tuple[Web, Web], shop: Shop
) -> None:
    world = await made(shop=shop)
    async with (
        world.customer(web_pair[0], identity=world.identity("mia")) as one,
        world.customer(web_pair[1], identity=world.identity("mia")) as two,
    ):
        await two.client.send({"type": "conversation.new"})
        two.welcome = await two.client.expect("welcome")
        # Saved from this process, which announces nothing: only the poll of the versions can tell.
        await asyncio.to_thread(gold_refunds, world, "gold refunds")
        for line in (one, two):
            owner = await until_a_rule_acts(line)
            assert (owner["kind"], owner["reason"]) == ("queue", "rule")


async def test_a_rule_about_gold_customers_leaves_others_alone(web: Web, shop: Shop) -> None:
    world = await made(shop=shop)
    await asyncio.to_thread(gold_refunds, world, "gold refunds")
    async with world.customer(web, identity=world.identity("leo")) as line:
        await line.say("I want a refund for my tent")
        await line.client.expect("turn.ended")
    assert all(f["kind"] != "owner" for f in line.client.received("event"))


async def test_a_worker_warms_the_facts_before_the_question(web: Web, worker: Worker, shop: Shop) -> None:
    world = await made(shop=shop)
    kim = await asyncio.to_thread(world.agent, "Kim")
    async with world.customer(web, identity=world.identity("mia")) as line:
        await shop.until("requests", 2)
        await asyncio.to_thread(
            worker.wait_until, lambda: f"preloaded conversation {line.conversation}" in worker.output()
        )
        asked = shop.counts().requests
        async with world.desk(web, kim) as desk:
            await desk.send({"type": "conversation.watch", "conversation": line.conversation})
            panel = (await desk.expect("watching"))["panel"]
            await line.say("Where is my order 1042?")
            trace = await desk.expect("waterfall")
    assert trace["marks"]["profile"] == "warm"
    assert panel["facts_state"] == "warm"
    assert panel["attributes"]["tier"] == "gold"
    assert shop.counts().requests == asked


async def test_with_the_worker_killed_the_same_question_is_answered_cold(
    web: Web, worker: Worker, shop: Shop
) -> None:
    worker.kill()
    world = await made(shop=shop)
    async with world.customer(web, identity=world.identity("mia")) as line:
        await line.say("Where is my order 1042?")
        assert "1042" in (await line.answer())["text"]
        await line.client.expect("turn.ended")
    await asyncio.to_thread(web.wait_until, lambda: _trace(web, line.conversation) != "")
    assert "profile=cold" in _trace(web, line.conversation)


def _trace(web: Web, conversation: str) -> str:
    """The log's one line about the conversation's turn."""
    return next((line for line in web.output().splitlines() if f"of {conversation}: finished" in line), "")


async def test_without_redis_acknowledgements_and_the_askers_stream_go_on(
    deployment: Deployment, plain_upstream: Upstream
) -> None:
    world = await made(model=plain_upstream)
    plain_upstream.always(Plan(script=Text(LONG), tokens_per_s=300))
    lone = Web(deployment, "lone-web", "/healthz", REDIS_URL="unix:///nonexistent/redis.sock")
    try:
        async with world.customer(lone) as line:
            await line.say("Hello?")
            started = await line.client.expect("turn.started")
            answer = await line.answer()
        assert answer["text"] == line.shown(started["handle"]) == LONG
        await assert_whole(line.conversation)
    finally:
        lone.kill()


async def test_a_handed_over_conversation_keeps_its_place_in_the_queue(web: Web) -> None:
    world = await made()
    async with world.customer(web) as first, world.customer(web) as second:
        for line in (first, second):
            await act(line.client, "handoff.request", line.conversation)
            await line.client.expect("ack")
        queue = await second.client.expect("queue")
    assert queue["position"] == 2


async def test_over_a_model_socket_a_turn_sends_only_what_is_new_to_what_was_stored(
    web: Web, plain_upstream: Upstream
) -> None:
    socket = {"provider": "responses_socket", "dialect": "openai"}
    world = await made(model=plain_upstream, endpoint=socket)
    # White space at the ends, which a stored message might lose.
    said = "  Yes.\n\n1. 第一\n2. \U0001f600 second \n"
    plain_upstream.always(Plan(script=Text(said)))
    async with world.customer(web) as line:
        for question in ("one ", " two\n", "three"):
            await line.say(question)
            assert (await line.answer())["text"] == said
    seen = answers(plain_upstream)
    assert [request.method for request in seen] == ["WS"] * 3
    assert [bool(request.previous_response_id) for request in seen] == [False, True, True]
    assert [request.input_items for request in seen[1:]] == [1, 1]
