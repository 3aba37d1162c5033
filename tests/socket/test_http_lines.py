"""Clients without a WebSocket: the same frames by a stream and by polls, and what keeps strangers out."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from apps.conversations.models import Message
from apps.gateway.pace import BURST_FRAMES
from apps.gateway.streams import WAITING_FRAMES
from apps.wire.protocol import TEXT_LIMIT_CHARACTERS
from tests.fakes.upstream.faults import Action, Fault, Place, Plan
from tests.fakes.upstream.handle import Upstream
from tests.fakes.upstream.script import Text, words
from tests.support.client import DEADLINE_S
from tests.support.http_line import JSON, HttpClient, HttpSocket, Transport, http_line, said
from tests.support.processes import END_DEADLINE_S, Web
from tests.support.world import Open, World, made

pytestmark = pytest.mark.usefixtures("orm")

LONG = words(200)
both_transports = pytest.mark.parametrize("transport", ["stream", "poll"])


@asynccontextmanager
async def customer(
    world: World, web: Web, transport: Transport, *, token: str = "", posts_to: str = "", **hello: Any
) -> AsyncIterator[tuple[Open, HttpClient]]:
    """A customer's line over HTTP that was welcomed."""
    first = {"type": "hello", "token": token or world.visitor(), "locale": "en"} | hello
    async with http_line(web.url, "customer", transport, posts_to=posts_to, hello=first) as client:
        yield Open(client, await client.expect("welcome")), client


async def ended(line: HttpSocket) -> None:
    """Waits until the server knows the line no more."""
    async with asyncio.timeout(DEADLINE_S):
        while (await line.post(said(type="ping"), 0)).status_code != 404:
            pass


@both_transports
async def test_a_question_is_acknowledged_streamed_and_kept(
    web: Web, plain_upstream: Upstream, transport: Transport
) -> None:
    world = await made(model=plain_upstream)
    plain_upstream.always(Plan(script=Text("Your lamp is on its way 🏮 to you."), tokens_per_s=40))
    async with customer(world, web, transport) as (line, _):
        await line.say("Where is my lamp?")
        started = await line.client.expect("turn.started")
        answer = await line.answer()
        await line.client.expect("turn.ended")
    assert answer["text"] == line.shown(started["handle"]) == "Your lamp is on its way 🏮 to you."
    assert [frame["seq"] for frame in line.client.received("event")] == [1, 2, 3]


@both_transports
async def test_coming_back_mid_stream_shows_the_text_so_far_and_the_rest_once(
    web: Web, plain_upstream: Upstream, transport: Transport
) -> None:
    world = await made(model=plain_upstream)
    plain_upstream.always(Plan(script=Text(LONG), tokens_per_s=150))
    token = world.visitor()
    async with customer(world, web, transport, token=token) as (line, _):
        await line.say("Tell me everything")
        started = await line.client.expect("turn.started")
        for _ in range(5):
            await line.client.expect("delta")
        epoch = line.welcome["page"]["epoch"]
    resumed = {"conversation": line.conversation, "epoch": epoch, "seq": 2}
    async with customer(world, web, transport, token=token, **resumed) as (again, _):
        live = again.welcome["live"]
        answer = await again.answer()
        await again.client.expect("turn.ended")
        text = live["text"]
        for delta in again.client.received("delta"):
            assert delta["offset"] <= len(text)
            text = text[: delta["offset"]] + delta["text"]
    assert (live["turn"], live["handle"]) == (started["turn"], started["handle"])
    assert text == answer["text"] == LONG
    assert (again.welcome["page"]["after"], again.welcome["page"]["events"]) == (2, [])


@both_transports
async def test_what_is_posted_again_is_carried_out_once(web: Web, transport: Transport) -> None:
    world = await made()
    async with customer(world, web, transport) as (line, client):
        frame = said(type="message.send", id="once", conversation=line.conversation, text="Hello?")
        for number in (1, 1, 2):
            assert (await client.line.post(frame, number)).status_code == 204
        client.line.posted = 2
        await line.say("And a last word")
        acks = [ack["id"] for ack in client.received("ack")]
    assert (
        acks.count("once") == 2
    )  # the second post of the same number is passed over, a new number is answered
    texts = [m.text async for m in Message.objects.filter(conversation=line.conversation, author="customer")]
    assert texts == ["Hello?", "And a last word"]


async def test_a_poll_that_is_repeated_is_given_the_same_answer(web: Web) -> None:
    world = await made()
    async with customer(world, web, "poll") as (line, client):
        await line.say("Hello?")
        number = client.line.polled + 1
        first, again = [await client.line.poll(number, wait_s=0) for _ in range(2)]
        assert first.text == again.text
        assert (await client.line.poll(number - 1)).status_code == 404


async def test_frames_of_one_post_keep_their_order(web: Web) -> None:
    world = await made()
    async with customer(world, web, "stream") as (line, client):
        frames = [
            said(type="message.send", id=f"m{n}", conversation=line.conversation, text=str(n))
            for n in range(5)
        ]
        assert (await client.line.post("\n".join(frames), 1)).status_code == 204
        acks = [await client.expect("ack") for _ in frames]
    assert [ack["id"] for ack in acks] == [f"m{n}" for n in range(5)]


@both_transports
async def test_a_line_is_spoken_to_through_any_process(
    web_pair: tuple[Web, Web], plain_upstream: Upstream, transport: Transport
) -> None:
    here, elsewhere = web_pair
    world = await made(model=plain_upstream)
    plain_upstream.always(Plan(script=Text("Yes, we do.")))
    async with customer(world, here, transport, posts_to=elsewhere.url) as (line, _):
        await line.say("Do you sell lamps?")
        assert (await line.answer())["text"] == "Yes, we do."


@both_transports
async def test_a_wrong_token_is_told_and_closed(web: Web, transport: Transport) -> None:
    hello = {"type": "hello", "token": "nonsense"}
    async with http_line(web.url, "customer", transport, hello=hello) as client:
        assert (await client.expect("refused"))["code"] == "bad_token"
        assert await client.closed() == (4401, "token invalid")


@both_transports
async def test_whoever_does_not_know_the_lines_id_reaches_nothing(web: Web, transport: Transport) -> None:
    world = await made()
    async with customer(world, web, transport) as (line, client):
        frame = said(type="message.send", id="x", conversation=line.conversation, text="Hello?")
        process = client.line.id.partition(".")[0]
        for stranger in ("", "x", f"{process}.guess"):
            assert (await client.line.post(frame, 1, line=stranger)).status_code == 404
        other = await httpx.AsyncClient().post(
            f"{web.url}/api/v1/frames/agent",
            content=frame,
            headers=JSON | {"Chatsvc-Line": client.line.id, "Chatsvc-Number": "1"},
        )
        assert other.status_code == 404
        await line.say("A last word")
    texts = [m.text async for m in Message.objects.filter(conversation=line.conversation, author="customer")]
    assert texts == ["A last word"]


@both_transports
async def test_more_frames_than_may_wait_end_the_line(web: Web, transport: Transport) -> None:
    world = await made()
    async with customer(world, web, transport) as (_, client):
        await client.line.post("\n".join([said(type="ping")] * (WAITING_FRAMES + 1)), 1)
        assert await client.closed() == (4429, "slow down")


async def test_a_reader_that_does_not_read_is_closed(web: Web) -> None:
    world = await made()
    token = world.visitor()
    async with (
        world.customer(web, token=token) as tab,
        customer(world, web, "stream", token=token) as (_, client),
    ):
        await tab.client.send({"type": "handoff.request", "id": "h", "conversation": tab.conversation})
        await tab.client.expect("ack", id="h")
        for _ in range(BURST_FRAMES - 10):
            await tab.say("长" * TEXT_LIMIT_CHARACTERS)
        await ended(client.line)  # while nothing was read
        assert await client.closed() == (4429, "too slow")


async def test_a_stream_that_is_broken_off_is_gone(web: Web) -> None:
    world = await made()
    async with customer(world, web, "stream") as (_, client):
        socket = client.line
        assert socket.response is not None
        await socket.response.aclose()
        await ended(socket)


@both_transports
async def test_a_restart_closes_lines_with_its_code_also_one_opened_over_a_kept_connection(
    web_pair: tuple[Web, Web], plain_upstream: Upstream, transport: Transport
) -> None:
    web, world = web_pair[1], await made(model=plain_upstream)
    plain_upstream.next(Plan(script=Text("Wait."), faults=(Fault(action=Action.STALL, place=Place.END),)))
    async with (
        customer(world, web, transport) as (line, client),
        httpx.AsyncClient(base_url=web.url, timeout=DEADLINE_S) as kept,
    ):
        await line.say("Hello?")
        await plain_upstream.until("stalled", 1)
        assert (await kept.get("/healthz")).status_code == 200
        web.signal(signal.SIGTERM)
        assert await client.closed() == (1012, "restarting")
        hello = said(type="hello", token=world.visitor(), locale="en")
        told = await kept.post(f"/api/v1/{transport}/customer", content=hello, headers=JSON)
        assert '"code": 1012' in told.text
        await asyncio.to_thread(plain_upstream.release)
        assert await asyncio.to_thread(web.process.wait, END_DEADLINE_S) == 0


@both_transports
async def test_an_agent_works_over_http(web: Web, transport: Transport) -> None:
    world = await made()
    cookie = await asyncio.to_thread(world.agent, "Kim")
    headers = {"Cookie": cookie, "Origin": web.origin}
    async with (
        world.customer(web) as asker,
        http_line(web.url, "agent", transport, headers=headers) as client,
    ):
        await asker.say("A person, please")
        await client.expect("inbox")
        await client.send({"type": "conversation.watch", "conversation": asker.conversation})
        assert (await client.expect("watching"))["page"]["conversation"] == asker.conversation
        await client.send({"type": "conversation.take", "id": "t", "conversation": asker.conversation})
        await client.expect("ack", id="t")
        await client.send(
            {"type": "message.send", "id": "s", "conversation": asker.conversation, "text": "I am Kim."}
        )
        assert (await asker.message("I am Kim."))["author"] == "agent"
        client.line.http.headers["Cookie"] = await asyncio.to_thread(world.agent, "Eve")
        assert (await client.line.post(said(type="ping"), 99)).status_code == 404


@pytest.mark.parametrize("edge", ["stream", "poll", "frames"])
async def test_another_sites_page_cannot_speak_with_an_agents_cookie(web: Web, edge: str) -> None:
    world = await made()
    cookie = await asyncio.to_thread(world.agent, "Kim")
    url = f"{web.url}/api/v1/{edge}/agent"
    own = {"Cookie": cookie, "Origin": web.origin}
    foreign = {"Cookie": cookie, "Origin": "https://evil.example"}
    async with httpx.AsyncClient() as http:
        # The browser asks first, and is allowed nothing; what needs no asking is refused.
        asked = await http.options(url, headers=foreign | {"Access-Control-Request-Method": "POST"})
        assert not [name for name in asked.headers if name.startswith("access-control-")]
        assert (await http.post(url, content='{"type":"hello"}', headers=foreign | JSON)).status_code == 403
        assert (await http.post(url, content='{"type":"hello"}', headers=own)).status_code == 403
        assert (await http.get(url, headers=own)).status_code == 405


async def test_a_customers_line_may_be_opened_from_an_allowed_page_and_from_no_other(web: Web) -> None:
    world = await made()
    world.site.allowed_origins = ["https://shop.example"]
    await world.site.asave()
    hello = {"type": "hello", "token": world.visitor()}
    async with http_line(
        web.url, "customer", "stream", headers={"Origin": "https://shop.example"}, hello=hello
    ) as client:
        await client.expect("welcome")
        assert client.line.response is not None
        assert client.line.response.headers["access-control-allow-origin"] == "https://shop.example"
        assert "access-control-allow-credentials" not in client.line.response.headers
    async with http_line(
        web.url, "customer", "stream", headers={"Origin": "https://evil.example"}, hello=hello
    ) as client:
        assert await client.closed() == (4403, "origin not allowed")


async def test_no_proxy_is_invited_to_keep_a_stream_back(web: Web) -> None:
    world = await made()
    async with customer(world, web, "stream") as (_, client):
        assert client.line.response is not None
        headers = client.line.response.headers
    assert headers["content-type"] == "text/event-stream"
    assert headers["x-accel-buffering"] == "no"
    assert headers["cache-control"] == "no-store, no-transform"
    assert "content-encoding" not in headers


async def test_a_body_above_the_limit_opens_nothing(web: Web) -> None:
    async with httpx.AsyncClient() as http:
        answer = await http.post(
            f"{web.url}/api/v1/poll/customer", content=b"x" * (1024 * 1024 + 1), headers=JSON
        )
    assert answer.status_code == 413
