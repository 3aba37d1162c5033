"""The model server's Responses API against its documentation: event order, lanes, memory, limits, steering."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator

import httpx
import msgspec
import pytest
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus

from tests.fakes.transport.listener import Leave
from tests.fakes.upstream.faults import FAILING, Action, Fault, Place, Plan, dialect, fault, refusal
from tests.fakes.upstream.handle import Upstream
from tests.fakes.upstream.profile import INSTANT, Chunking, Dialect, Upgrade
from tests.fakes.upstream.script import Filler, Text, ToolCall
from tests.support.responses import TERMINAL, TIMEOUT_S, Event, Line, dialled, events_of, judge

HANDOFF = [{"type": "function", "name": "handoff", "parameters": {"type": "object"}}]
ANSWER = "In transit, 明天到。"
POLICY = "Boots may be returned within thirty days. " * 20


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    with Upstream(tls=False) as server:
        server.always(Plan(script=Text(ANSWER)))
        yield server


@pytest.fixture
async def line(upstream: Upstream) -> AsyncIterator[Line]:
    async with dialled(upstream) as opened:
        yield opened


def stalling() -> Plan:
    """The usual answer, standing still behind its second token."""
    return msgspec.structs.replace(fault(Action.STALL), script=Text(ANSWER))


def post(upstream: Upstream, asked: str = "Hello", **fields: object) -> httpx.Response:
    body = {"model": "m", "stream": True, "input": [{"role": "user", "content": asked}], **fields}
    with httpx.Client(timeout=TIMEOUT_S) as client:
        return client.post(f"{upstream.base_url}/responses", json=body)


def on(lane: str | None, events: list[Event]) -> list[Event]:
    """One lane's events, without its name."""
    mine = [event for event in events if event.get("stream_id") == lane]
    return [{name: value for name, value in event.items() if name != "stream_id"} for event in mine]


def test_a_streamed_response_keeps_the_documented_order(upstream: Upstream) -> None:
    upstream.next(Plan(script=Text(ANSWER, reasoning="Where is it?")))
    told = judge(events_of(post(upstream).content))

    assert (told.text, told.reasoning, told.response["status"]) == (ANSWER, "Where is it?", "completed")
    assert told.usage["output_tokens"] == told.usage["total_tokens"] - told.usage["input_tokens"]
    assert told.usage["output_tokens_details"]["reasoning_tokens"] == 3


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_thoughts_come_as_a_summary_or_as_they_are(upstream: Upstream, name: str) -> None:
    upstream.next(
        Plan(script=Text("42.", reasoning="Six times seven."), dialect=Dialect(reasoning_field=name))
    )
    events = events_of(post(upstream).content)

    assert judge(events).reasoning == "Six times seven."
    kinds = {event["type"] for event in events}
    assert ("response.reasoning_text.delta" in kinds) == (name == "reasoning")


def test_a_call_comes_as_an_item_with_its_arguments_in_pieces(upstream: Upstream) -> None:
    upstream.next(Plan(script=ToolCall(arguments='{"reason":"退货"}', pieces=4, text="One moment.")))
    events = events_of(post(upstream, tools=HANDOFF).content)
    told = judge(events)

    assert (told.text, told.calls) == ("One moment.", [("handoff", '{"reason":"退货"}')])
    assert [event["type"] for event in events].count("response.function_call_arguments.delta") == 4


def test_an_answer_at_its_limit_is_incomplete_and_says_why(upstream: Upstream) -> None:
    upstream.next(Plan(script=Filler(50)))
    told = judge(events_of(post(upstream, max_output_tokens=7).content))

    assert (told.response["status"], told.usage["output_tokens"]) == ("incomplete", 7)
    assert told.response["incomplete_details"] == {"reason": "max_output_tokens"}


def test_a_response_that_is_not_streamed_is_the_last_events_response(upstream: Upstream) -> None:
    whole = post(upstream, stream=False).json()

    assert whole["output"][0]["content"][0]["text"] == ANSWER
    assert (whole["object"], whole["status"]) == ("response", "completed")


def test_what_is_stored_can_be_continued_over_http_and_nothing_else(upstream: Upstream) -> None:
    kept = judge(events_of(post(upstream, instructions=POLICY).content))
    lost = judge(events_of(post(upstream, store=False).content))
    told = judge(
        events_of(post(upstream, "And boots?", instructions=POLICY, previous_response_id=kept.id).content)
    )

    assert told.response["previous_response_id"] == kept.id
    assert told.cached > 200
    assert upstream.requests()[-1].input_items == 1
    answer = post(upstream, previous_response_id=lost.id)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "previous_response_not_found")


def test_an_error_in_a_stream_is_flat_and_one_that_failed_is_an_event_of_its_own(upstream: Upstream) -> None:
    upstream.next(fault(Action.ERROR), fault(Action.FAILED))
    error = events_of(post(upstream).content)[-1]
    failed = events_of(post(upstream).content)[-1]

    assert (error["type"], error["code"]) == ("error", "server_error")
    assert {"message", "param", "sequence_number"} <= error.keys()
    assert (failed["type"], failed["response"]["error"]["code"]) == ("response.failed", "server_error")


@pytest.mark.parametrize("name", FAILING)
def test_no_failing_answer_looks_whole(upstream: Upstream, name: str) -> None:
    upstream.next(FAILING[name])
    body = json.dumps({"model": "m", "stream": True, "input": "Hello"})
    seen = b""
    with httpx.Client(timeout=httpx.Timeout(TIMEOUT_S, read=0.5)) as client:
        try:
            with client.stream("POST", f"{upstream.base_url}/responses", content=body) as answer:
                for chunk in answer.iter_raw():
                    seen += chunk
                    if seen.count(b": keep-alive") > 3:
                        break
        except httpx.TransportError:
            pass
    assert b"response.completed" not in seen


async def test_the_socket_speaks_the_same_order_without_framing(line: Line, upstream: Upstream) -> None:
    upstream.next(Plan(script=Text(ANSWER, reasoning="Hm.")))
    told = await line.ask()

    assert (told.text, told.reasoning, told.response["store"]) == (ANSWER, "Hm.", False)
    assert [seen.method for seen in upstream.requests()] == ["GET", "WS"]
    assert upstream.requests()[0].headers["authorization"] == "Bearer k"


async def test_a_chain_sends_only_what_is_new_and_the_model_reads_all_of_it(
    line: Line, upstream: Upstream
) -> None:
    upstream.always(None)
    first = await line.ask("My order is 1042: in_transit", instructions=POLICY)
    second = await line.ask("Where is order 1042?", instructions=POLICY, previous_response_id=first.id)

    assert "1042: in_transit" in second.text
    assert [seen.input_items for seen in upstream.requests()[1:]] == [1, 1]
    assert second.cached > first.cached
    assert second.usage["input_tokens"] > first.usage["input_tokens"]


async def test_a_warm_up_says_nothing_and_can_be_continued(line: Line, upstream: Upstream) -> None:
    warm = await line.ask([], instructions=POLICY, generate=False)
    told = await line.ask("Boots?", instructions=POLICY, previous_response_id=warm.id)

    assert (warm.response["status"], warm.response["output"], warm.usage["output_tokens"]) == (
        "completed",
        [],
        0,
    )
    assert told.text == ANSWER
    assert told.cached > 200
    assert [seen.generate for seen in upstream.requests()[1:]] == [False, True]


async def test_only_a_lanes_latest_response_is_remembered(line: Line, upstream: Upstream) -> None:
    first = await line.ask(stream_id="a")
    second = await line.ask(stream_id="a", previous_response_id=first.id)

    error = await line.refused(stream_id="b", previous_response_id=first.id)
    assert (error["error"]["code"], error["error"]["param"]) == (
        "previous_response_not_found",
        "previous_response_id",
    )
    assert error["stream_id"] == "b"
    assert (await line.ask(stream_id="b", previous_response_id=second.id)).text == ANSWER


async def test_what_is_stored_comes_back_when_the_memory_is_gone(line: Line, upstream: Upstream) -> None:
    first = await line.ask(store=True)
    await line.ask(store=True)
    async with dialled(upstream) as other:
        assert (await other.ask(previous_response_id=first.id)).text == ANSWER
        lost = await other.ask(store=False)
    assert (await line.refused(previous_response_id=lost.id))["error"][
        "code"
    ] == "previous_response_not_found"


async def test_a_failed_continuation_forgets_its_parent_and_a_failed_fork_does_not(
    line: Line, upstream: Upstream
) -> None:
    parent = await line.ask(stream_id="a")
    upstream.next(refusal(500, "server_error"))
    await line.create(stream_id="fork", previous_response_id=parent.id)
    assert (await line.event())["status"] == 500
    upstream.next(refusal(500, "server_error"))
    await line.create(stream_id="a", previous_response_id=parent.id)
    assert (await line.event())["status"] == 500
    error = await line.refused(stream_id="a", previous_response_id=parent.id)
    assert error["error"]["code"] == "previous_response_not_found"


@pytest.mark.parametrize("name", ["stream", "background"])
async def test_what_belongs_to_http_is_refused(line: Line, name: str) -> None:
    await line.send(type="response.create", model="m", input="Hello", **{name: True})
    assert (await line.event())["error"]["param"] == name


async def test_nonsense_is_refused_and_the_connection_lives(line: Line) -> None:
    for nonsense in ("{", "[]", '{"type":"response.cancel"}'):
        await line.send_raw(nonsense)
        assert (await line.event())["status"] == 400
    assert (await line.ask()).text == ANSWER


async def test_lanes_run_side_by_side_and_a_lane_in_order(line: Line, upstream: Upstream) -> None:
    upstream.next(fault(Action.STALL), Plan(script=Text("b")))
    await line.create(stream_id="a")
    await upstream.until("stalled", 1)
    await line.create("second", stream_id="a")
    await line.create(stream_id="b")
    events = await line.until_end()
    assert judge(on("b", events)).text == "b"
    upstream.release()
    events += await line.until_end(2)
    first = next(
        at for at, event in enumerate(events) if event["type"] in TERMINAL and event["stream_id"] == "a"
    )
    assert judge(on("a", events[: first + 1])).text
    assert judge(on("a", events[first + 1 :])).text == ANSWER
    assert upstream.counts().creates_queued == 1


async def test_the_seventeenth_response_waits_for_a_place(line: Line, upstream: Upstream) -> None:
    upstream.next(*[fault(Action.STALL, Place.DATA)] * 17)
    for number in range(17):
        await line.create(stream_id=f"lane-{number}")
    await upstream.until("creates_queued", 1)
    await upstream.until("stalled", 16, exactly=True)
    upstream.release()
    await upstream.until("stalled", 1, exactly=True)
    upstream.release()
    ended = [event["stream_id"] for event in await line.until_end(17) if event["type"] in TERMINAL]
    assert ended[-1] == "lane-16"
    assert len(set(ended)) == 17


async def test_a_thirty_third_name_is_refused_and_the_default_lane_is_not_counted(line: Line) -> None:
    for number in range(32):
        await line.ask(stream_id=f"lane-{number}")
    error = await line.refused(stream_id="lane-32")
    assert (error["error"]["code"], error["stream_id"]) == ("websocket_stream_limit_reached", "lane-32")
    assert (await line.ask()).text == ANSWER
    assert (await line.ask(stream_id="lane-0")).text == ANSWER


@pytest.mark.parametrize("name", ["", "a b", "ä", "x" * 257, 7])
async def test_a_bad_name_is_refused_without_a_lane(line: Line, name: object) -> None:
    error = await line.refused(stream_id=name)
    assert error["error"]["code"] == "invalid_stream_id"
    assert "stream_id" not in error


async def test_the_sequential_variant_knows_no_lanes(upstream: Upstream) -> None:
    upstream.set_profile(INSTANT.but(ws_lanes=False))
    async with dialled(upstream) as line:
        assert (await line.refused(stream_id="a"))["error"]["param"] == "stream_id"
        await line.create("one")
        await line.create("two")
        events = await line.until_end(2)
    middle = next(at for at, event in enumerate(events) if event["type"] in TERMINAL) + 1
    assert judge(events[:middle]).text == judge(events[middle:]).text == ANSWER


@pytest.mark.parametrize("busy", [False, True])
async def test_the_hour_ends_a_connection_also_an_idle_one(upstream: Upstream, busy: bool) -> None:
    upstream.next(fault(Action.STALL))
    async with dialled(upstream) as line:
        await upstream.until("sockets_open", 1)
        if busy:
            await line.create(stream_id="a")
            await upstream.until("stalled", 1)
        upstream.expire()
        last = await line.until("error")
        with pytest.raises(ConnectionClosed):
            await line.event()
    assert (last["type"], last["error"]["code"]) == ("error", "websocket_connection_limit_reached")
    assert "stream_id" not in last
    await upstream.until("sockets_open", 0, exactly=True)


async def test_the_hour_is_a_figure_of_the_profile(upstream: Upstream) -> None:
    upstream.set_profile(INSTANT.but(ws_lifetime_s=0.01))
    async with dialled(upstream) as line:
        assert (await line.event())["error"]["code"] == "websocket_connection_limit_reached"


async def test_a_new_connection_remembers_nothing(upstream: Upstream) -> None:
    async with dialled(upstream) as line:
        first = await line.ask()
    async with dialled(upstream) as line:
        assert (await line.refused(previous_response_id=first.id))["error"][
            "code"
        ] == "previous_response_not_found"


async def steer(line: Line, response_id: str, given: object = "Also in blue?") -> None:
    await line.send(type="response.steer", previous_response_id=response_id, input=given)


async def test_a_steered_response_ends_and_its_successor_follows_by_itself(
    line: Line, upstream: Upstream
) -> None:
    upstream.next(fault(Action.STALL), Plan(script=Text("Yes, in blue.")))
    await line.create(stream_id="a")
    await upstream.until("stalled", 1)
    first_id = (await line.event())["response"]["id"]
    await steer(line, first_id)
    event = await line.until("response.steer.accepted")
    assert event["steer"]["previous_response_id"] == first_id
    assert event["stream_id"] == "a"
    upstream.release()
    steered = (await line.until_end())[-1]
    assert steered["response"]["incomplete_details"] == {"reason": "steered"}
    successor = judge(on("a", await line.until_end()))
    assert successor.text == "Yes, in blue."
    assert successor.response["previous_response_id"] == first_id
    assert upstream.requests()[-1].input_items == 1


async def test_a_steer_waits_for_the_result_of_a_call(line: Line, upstream: Upstream) -> None:
    upstream.next(
        Plan(script=ToolCall(pieces=3), faults=(Fault(action=Action.STALL, after_tokens=2),)),
        Plan(script=Text("Thank you.")),
    )
    await line.create()
    await upstream.until("stalled", 1)
    first_id = (await line.event())["response"]["id"]
    await steer(line, first_id)
    await line.until("response.steer.accepted")
    upstream.release()
    event = await line.until("response.steer.pending")
    needed = event["required_input"][0]
    assert (event["reason"], needed["type"]) == ("waiting_for_required_input", "function_call_output")
    result = {"type": "function_call_output", "call_id": needed["call_id"], "output": "done"}
    assert (await line.ask([result], previous_response_id=first_id)).text == "Thank you."


@pytest.mark.parametrize(
    ("code", "given"),
    [
        ("response_not_found", "x"),
        ("steering_not_supported", "x"),
        ("invalid_input", [{"role": "system", "content": "x"}]),
        ("invalid_input", []),
    ],
)
async def test_a_steer_that_cannot_be_is_returned_with_its_input(
    upstream: Upstream, code: str, given: object
) -> None:
    upstream.set_profile(INSTANT.but(ws_steering=code != "steering_not_supported"))
    upstream.next(fault(Action.STALL))
    async with dialled(upstream) as line:
        await line.create()
        target = (await line.event())["response"]["id"]
        await steer(line, "resp_unknown" if code == "response_not_found" else target, given)
        event = await line.until("response.steer.failed")
    assert (event["error"]["code"], event["error"]["type"]) == (code, "invalid_request_error")
    assert event["steer"]["input"] == given


@pytest.mark.parametrize(
    ("action", "code"),
    [(None, "response_already_completed"), (Action.FAILED, "response_not_active")],
)
async def test_a_response_that_has_ended_cannot_be_steered(
    line: Line, upstream: Upstream, action: Action | None, code: str
) -> None:
    upstream.next(*([fault(action)] if action else []))
    await line.create()
    target = (await line.until_end())[0]["response"]["id"]
    await steer(line, target)
    assert (await line.until("response.steer.failed"))["error"]["code"] == code


async def test_too_many_steers_are_refused(line: Line, upstream: Upstream) -> None:
    upstream.next(fault(Action.STALL))
    await line.create()
    await upstream.until("stalled", 1)
    target = (await line.event())["response"]["id"]
    for _ in range(5):
        await steer(line, target)
    event = await line.until("response.steer.failed")
    assert event["error"]["code"] == "too_many_pending_steers"


@pytest.mark.parametrize("status", [401, 404, 426, 429])
async def test_an_upgrade_can_be_refused(upstream: Upstream, status: int) -> None:
    upstream.set_profile(INSTANT.but(ws_refusal=status, ws_retry_after="3"))
    with pytest.raises(InvalidStatus) as caught:
        async with dialled(upstream):
            pass
    assert caught.value.response.status_code == status
    assert caught.value.response.headers["retry-after"] == "3"
    assert judge(events_of(post(upstream).content)).text == ANSWER


async def test_a_wrong_key_is_refused_at_the_upgrade(upstream: Upstream) -> None:
    upstream.set_profile(INSTANT.but(api_keys=("right",)))
    with pytest.raises(InvalidStatus) as caught:
        async with dialled(upstream):
            pass
    assert caught.value.response.status_code == 401
    async with dialled(upstream, "right") as line:
        assert (await line.ask()).text == ANSWER


async def test_a_mangled_upgrade_is_none(upstream: Upstream) -> None:
    upstream.set_profile(INSTANT.but(ws_upgrade=Upgrade.MANGLE))
    with pytest.raises(InvalidHandshake):
        async with dialled(upstream):
            pass


async def test_a_proxy_that_kills_sockets_takes_the_first_message_with_it(upstream: Upstream) -> None:
    upstream.set_profile(INSTANT.but(ws_upgrade=Upgrade.DIE))
    async with dialled(upstream) as line:
        with pytest.raises(ConnectionClosed):
            await line.ask()


def test_a_plain_get_is_told_to_upgrade(upstream: Upstream) -> None:
    with httpx.Client(timeout=TIMEOUT_S) as client:
        assert client.get(f"{upstream.base_url}/responses").status_code == 426


async def test_an_error_frame_names_its_lane_unless_told_not_to(line: Line, upstream: Upstream) -> None:
    plain = refusal(429, "rate_limit_exceeded", retry_after="2")
    laneless = Plan(faults=(Fault(action=Action.ERROR, code="x", status=500, laneless=True),))
    upstream.next(plain, laneless)
    await line.create(stream_id="a")
    named = await line.event()
    await line.create(stream_id="a")
    unnamed = (await line.until_end())[-1]

    assert (named["stream_id"], named["status"]) == ("a", 429)
    assert named["error"]["headers"] == {"retry-after": "2"}
    assert "stream_id" not in unnamed
    assert (unnamed["status"], unnamed["error"]["code"]) == (500, "x")
    assert (await line.ask(stream_id="a")).text == ANSWER


@pytest.mark.parametrize(
    ("action", "code"),
    [
        (Action.RESET, 1006),
        (Action.CLOSE, 1006),
        (Action.CUT_CHARACTER, 1006),
        (Action.END, 1000),
        (Action.GOAWAY, 1012),
        (Action.MISFRAME, 1002),
    ],
)
async def test_a_connection_breaks_in_the_way_that_was_ordered(
    line: Line, upstream: Upstream, action: Action, code: int
) -> None:
    upstream.next(fault(action))
    await line.create()
    with pytest.raises(ConnectionClosed) as caught:
        await line.until_end()
    closed = caught.value.sent if code == 1002 else caught.value.rcvd
    assert (closed.code if closed else 1006) == code
    await upstream.until("sockets_open", 0, exactly=True)


async def test_one_lanes_failure_leaves_the_others_running(line: Line, upstream: Upstream) -> None:
    upstream.next(stalling(), fault(Action.FAILED), fault(Action.ERROR))
    await line.create(stream_id="a")
    await upstream.until("stalled", 1)
    await line.create(stream_id="b")
    await line.create(stream_id="c")
    events = await line.until_end(2)
    upstream.release()
    events += await line.until_end()
    assert judge(on("a", events)).text == ANSWER


@pytest.mark.parametrize(
    "odd",
    [
        dialect(unknown_events=True),
        dialect(unknown_fields=True, obfuscation=True),
        dialect(chunking=Chunking.BYTES),
        dialect(chunking=Chunking.RANDOM),
        dialect(chunking=Chunking.BURST),
        dialect(empty_deltas=True),
        dialect(keepalive_s=0.01),
    ],
    ids=["unknown", "fields", "bytes", "fragments", "burst", "empty", "pings"],
)
async def test_an_odd_dialect_is_the_same_answer(line: Line, upstream: Upstream, odd: Plan) -> None:
    upstream.next(Plan(script=Text(ANSWER), dialect=odd.dialect, first_token_s=0.05))
    await line.create(stream_id="a")
    known = [
        event for event in await line.until_end() if event["type"] not in ("ping", "response.mystery.tick")
    ]
    assert judge(on("a", known)).text == ANSWER


async def test_garbage_can_stand_between_two_events(line: Line, upstream: Upstream) -> None:
    upstream.next(fault(Action.GARBAGE))
    await line.create()
    with pytest.raises(json.JSONDecodeError):
        await line.until_end()
    await line.until_end()


async def test_anything_can_be_said_on_an_idle_connection(line: Line, upstream: Upstream) -> None:
    await line.ask()
    await upstream.push('{"type":"response.unheard_of"}')
    assert await line.event() == {"type": "response.unheard_of"}
    await upstream.push(close=1001)
    with pytest.raises(ConnectionClosed) as caught:
        await line.event()
    assert caught.value.rcvd is not None
    assert caught.value.rcvd.code == 1001


async def test_only_idle_connections_end_when_only_those_are_meant(line: Line, upstream: Upstream) -> None:
    upstream.next(stalling())
    async with dialled(upstream) as idle:
        await line.create()
        await upstream.until("stalled", 1)
        upstream.end_connections(Leave.CLOSE, idle_only=True)
        with pytest.raises(ConnectionClosed):
            await idle.event()
    upstream.release()
    assert judge(await line.until_end()).text == ANSWER


async def test_a_client_that_leaves_aborts_what_it_asked_for(upstream: Upstream) -> None:
    upstream.next(*[fault(Action.STALL)] * 2)
    async with dialled(upstream) as line:
        await line.create(stream_id="a")
        await line.create(stream_id="b")
        await upstream.until("stalled", 2)
    counts = await upstream.until("requests_open", 0, exactly=True)
    assert counts.aborts == 2
