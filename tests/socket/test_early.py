"""A model is asked while its question is still being stored: told only once it is, and of no use where it is not."""

from __future__ import annotations

import asyncio
import signal
from typing import Any

import pytest

from tests.fakes.upstream.faults import Plan
from tests.fakes.upstream.handle import Upstream
from tests.fakes.upstream.script import Text
from tests.support.breaking import locked_database
from tests.support.metrics import counted, metrics
from tests.support.model_line import answers
from tests.support.processes import Deployment, Web, wait_for
from tests.support.world import Open, World, made

pytestmark = pytest.mark.usefixtures("orm")

QUESTION = "Do lamps dream?"
SAID = "Only in winter."


async def shop_with(upstream: Upstream, **rule: Any) -> World:
    """A site whose model is this one."""
    return await made(model=upstream, rule=rule or None, answer_cache="off")


def ended(web: Web, end: str) -> float:
    return counted(web, "chatsvc_asked_early_total", end=end)


async def talked(web: Web, line: Open) -> None:
    """A first exchange, after which the conversation is in memory and nothing of its turn runs any more."""
    await line.say("Hello")
    await line.answer()
    await line.client.expect("turn.ended")
    await asyncio.to_thread(wait_for, lambda: metrics(web)["chatsvc_turns_live"] == 0)


async def ask(line: Open) -> None:
    await line.client.send(
        {"type": "message.send", "id": "q", "conversation": line.conversation, "text": QUESTION}
    )


async def answered_once_more(upstream: Upstream, before: int) -> None:
    """Beyond so many answers the model has ended one."""
    await asyncio.to_thread(
        wait_for, lambda: [seen.ended for seen in answers(upstream)][before:] == ["finished"]
    )


async def test_the_model_answers_while_its_question_is_being_stored_and_is_heard_afterwards(
    web: Web, plain_upstream: Upstream, deployment: Deployment
) -> None:
    world = await shop_with(plain_upstream)
    plain_upstream.next(Plan(script=Text("Hi.")), Plan(script=Text(SAID)))
    async with world.customer(web) as line:
        await talked(web, line)
        used = ended(web, "used")
        with locked_database(deployment.database_url):
            heard = len(line.client.journal)
            await ask(line)
            await answered_once_more(plain_upstream, 1)
        await line.client.expect("ack", id="q")
        answer = await line.answer()
        told = line.client.journal[heard:]
    assert answer["text"] == SAID
    assert len(answers(plain_upstream)) == 2
    assert ended(web, "used") == used + 1
    # Nothing of the answer before the question itself.
    question = next(n for n, frame in enumerate(told) if frame.get("message", {}).get("client_id") == "q")
    assert {frame["type"] for frame in told[:question]} <= {"ack"}


async def test_a_question_that_cannot_be_stored_frees_the_model_and_shows_nothing(
    web: Web, plain_upstream: Upstream, deployment: Deployment
) -> None:
    world, unneeded = await shop_with(plain_upstream), ended(web, "unneeded")
    plain_upstream.next(Plan(script=Text("Hi.")), Plan(script=Text("Never shown. " * 2_000), tokens_per_s=20))
    plain_upstream.always(Plan(script=Text(SAID)))
    async with world.customer(web) as line:
        await talked(web, line)
        with locked_database(deployment.database_url):
            shown = len(line.client.received("delta"))
            await ask(line)
            await line.client.expect("refused", id="q", deadline_s=30.0)
            await plain_upstream.until("aborts", 1)
            assert len(line.client.received("delta")) == shown
        await line.say(QUESTION)
        await line.message(SAID)
    assert ended(web, "unneeded") == unneeded + 1


async def test_a_process_that_ends_while_a_question_is_being_stored_answers_it(
    web_pair: tuple[Web, Web], plain_upstream: Upstream, deployment: Deployment
) -> None:
    web, other = web_pair
    world = await shop_with(plain_upstream)
    plain_upstream.next(Plan(script=Text("Hi.")), Plan(script=Text(SAID * 10), tokens_per_s=40))
    token = world.visitor()
    async with world.customer(web, token=token) as line:
        await talked(web, line)
        begun = len(answers(plain_upstream))
        with locked_database(deployment.database_url):
            await ask(line)
            await asyncio.to_thread(wait_for, lambda: len(answers(plain_upstream)) > begun)
            web.signal(signal.SIGTERM)
            await line.client.closed()
    async with world.customer(other, token=token) as line:
        answer = await line.message(SAID * 10)
    assert (answer.get("state", "complete"), len(answers(plain_upstream))) == ("complete", begun + 1)
    assert await asyncio.to_thread(web.process.wait, 30) == 0


async def test_a_question_that_is_sent_again_after_its_answer_asks_no_model(
    web: Web, plain_upstream: Upstream
) -> None:
    world = await shop_with(plain_upstream)
    async with world.customer(web) as line:
        await talked(web, line)
        await ask(line)
        await line.answer()
        await line.client.expect("turn.ended")
        await asyncio.to_thread(wait_for, lambda: metrics(web)["chatsvc_turns_live"] == 0)
        begun, unneeded = len(answers(plain_upstream)), ended(web, "unneeded")
        for _ in range(2):
            await ask(line)
            await line.client.expect("ack", id="q")
    assert (len(answers(plain_upstream)), ended(web, "unneeded")) == (begun, unneeded)


async def test_no_model_is_asked_early_where_a_rule_answers(
    web: Web, plain_upstream: Upstream, deployment: Deployment
) -> None:
    world = await shop_with(plain_upstream, reply_en="Ask us on Monday.")
    async with world.customer(web) as line:
        await talked(web, line)
        passed = ended(web, "passed")
        with locked_database(deployment.database_url):
            await ask(line)
            await asyncio.to_thread(wait_for, lambda: ended(web, "passed") == passed + 1)
        assert (await line.answer())["text"] == "Ask us on Monday."
    assert answers(plain_upstream) == []


async def test_no_model_is_asked_early_where_a_person_answers(
    web: Web, plain_upstream: Upstream, deployment: Deployment
) -> None:
    world = await shop_with(plain_upstream)
    plain_upstream.always(Plan(script=Text(SAID)))
    async with (
        world.customer(web) as persons,
        world.customer(web) as models,
        world.desk(web, await asyncio.to_thread(world.agent, "Lee")) as desk,
    ):
        await talked(web, persons)
        await talked(web, models)
        await desk.send({"type": "conversation.take", "id": "t", "conversation": persons.conversation})
        await desk.expect("ack", id="t")
        with locked_database(deployment.database_url):
            await ask(persons)
            await ask(models)
            await answered_once_more(plain_upstream, 2)
        for line in (persons, models):
            await line.client.expect("ack", id="q")
        await models.answer()
    assert len(answers(plain_upstream)) == 3
