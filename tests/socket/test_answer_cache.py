"""Answers given again: to whom, by which process, and never when anything they were made from has changed."""

from __future__ import annotations

import asyncio

import pytest
from redis import Redis

from apps.accounts.models import Counter, bump
from apps.knowledge.embeddings import process_embedder
from apps.knowledge.ingestion import ingest
from apps.knowledge.models import Article
from bench.answers.lists import near_misses
from tests.fakes.shop.handle import Shop
from tests.fakes.upstream.faults import Plan, refusal
from tests.fakes.upstream.handle import Upstream
from tests.fakes.upstream.script import Text
from tests.support.client import DEADLINE_S, Frame
from tests.support.metrics import metrics
from tests.support.processes import Deployment, Web, wait_for
from tests.support.world import World, act, made

pytestmark = pytest.mark.usefixtures("orm")

QUESTION = "How long do I have to return an item?"
REPHRASED = "Within how many days can I return something?"
ANSWER = "You have 60 days."


async def ask(world: World, web: Web, text: str = QUESTION, identity: str = "") -> Frame:
    """A new visitor's (or a known customer's) first question; the stored answer, once its turn has ended."""
    async with world.customer(web, identity=identity) as line:
        await line.say(text)
        answer = await line.answer()
        await line.client.expect("turn.ended", end="finished")
    return answer


async def answered_anew(world: World, web: Web) -> None:
    """Asks until the answer is another than it was: an edit is noticed at the next poll of the versions."""
    answers = [ANSWER]
    while answers[-1] == ANSWER:
        assert len(answers) < 200, "the edit was never noticed"
        answers.append((await ask(world, web))["text"])
    assert answers[-1] == "You have ninety days."


async def shop_with(upstream: Upstream, shop: Shop | None = None, mode: str = "full") -> World:
    """A site with the demo's articles."""
    upstream.always(Plan(script=Text(ANSWER)))
    return await made(model=upstream, articles=True, shop=shop, answer_cache=mode)


async def shared(deployment: Deployment, world: World, answers: int = 1) -> None:
    """Waits until so many answers of the site are where the other processes find them."""
    with Redis.from_url(
        deployment.redis_url, socket_connect_timeout=DEADLINE_S, socket_timeout=DEADLINE_S
    ) as redis:
        pattern = f"answer:{world.site.pk}:*"
        await asyncio.to_thread(wait_for, lambda: len(redis.keys(pattern)) >= answers)


async def test_the_same_question_is_answered_without_the_model_by_every_process(
    web_pair: tuple[Web, Web], deployment: Deployment, plain_upstream: Upstream
) -> None:
    world = await shop_with(plain_upstream)
    first = await ask(world, web_pair[0])
    await shared(deployment, world)
    plain_upstream.always(Plan(script=Text("Something else.")))
    said = plain_upstream.counts().tokens_sent
    for web in web_pair:
        again = await ask(world, web, "hi, how long do I have to return an item? Thanks!")
        assert (again["text"], again["sources"]) == (ANSWER, first["sources"])
    assert first["sources"]
    assert plain_upstream.counts().tokens_sent == said


async def test_the_same_question_in_other_words_is_answered_without_the_model_by_every_process(
    web_pair: tuple[Web, Web], deployment: Deployment, plain_upstream: Upstream
) -> None:
    world = await shop_with(plain_upstream)
    await ask(world, web_pair[0])
    await shared(deployment, world)
    held = metrics(web_pair[1])["chatsvc_answer_cache_bytes"]
    plain_upstream.always(Plan(script=Text("Something else.")))
    # A question of its own that finds nothing makes the other process fetch what it lacks.
    assert (await ask(world, web_pair[1], "What are your opening hours?"))["text"] == "Something else."
    await asyncio.to_thread(
        wait_for, lambda: metrics(web_pair[1])["chatsvc_answer_cache_bytes"] >= held + 2 * 2000
    )
    said = plain_upstream.counts().tokens_sent
    for web in web_pair:
        assert (await ask(world, web, REPHRASED))["text"] == ANSWER
    assert plain_upstream.counts().tokens_sent == said


@pytest.mark.parametrize("edited", ["settings_version", "rules_version", "knowledge_version"])
async def test_an_edit_lets_the_model_answer_anew(
    web: Web, plain_upstream: Upstream, edited: Counter
) -> None:
    world = await shop_with(plain_upstream)
    await ask(world, web)
    assert (await ask(world, web))["text"] == ANSWER
    plain_upstream.always(Plan(script=Text("You have ninety days.")))
    await asyncio.to_thread(bump, world.site, edited)
    await answered_anew(world, web)
    assert (await ask(world, web, REPHRASED))["text"] == "You have ninety days."


def edit_returns(world: World) -> None:
    """What an editor's save and the worker do; from this process, which announces nothing."""
    article = Article.objects.get(site=world.site, title="Returns and refunds")
    article.body = article.body.replace("60 days", "90 days")
    article.save()
    assert ingest(article.pk, process_embedder())


async def test_an_edited_article_is_answered_anew_by_every_process_without_any_announcement(
    web_pair: tuple[Web, Web], plain_upstream: Upstream
) -> None:
    world = await shop_with(plain_upstream)
    for web in web_pair:
        await ask(world, web)
    plain_upstream.always(Plan(script=Text("You have ninety days.")))
    assert [(await ask(world, web))["text"] for web in web_pair] == [ANSWER] * 2
    await asyncio.to_thread(edit_returns, world)
    for web in web_pair:
        await answered_anew(world, web)


async def test_an_answer_that_was_stopped_is_never_given_again(web: Web, plain_upstream: Upstream) -> None:
    world = await shop_with(plain_upstream)
    plain_upstream.always(Plan(script=Text(ANSWER * 40), tokens_per_s=50))
    async with world.customer(web) as line:
        await line.say(QUESTION)
        turn = (await line.client.expect("turn.started"))["turn"]
        await line.client.expect("delta")
        stop = {"type": "turn.stop", "conversation": line.conversation, "turn": turn, "painted": 9}
        await line.client.send(stop)
        await line.client.expect("turn.ended", end="stopped")
    plain_upstream.always(Plan(script=Text("Anew.")))
    assert (await ask(world, web))["text"] == "Anew."


async def test_an_answer_that_an_agent_cut_is_never_given_again_and_the_agent_is_not_talked_over(
    web: Web, plain_upstream: Upstream
) -> None:
    world = await shop_with(plain_upstream)
    kim = await asyncio.to_thread(world.agent, "Kim")
    plain_upstream.always(Plan(script=Text(ANSWER * 40), tokens_per_s=50))
    async with world.customer(web) as line, world.desk(web, kim) as desk:
        await line.say(QUESTION)
        await line.client.expect("delta")
        await act(desk, "conversation.take", line.conversation)
        await line.client.expect("turn.ended", end="taken_over")
        plain_upstream.always(Plan(script=Text("Anew.")))
        assert (await ask(world, web))["text"] == "Anew."
        assert (await ask(world, web))["text"] == "Anew."
        await line.say(QUESTION)
        await act(desk, "message.send", line.conversation, text="Kim here.")
        said = await line.client.expect(
            "event", kind="message", where=lambda f: f["message"]["name"] == "Kim"
        )
        assert said["message"]["text"] == "Kim here."
        assert len(line.client.received("turn.started")) == 1


async def test_an_answer_of_a_model_that_failed_is_never_given_again(
    web: Web, plain_upstream: Upstream
) -> None:
    world = await shop_with(plain_upstream)
    plain_upstream.always(refusal(500, "server_error", times=100))
    async with world.customer(web) as line:
        await line.say(QUESTION)
        builtin = await line.answer()
        await line.client.expect("turn.ended")
    plain_upstream.always(Plan(script=Text("Anew.")))
    answers = [builtin["text"]]
    while answers[-1] == builtin["text"]:
        assert len(answers) < 50, "the model was never asked again"
        answers.append((await ask(world, web))["text"])
    assert answers[-1] == "Anew."


async def test_an_answer_given_again_is_a_turn_like_any_other(web: Web, plain_upstream: Upstream) -> None:
    world = await shop_with(plain_upstream)
    await ask(world, web)
    async with world.customer(web) as line:
        await line.say(QUESTION)
        started = await line.client.expect("turn.started")
        answer = await line.answer()
        await line.client.expect("turn.ended", end="finished")
        assert line.shown(started["handle"]) == answer["text"] == ANSWER
        assert answer["author"] == "assistant"


async def test_a_known_customers_answers_are_neither_kept_nor_taken_from_others(
    web: Web, plain_upstream: Upstream, shop: Shop
) -> None:
    world = await shop_with(plain_upstream, shop=shop)
    await ask(world, web, identity=world.identity("mia"))
    plain_upstream.always(Plan(script=Text("For strangers.")))
    assert (await ask(world, web))["text"] == "For strangers."
    plain_upstream.always(Plan(script=Text("For Leo alone.")))
    assert (await ask(world, web, identity=world.identity("leo")))["text"] == "For Leo alone."


@pytest.mark.parametrize("text", ["Where is my order 1042?", "Has my parcel been sent?", "我的订单到哪了？"])
async def test_what_is_about_an_order_is_always_asked_anew(
    web: Web, plain_upstream: Upstream, text: str
) -> None:
    world = await shop_with(plain_upstream)
    await ask(world, web, text)
    plain_upstream.always(Plan(script=Text("Anew.")))
    assert (await ask(world, web, text))["text"] == "Anew."


async def test_a_near_miss_is_never_given_the_others_answer(web: Web, plain_upstream: Upstream) -> None:
    world = await shop_with(plain_upstream)
    for row in near_misses()[::46]:
        plain_upstream.always(Plan(script=Text("The one.")))
        await ask(world, web, row.known)
        plain_upstream.always(Plan(script=Text("The other.")))
        assert (await ask(world, web, row.asked))["text"] == "The other.", row


async def test_a_later_question_that_leans_on_what_was_said_is_answered_anew(
    web: Web, plain_upstream: Upstream
) -> None:
    world = await shop_with(plain_upstream)
    await ask(world, web, "How long is the warranty?")
    plain_upstream.always(Plan(script=Text("Anew.")))
    async with world.customer(web) as line:
        for text in ("Do you sell boots?", "How long is the warranty?"):
            await line.say(text)
            assert (await line.answer())["text"] == "Anew."
            await line.client.expect("turn.ended", end="finished")


async def test_the_trace_says_where_the_answer_came_from(web: Web, plain_upstream: Upstream) -> None:
    world = await shop_with(plain_upstream)
    kim = await asyncio.to_thread(world.agent, "Kim")
    marks = []
    for text in (QUESTION, QUESTION, REPHRASED, "Where is my order 1042?"):
        async with world.customer(web) as line, world.desk(web, kim) as desk:
            await desk.send({"type": "conversation.watch", "conversation": line.conversation})
            await desk.expect("watching")
            await line.say(text)
            trace = await desk.expect("waterfall")
        marks.append(trace["marks"]["cache"])
        [looked_ms] = [stage["ms"] for stage in trace["stages"] if stage["name"] == "cache"]
        assert (looked_ms > 0) == (marks[-1] != "off")
    assert marks == ["miss", "exact", "similar", "off"]


@pytest.mark.parametrize(
    ("mode", "served"), [("off", []), ("exact", [QUESTION]), ("full", [QUESTION, REPHRASED])]
)
async def test_a_site_chooses_what_is_given_again(
    web: Web, plain_upstream: Upstream, mode: str, served: list[str]
) -> None:
    world = await shop_with(plain_upstream, mode=mode)
    await ask(world, web)
    plain_upstream.always(Plan(script=Text("Anew.")))
    assert [
        text for text in (QUESTION, REPHRASED) if (await ask(world, web, text))["text"] == ANSWER
    ] == served


async def test_without_redis_a_process_has_its_own(deployment: Deployment, plain_upstream: Upstream) -> None:
    world = await shop_with(plain_upstream)
    lone = Web(deployment, "lone-web", "/healthz", REDIS_URL="unix:///nonexistent/redis.sock")
    try:
        await ask(world, lone)
        plain_upstream.always(Plan(script=Text("Anew.")))
        assert [(await ask(world, lone, text))["text"] for text in (QUESTION, REPHRASED)] == [ANSWER, ANSWER]
    finally:
        lone.kill()
