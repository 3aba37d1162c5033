"""The customer's line as a client sees it: opening, asking, stopping, coming back, and refusals."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest

from apps.accounts.models import Site
from apps.conversations.models import Conversation, Message
from apps.gateway.pace import BURST_FRAMES
from tests.fakes.shop.handle import Shop
from tests.fakes.upstream.faults import Action, Fault, Place, Plan
from tests.fakes.upstream.handle import Upstream
from tests.fakes.upstream.script import Text, words
from tests.support.client import connected
from tests.support.model_line import answers, body_of
from tests.support.processes import Web
from tests.support.world import made

pytestmark = pytest.mark.usefixtures("orm")

LONG = words(200)


async def test_a_question_is_acknowledged_streamed_and_kept(web: Web, plain_upstream: Upstream) -> None:
    world = await made(model=plain_upstream)
    plain_upstream.always(Plan(script=Text("Your lamp is on its way 🏮 to you.")))
    async with world.customer(web) as line:
        await line.say("Where is my lamp?")
        started = await line.client.expect("turn.started")
        answer = await line.answer()
        ended = await line.client.expect("turn.ended")
    assert answer["text"] == line.shown(started["handle"]) == "Your lamp is on its way 🏮 to you."
    assert (answer["place"], ended["end"], ended["length"]) == (started["place"], "finished", 34)
    assert [frame["seq"] for frame in line.client.received("event")] == [1, 2, 3]


async def test_offsets_count_utf16_code_units(web: Web, plain_upstream: Upstream) -> None:
    world = await made(model=plain_upstream)
    plain_upstream.always(Plan(script=Text("🏕️👩‍👩‍👧 tents and more tents"), tokens_per_s=40))
    async with world.customer(web) as line:
        await line.say("Tents?")
        await line.client.expect("turn.ended")
    painted = ""
    for delta in line.client.received("delta"):
        assert delta["offset"] == len(painted.encode("utf-16-le")) // 2
        painted += delta["text"]


async def test_both_subprotocols_say_the_same(web: Web, plain_upstream: Upstream) -> None:
    world = await made(model=plain_upstream)
    plain_upstream.always(Plan(script=Text("Yes, we do.")))
    texts = []
    for subprotocol in ("chatsvc.v1.json", "chatsvc.v1.msgpack"):
        async with world.customer(web, subprotocol=subprotocol) as line:
            await line.say("Do you sell lamps?")
            texts.append((await line.answer())["text"])
            await line.client.expect("turn.ended")
    assert texts == ["Yes, we do."] * 2


async def test_stop_ends_the_stream_at_what_was_painted(web: Web, plain_upstream: Upstream) -> None:
    world = await made(model=plain_upstream)
    plain_upstream.always(Plan(script=Text(LONG), tokens_per_s=50))
    async with world.customer(web) as line:
        await line.say("Tell me everything")
        started = await line.client.expect("turn.started")
        for _ in range(4):
            await line.client.expect("delta")
        await line.client.send(
            {"type": "turn.stop", "conversation": line.conversation, "turn": started["turn"], "painted": 9}
        )
        ended = await line.client.expect("turn.ended")
        answer = await line.answer()
        await asyncio.to_thread(plain_upstream.wait, "aborts", 1)
        await line.client.send({"type": "ping"})
        await line.client.expect("pong")
    assert (ended["end"], answer["state"], answer["text"]) == ("stopped", "stopped", LONG[:9])
    kinds = [frame["type"] for frame in line.client.journal]
    assert "delta" not in kinds[kinds.index("turn.ended") :]


async def test_a_second_question_before_the_first_word_supersedes_the_turn(
    web: Web, plain_upstream: Upstream
) -> None:
    world = await made(model=plain_upstream)
    silent = Fault(action=Action.STALL, place=Place.DATA)
    plain_upstream.next(Plan(faults=(silent,)), Plan(script=Text("Both, then.")))
    async with world.customer(web) as line:
        await line.say("A lamp?")
        first = await line.client.expect("turn.started")
        await asyncio.to_thread(plain_upstream.wait, "stalled", 1)
        await line.say("And a tent?")
        assert (await line.client.expect("turn.ended", handle=first["handle"]))["end"] == "superseded"
        answer = await line.answer()
        await asyncio.to_thread(plain_upstream.wait, "requests_open", 0, exactly=True)
    assert answer["text"] == "Both, then."
    asked = body_of(answers(plain_upstream)[-1])["messages"]
    assert [m["content"] for m in asked if m["role"] == "user"] == ["A lamp?", "And a tent?"]


async def test_a_question_during_an_answer_is_answered_after_it(web: Web, plain_upstream: Upstream) -> None:
    world = await made(model=plain_upstream)
    plain_upstream.next(Plan(script=Text(LONG), tokens_per_s=400), Plan(script=Text("And that too.")))
    async with world.customer(web) as line:
        await line.say("First?")
        await line.client.expect("delta")
        await line.say("Second?")
        first, second = await line.answer(), await line.answer()
    assert (first["text"], first.get("state"), second["text"]) == (LONG, None, "And that too.")
    assert first["place"] < second["place"]


async def test_coming_back_mid_stream_shows_the_text_so_far_and_the_rest_once(
    web_pair: tuple[Web, Web], plain_upstream: Upstream
) -> None:
    world = await made(model=plain_upstream)
    plain_upstream.always(Plan(script=Text(LONG), tokens_per_s=150))
    token = world.visitor()
    async with world.customer(web_pair[0], token=token) as line:
        await line.say("Tell me everything")
        started = await line.client.expect("turn.started")
        for _ in range(5):
            await line.client.expect("delta")
        epoch = line.welcome["page"]["epoch"]
    async with world.customer(
        web_pair[1], token=token, conversation=line.conversation, epoch=epoch, seq=2
    ) as again:
        live = again.welcome["live"]
        assert (live["turn"], live["handle"]) == (started["turn"], started["handle"])
        answer = await again.answer()
        await again.client.expect("turn.ended")
    assert again.resumed() == answer["text"] == LONG
    assert (again.welcome["page"]["after"], again.welcome["page"]["events"]) == (2, [])


async def test_two_tabs_see_the_same_events(web_pair: tuple[Web, Web], plain_upstream: Upstream) -> None:
    world = await made(model=plain_upstream)
    plain_upstream.always(Plan(script=Text("Here you are, twice.")))
    async with world.tabs(*web_pair) as (one, two):
        assert one.conversation == two.conversation
        await one.say("Hello there")
        await two.say("And hello from the other tab")
        for tab in (one, two):
            while sum(f["kind"] == "message" for f in tab.client.received("event")) < 4:
                await tab.client.expect("event")
    seen = [
        sorted((f["seq"], f["message"]["text"]) for f in tab.client.received("event") if f.get("message"))
        for tab in (one, two)
    ]
    assert seen[0] == seen[1]
    assert len({seq for seq, _ in seen[0]}) == 4


async def test_a_new_conversation_starts_empty_and_the_old_one_can_be_seen(web: Web) -> None:
    world = await made()
    async with world.customer(web) as line:
        await line.say("I want to talk to a person")
        await line.client.expect("turn.ended")
        await line.client.send({"type": "conversation.new"})
        fresh = await line.client.expect("welcome")
        await line.client.send({"type": "conversation.list"})
        listed = await line.client.expect("conversations")
        await line.client.send({"type": "conversation.open", "conversation": line.conversation})
        old = await line.client.expect("welcome")
        await line.client.send(
            {
                "type": "conversation.open",
                "conversation": line.conversation,
                "epoch": old["page"]["epoch"],
                "seq": 1,
            }
        )
        resumed = await line.client.expect("welcome")
    assert (fresh["page"]["events"], fresh["owner"]["kind"]) == ([], "assistant")
    assert [item["id"] for item in listed["items"]] == [line.conversation]
    assert old["page"]["events"][0]["message"]["text"] == "I want to talk to a person"
    assert old["owner"]["kind"] == "queue"
    assert resumed["page"]["after"] == 1
    assert resumed["page"]["events"] == [event for event in old["page"]["events"] if event["seq"] > 1]


async def test_asking_for_a_person_with_nobody_there_offers_hours_and_takes_an_address(web: Web) -> None:
    world = await made()
    async with world.customer(web) as line:
        await line.client.send({"type": "handoff.request", "id": "h1", "conversation": line.conversation})
        await line.client.expect("ack", id="h1")
        queue = await line.client.expect("queue")
        await line.client.send(
            {
                "type": "contact.leave",
                "id": "c1",
                "conversation": line.conversation,
                "email": "mia@example.com",
            }
        )
        await line.client.expect("ack", id="c1")
        await line.client.send(
            {
                "type": "contact.leave",
                "id": "c2",
                "conversation": line.conversation,
                "email": "not an address",
            }
        )
        refused = await line.client.expect("refused")
    assert (queue["position"], queue["availability"]["online"]) == (1, False)
    assert len(queue["availability"]["hours"]) == 7
    assert (refused["code"], refused["id"]) == ("bad_email", "c2")
    stored = await asyncio.to_thread(lambda: Conversation.objects.get(pk=line.conversation).contact_email)
    assert stored == "mia@example.com"


async def test_a_verified_owner_gets_the_orders_real_state(web: Web, shop: Shop) -> None:
    world = await made(shop=shop)
    async with world.customer(web, identity=world.identity("mia")) as line:
        await line.say("Where is my order 1042?")
        acting = await line.client.expect("turn.activity")
        answer = await line.answer()
    assert (acting["activity"], acting["subject"]) == ("order", "1042")
    assert "1042" in answer["text"]
    assert "on its way" in answer["text"].lower() or "transit" in answer["text"].lower()


@pytest.mark.parametrize("number", ["1042", "9999"])
async def test_a_visitor_learns_nothing_about_an_order(web: Web, shop: Shop, number: str) -> None:
    world = await made(shop=shop)
    async with world.customer(web) as line:
        await line.say(f"Where is my order {number}?")
        answer = await line.answer()
    assert "log in" in answer["text"].lower()
    assert number not in answer["text"]
    assert shop.counts().requests == 0


async def test_without_a_worker_the_facts_are_fetched_in_the_turn(web: Web, shop: Shop) -> None:
    world = await made(shop=shop)
    desk = await asyncio.to_thread(world.agent, "Kim")
    async with world.customer(web, identity=world.identity("mia")) as line, world.desk(web, desk) as agent:
        await agent.send({"type": "conversation.watch", "conversation": line.conversation})
        await agent.expect("watching")
        await line.say("我的订单1042到哪了")
        answer = await line.answer()
        trace = await agent.expect("waterfall")
    assert "1042" in answer["text"]
    # The agent's panel may have asked the shop first: either way no worker did.
    assert trace["marks"]["profile"] in {"cold", "warm"}


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ("[]", "bad_frame"),
        ("not json", "bad_frame"),
        ('{"type":"message.teleport","id":"x1"}', "unknown_type"),
        ('{"type":"message.send","id":"x1","conversation":7,"text":"hi"}', "bad_frame"),
        ('{"type":"message.send","id":"","conversation":"c","text":"hi"}', "bad_frame"),
        ('{"type":"message.send","id":"x1","conversation":"no-such","text":"hi"}', "not_found"),
        ('{"type":"message.send","id":"x1","conversation":"CONV","text":"\\ud800"}', "bad_text"),
        ('{"type":"message.send","id":"x1","conversation":"CONV","text":"a\\u0000b"}', "bad_text"),
        (
            '{"type":"message.send","id":"x1","conversation":"CONV","text":"\\u200b\\u2060 \\ufeff"}',
            "empty_text",
        ),
        (
            '{"type":"message.send","id":"x1","conversation":"CONV","text":"' + "x" * 100_000 + '"}',
            "too_long",
        ),
        ('{"type":"turn.stop","conversation":"CONV","turn":"none","painted":0}', "nothing_running"),
        ('{"type":"conversation.open","conversation":"no-such"}', "not_found"),
        ('{"type":"history.fetch","conversation":"no-such","after":0}', "not_found"),
        ('{"type":"hello","token":"again"}', "bad_frame"),
    ],
)
async def test_bad_input_is_refused_and_the_socket_lives(web: Web, frame: str, code: str) -> None:
    world = await made()
    async with world.customer(web) as line:
        await line.client.send_raw(frame.replace("CONV", line.conversation))
        refused = await line.client.expect("refused")
        await line.client.send({"type": "ping"})
        await line.client.expect("pong")
    assert refused["code"] == code
    if '"x1"' in frame:
        assert refused["id"] == "x1"
    assert (
        await asyncio.to_thread(lambda: Message.objects.filter(conversation_id=line.conversation).count())
        == 0
    )


async def test_binary_from_a_client_is_refused(web: Web) -> None:
    world = await made()
    async with world.customer(web) as line:
        await line.client.send_raw(b"\x81\xa4type\xa4ping")
        assert (await line.client.expect("refused"))["code"] == "bad_frame"


async def test_a_repeated_id_is_one_message_and_another_body_is_refused(web: Web) -> None:
    world = await made()
    async with world.customer(web) as line:
        await line.say("Hello", "same")
        first = line.client.received("ack")[0]
        await line.say("Hello", "same")
        assert line.client.received("ack")[1]["seq"] == first["seq"]
        await line.client.send(
            {"type": "message.send", "id": "same", "conversation": line.conversation, "text": "Goodbye"}
        )
        refused = await line.client.expect("refused", id="same")
    assert refused["code"] == "id_reused"
    texts = await asyncio.to_thread(
        lambda: list(Message.objects.filter(client_id="same").values_list("text", flat=True))
    )
    assert texts == ["Hello"]


async def test_another_customers_conversation_does_not_exist(web: Web) -> None:
    world = await made()
    async with world.customer(web) as mine, world.customer(web) as theirs:
        await theirs.say("A secret")
        for frame in (
            {"type": "history.fetch", "conversation": theirs.conversation, "after": 0},
            {"type": "conversation.open", "conversation": theirs.conversation},
            {"type": "message.send", "id": "m", "conversation": theirs.conversation, "text": "hi"},
            {"type": "turn.stop", "conversation": theirs.conversation, "turn": "t", "painted": 0},
            {"type": "handoff.request", "id": "h", "conversation": theirs.conversation},
            {"type": "typing.set", "conversation": theirs.conversation, "on": True},
        ):
            await mine.client.send(frame)
            assert (await mine.client.expect("refused"))["code"] == "not_found"
        async with world.customer(web, conversation=theirs.conversation) as third:
            assert third.conversation != theirs.conversation
    assert "A secret" not in json.dumps(mine.client.journal + third.client.journal)


@pytest.mark.parametrize(
    ("hello", "code"),
    [
        ({"type": "hello", "token": "nonsense"}, 4401),
        ({"type": "hello", "identity": "a.b.c"}, 4401),
        ({"type": "message.send", "id": "m", "conversation": "c", "text": "hi"}, 4400),
    ],
)
async def test_a_wrong_first_frame_closes_with_its_code(web: Web, hello: dict[str, Any], code: int) -> None:
    async with connected(f"{web.ws}/ws/customer") as client:
        await client.send(hello)
        assert (await client.closed())[0] == code
        assert client.received("refused")


async def test_an_identity_that_runs_out_must_be_renewed(web: Web) -> None:
    world = await made()
    nearly_over = world.identity("ada", exp=int(time.time()) - 5)  # clocks may differ by ten seconds
    async with world.customer(web, identity=nearly_over) as line:
        assert await line.client.closed() == (4401, "token expired")
        assert line.client.received("refused")[0]["message"] == "expired"


async def test_who_speaks_too_fast_is_told_when_to_go_on(web: Web) -> None:
    world = await made()
    async with world.customer(web) as line:
        for _ in range(150):
            await line.client.send({"type": "ping"})
        answers = [await line.client.expect_one_of("pong", "refused") for _ in range(150)]
        refused = [answer for answer in answers if answer["type"] == "refused"]
        await asyncio.sleep(refused[-1]["retry_after_s"])
        await line.client.send({"type": "conversation.list"})
        await line.client.expect("conversations")
    assert {(one["of"], one["code"]) for one in refused} == {("ping", "slow_down")}
    assert 150 - len(refused) >= BURST_FRAMES - 1  # the hello was the first frame


async def test_who_does_not_stop_speaking_too_fast_is_closed(web: Web) -> None:
    world = await made()
    async with world.customer(web) as line:
        for _ in range(400):
            await line.client.send({"type": "ping"})
        assert (await line.client.closed())[0] == 4429


async def test_silence_instead_of_a_hello_closes_after_five_seconds(web: Web) -> None:
    async with connected(f"{web.ws}/ws/customer") as client:
        assert await client.closed() == (4400, "no hello")
        assert client.received("refused")[0]["code"] == "hello_missing"


async def test_an_unknown_subprotocol_is_told_so(web: Web) -> None:
    async with connected(f"{web.ws}/ws/customer", subprotocol="chatsvc.v9.xml") as client:
        assert (await client.closed())[0] == 4406
        assert client.received("refused")[0]["code"] == "unknown_subprotocol"


async def test_only_our_pages_and_the_sites_origins_may_use_the_socket(web: Web) -> None:
    world = await made()
    origin = "https://shop.example"

    async def close_code() -> int | None:
        async with connected(f"{web.ws}/ws/customer", origin=origin) as client:
            await client.send({"type": "hello", "token": world.visitor()})
            try:
                await client.expect("welcome")
            except AssertionError:
                return (await client.closed())[0]
            return None

    assert await close_code() == 4403
    await asyncio.to_thread(lambda: Site.objects.filter(pk=world.site.pk).update(allowed_origins=[origin]))
    assert await close_code() is None


async def test_markup_in_a_name_stays_text(web: Web) -> None:
    world = await made()
    name = '<img src=x onerror="alert(1)">'
    async with world.customer(web, identity=world.identity("eve", name=name)) as line:
        await line.say("<script>alert(1)</script>")
        event = await line.client.expect("event", kind="message")
    assert (event["message"]["name"], event["message"]["text"]) == (name, "<script>alert(1)</script>")
