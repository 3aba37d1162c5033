"""The Responses API over WebSocket, with lanes and without: chains, limits, renewal, refusals, reading ahead.

Every fault ends in its typed error or in the same turn's answer; two conversations never mix; nothing leaks.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from prometheus_client import REGISTRY
from pytest_django import Settings

from apps.accounts.models import Site, Workspace
from apps.engine.events import HandoffCall, ModelEvent
from apps.engine.ports import ModelUnavailable
from apps.engine.types import ChatMessage
from apps.llm.line import Line
from apps.llm.models import DailySpend, ModelEndpoint
from apps.llm.probe import probe
from apps.llm.records import spec_of
from apps.stores.database import in_database
from tests.fakes.transport.listener import Leave
from tests.fakes.upstream.faults import FAILING, ODD, Action, Fault, Place, Plan, fault, refusal
from tests.fakes.upstream.handle import Upstream
from tests.fakes.upstream.profile import INSTANT, Profile, Upgrade
from tests.fakes.upstream.script import Filler, Text, ToolCall
from tests.support.model_line import (
    BUILTIN,
    LABELS,
    QUICK,
    SAID,
    SAYS_FIRST,
    Heard,
    Talk,
    answers,
    ask,
    asking,
    body_of,
    endpoint,
    opened,
    reloaded,
    trust,
)

pytestmark = pytest.mark.django_db(transaction=True)

# The two variants of the socket.
WAYS = ("sequential", "lanes")
PATIENT = dataclasses.replace(QUICK, first_data_s=20.0, between_data_s=20.0)
EXPIRED = "websocket_connection_limit_reached"


def configured(way: str) -> dict[str, Any]:
    """Fields of an endpoint."""
    return {"provider": "responses_socket", "dialect": "openai" if way == "lanes" else "xai"}


def profile_of(way: str, **fields: Any) -> Profile:
    return INSTANT.but(ws_lanes=way == "lanes", **fields)


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    with Upstream() as server:
        server.always(Plan(script=Text(SAID)))
        yield server


@pytest.fixture
def site() -> Site:
    return Site.objects.create(workspace=Workspace.objects.create(name="Lantern"), name="Lantern")


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def one(way: str, site: Site, upstream: Upstream, settings: Settings, tmp_path: Path) -> ModelEndpoint:
    """The site's endpoint `first`, at `upstream`."""
    trust(settings, tmp_path, upstream)
    upstream.set_profile(profile_of(way))
    return endpoint(site, upstream, "first", 1, **configured(way))


@pytest.fixture
async def line(site: Site, one: ModelEndpoint, upstream: Upstream) -> AsyncIterator[Line]:
    """Closed at the end, after which nothing of it may be left: no connection, no socket, no lane, no task."""
    before = asyncio.all_tasks()
    async with opened(site) as it:
        yield it
    counts = await upstream.until("connections_open", 0, exactly=True)
    assert (counts.sockets_open, counts.requests_open) == (0, 0)
    assert asyncio.all_tasks() <= before | {asyncio.current_task()}


async def test_an_answer_arrives_whole_and_names_its_endpoint_and_usage(line: Line, site: Site) -> None:
    heard = await ask(line, site)
    assert heard.text == SAID
    assert (heard.done.finish, heard.done.endpoint) == ("stop", "first")
    assert heard.done.usage is not None
    assert heard.done.usage.completion_tokens > 5


@pytest.mark.parametrize("way", ["lanes"], indirect=True)
@pytest.mark.parametrize("name", sorted(ODD))
async def test_an_odd_but_good_answer_is_read_to_its_end(
    name: str, line: Line, site: Site, upstream: Upstream
) -> None:
    plan = ODD[name]
    upstream.next(plan if plan.script else msgspec.structs.replace(plan, script=Text(SAID)))
    heard = await ask(line, site)
    assert heard.done.endpoint == "first"
    spoken = {"line_separator_in_text": "one\u2028two\u2029three\u0085four", "tool_call": ""}
    assert heard.text == spoken.get(name, "42." if name.startswith("reasoning") else SAID)


async def test_a_handoff_call_in_pieces_becomes_an_action_with_a_known_team(
    line: Line, site: Site, upstream: Upstream
) -> None:
    wish = '{"reason": "Wants 退货 \\"now\\"", "team": "returns"}'
    upstream.next(Plan(script=ToolCall(arguments=wish, pieces=17, text="One moment.")))
    heard = await ask(line, site)
    assert (heard.text, heard.done.finish) == ("One moment.", "tool_calls")
    assert heard.events[-2] == HandoffCall('Wants 退货 "now"', "Returns")


async def test_the_line_is_open_before_the_first_question_and_stays(
    line: Line, site: Site, upstream: Upstream
) -> None:
    warmed = upstream.counts()
    await ask(line, site)
    await ask(line, site)
    assert (warmed.connections_opened, warmed.tls_handshakes) == (1, 1)
    # A lone socket that is busy gets a second one beside it, off the reply path.
    assert upstream.counts().connections_opened <= 2
    assert [seen.connection for seen in answers(upstream)] == [1, 1]


async def test_the_request_is_the_apis_own(line: Line, site: Site, upstream: Upstream, way: str) -> None:
    await ask(line, site, cache_key="c-7")
    seen = answers(upstream)[-1]
    made = body_of(seen)
    assert (made["store"], made["instructions"], made["max_output_tokens"]) == (False, "Be kind.", 700)
    assert made["tools"][0]["name"] == "handoff"
    assert seen.headers["authorization"] == "Bearer k"
    assert made["type"] == "response.create"
    assert "stream" not in made
    assert made.get("stream_id") == ("lane-1" if way == "lanes" else None)
    assert made.get("prompt_cache_key") == ("c-7" if way == "lanes" else None)


async def test_the_connection_test_of_the_admin_speaks_it_too(one: ModelEndpoint, upstream: Upstream) -> None:
    outcome = await probe(await in_database(spec_of, one))
    assert (outcome.failure, outcome.first_ms is not None) == ("", True)
    await upstream.until("connections_open", 0, exactly=True)


MORE: dict[str, tuple[Plan, str]] = {
    "failed": (fault(Action.FAILED, Place.DATA), "server"),
    "error_for_nobody": (
        Plan(faults=(Fault(action=Action.ERROR, place=Place.DATA, laneless=True),)),
        "server",
    ),
    "misframed": (fault(Action.MISFRAME, Place.DATA), "broken"),
    "garbage": (fault(Action.GARBAGE, Place.DATA), "broken"),
    "restarting": (fault(Action.GOAWAY, Place.HEADERS), "broken"),
}


@pytest.fixture
def second(site: Site, one: ModelEndpoint) -> Iterator[Upstream]:
    """Another endpoint, over plain HTTP."""
    with Upstream(tls=False) as server:
        server.always(Plan(script=Text("From the second.")))
        endpoint(site, server, "second", 2)
        yield server


# A socket knows one silence before the first word and one behind it; the sequential one is worth a sample.
BEFORE = FAILING.keys() - SAYS_FIRST - {"stall_before_first_data"}
BEHIND = SAYS_FIRST - {"stall_mid_stream"}
SAMPLE = {"error_first", "rate_limited", "reset_before_first_data", "reset_mid_stream", "error_mid_stream"}
CASES = [
    *(("lanes", name) for name in sorted(BEFORE | BEHIND)),
    *(("sequential", name) for name in sorted(SAMPLE)),
]


@pytest.mark.parametrize(("way", "name"), [case for case in CASES if case[1] in BEFORE], indirect=["way"])
async def test_a_fault_before_the_first_word_is_noted_and_another_endpoint_answers(
    name: str, site: Site, one: ModelEndpoint, upstream: Upstream, second: Upstream
) -> None:
    async with opened(site) as line:
        upstream.always(FAILING[name])
        heard = await ask(line, site)
    assert (heard.text, heard.done.endpoint) == ("From the second.", "second")
    assert (await reloaded(one)).last_error_kind == LABELS[name]
    await upstream.until("connections_open", 0, exactly=True)
    assert upstream.counts().requests_open == 0


@pytest.mark.parametrize("name", sorted(MORE))
async def test_a_fault_of_sockets_alone_is_no_other(
    name: str, site: Site, one: ModelEndpoint, upstream: Upstream, second: Upstream
) -> None:
    plan, label = MORE[name]
    async with opened(site) as line:
        upstream.always(plan)
        heard = await ask(line, site)
    assert heard.done.endpoint == "second"
    assert (await reloaded(one)).last_error_kind == label
    await upstream.until("connections_open", 0, exactly=True)


@pytest.mark.parametrize(("way", "name"), [case for case in CASES if case[1] in BEHIND], indirect=["way"])
async def test_a_fault_after_the_first_word_ends_the_answer_and_nobody_goes_on(
    name: str, line: Line, site: Site, upstream: Upstream
) -> None:
    # At a pace, so that the words before the fault arrive before it.
    upstream.next(msgspec.structs.replace(FAILING[name], script=Text(SAID), tokens_per_s=50.0))
    heard = Heard()
    with pytest.raises(ModelUnavailable) as caught:
        await line.stream(site.pk, asking(), heard)
    assert (caught.value.reason, caught.value.said) == (LABELS[name], True)
    assert heard.text
    assert SAID.startswith(heard.text)
    upstream.release()
    assert (await ask(line, site)).text == SAID


BREAKS = ("reset_before_headers", "close_before_headers", "reset_before_first_data", "end_without_anything")


@pytest.mark.parametrize("name", BREAKS)
async def test_a_connection_that_breaks_before_the_first_word_is_mended_in_the_same_turn(
    name: str, line: Line, site: Site, one: ModelEndpoint, upstream: Upstream
) -> None:
    upstream.next(FAILING[name])
    assert (await ask(line, site)).text == SAID
    assert (await reloaded(one)).last_error_kind == ""


@pytest.mark.parametrize("way", ["lanes"], indirect=True)
async def test_a_response_that_is_only_accepted_has_not_begun(
    line: Line, site: Site, one: ModelEndpoint, upstream: Upstream
) -> None:
    upstream.next(Plan(faults=(Fault(action=Action.STALL, after_tokens=0),)))
    assert (await ask(line, site)).text == BUILTIN
    assert (await reloaded(one)).last_error_kind == "stalled_first_data"


@pytest.mark.parametrize("way", ["lanes"], indirect=True)
async def test_the_whole_turn_has_a_deadline_that_progress_does_not_move(
    site: Site, one: ModelEndpoint, upstream: Upstream
) -> None:
    upstream.next(Plan(script=Filler(10_000), tokens_per_s=50.0))
    async with opened(site, dataclasses.replace(QUICK, turn_s=1.5, first_data_s=20.0)) as line:
        with pytest.raises(ModelUnavailable) as caught:
            await ask(line, site)
    assert caught.value.reason == "stalled_turn"


async def test_an_endpoint_that_refuses_connections_is_found_again(
    site: Site, one: ModelEndpoint, upstream: Upstream
) -> None:
    upstream.refuse()
    async with opened(site) as line:
        assert (await ask(line, site)).text == BUILTIN
        assert (await reloaded(one)).last_error_kind == "connect"
        upstream.accept()
        assert (await ask(line, site)).text == SAID


async def test_an_untrusted_certificate_is_a_tls_failure(
    site: Site, one: ModelEndpoint, settings: Settings, tmp_path: Path
) -> None:
    with Upstream() as stranger:
        trust(settings, tmp_path / "..", stranger)
        async with opened(site) as line:
            assert (await ask(line, site)).text == BUILTIN
    assert (await reloaded(one)).last_error_kind == "tls"


async def test_a_wrong_key_asks_for_an_administrator(
    site: Site, one: ModelEndpoint, upstream: Upstream, way: str
) -> None:
    upstream.set_profile(profile_of(way, api_keys=("right",)))
    async with opened(site) as line:
        assert (await ask(line, site)).text == BUILTIN
    assert (await reloaded(one)).needs_admin


async def test_from_the_second_turn_on_only_what_is_new_is_sent(
    line: Line, site: Site, upstream: Upstream
) -> None:
    upstream.always(None)
    talk = Talk(line, site, "c-1")
    texts = [
        (await talk.ask("My order is 1042: in_transit", "Boots may be returned.")).text,
        (await talk.ask("Where is order 1042?")).text,
        (await talk.ask("And boots?", "Boots: thirty days.")).text,
        (await talk.ask("Lamps?", "Lamps: a year.")).text,
    ]
    seen = answers(upstream)
    # Facts, article and question; then taking the article back, or another in its place.
    assert [request.input_items for request in seen] == [3, 2, 2, 2]
    assert [bool(request.previous_response_id) for request in seen] == [False, True, True, True]
    assert len({request.connection for request in seen}) == 1
    assert "1042: in_transit" in texts[1]
    cached = [request.cached_tokens for request in seen]
    assert cached == sorted(set(cached))


async def test_a_change_of_policy_or_of_what_was_said_sends_everything(
    line: Line, site: Site, upstream: Upstream
) -> None:
    talk = Talk(line, site, "c-1")
    await talk.ask("one")
    talk.policy = "Be brief."
    await talk.ask("two")
    await talk.ask("three")
    talk.said[0] = ChatMessage("user", "One, edited")
    await talk.ask("four")
    assert [request.input_items for request in answers(upstream)] == [2, 4, 1, 8]


async def test_continuing_can_be_switched_off(site: Site, one: ModelEndpoint, upstream: Upstream) -> None:
    await in_database(ModelEndpoint.objects.update, continue_chains=False)
    async with opened(site) as line:
        talk = Talk(line, site, "c-1")
        await talk.ask("one")
        await talk.ask("two")
    assert [request.input_items for request in answers(upstream)] == [2, 4]


async def test_an_answer_that_called_for_a_human_is_not_continued(
    line: Line, site: Site, upstream: Upstream
) -> None:
    upstream.next(Plan(script=ToolCall(text="One moment.")))
    talk = Talk(line, site, "c-1")
    await talk.ask("human")
    await talk.ask("two")
    assert [request.previous_response_id for request in answers(upstream)] == ["", ""]


@pytest.mark.parametrize(("status", "code"), [(400, "previous_response_not_found"), (404, "not_found")])
async def test_a_lost_chain_is_sent_again_in_full_once_and_is_no_failure(
    status: int, code: str, line: Line, site: Site, one: ModelEndpoint, upstream: Upstream
) -> None:
    talk = Talk(line, site, "c-1")
    await talk.ask("one")
    for question in ("two", "three", "four", "five"):  # more than send an endpoint to rest
        upstream.next(refusal(status, code))
        assert (await talk.ask(question)).text == SAID
    assert (await reloaded(one)).last_error_kind == ""
    seen = answers(upstream)
    assert [request.ended for request in seen[1:3]] == ["status", "finished"]
    assert [request.input_items for request in seen] == [2, 1, 4, 1, 6, 1, 8, 1, 10]


async def test_a_request_that_is_refused_in_full_is_not_repeated(
    line: Line, site: Site, one: ModelEndpoint, upstream: Upstream
) -> None:
    talk = Talk(line, site, "c-1")
    await talk.ask("one")
    upstream.next(*[refusal(400, "previous_response_not_found")] * 2)
    assert (await talk.ask("two")).text == BUILTIN
    assert (await reloaded(one)).last_error_kind == "refused"
    assert [bool(request.previous_response_id) for request in answers(upstream)] == [False, True, False]


async def test_conversations_side_by_side_never_mix(
    line: Line, site: Site, upstream: Upstream, way: str
) -> None:
    names = [f"talk{number}" for number in range(8)]
    for name in names:
        upstream.next(
            *(
                Plan(
                    script=Text(f"{name} answer {turn} " * 6),
                    match=f"{name} turn {turn}?",
                    tokens_per_s=400.0,
                )
                for turn in range(3)
            )
        )
    talks = {name: Talk(line, site, name) for name in names}
    for turn in range(3):
        heard = await asyncio.gather(*(talks[name].ask(f"{name} turn {turn}?") for name in names))
        assert [each.text for each in heard] == [f"{name} answer {turn} " * 6 for name in names]
    counts = upstream.counts()
    assert counts.creates_queued == 0
    if way == "lanes":
        assert counts.sockets_opened == 1
        assert [request.input_items for request in answers(upstream)] == [2] * 8 + [1] * 16


@pytest.mark.parametrize("way", ["lanes"], indirect=True)
async def test_a_seventeenth_answer_gets_a_socket_of_its_own_instead_of_waiting(
    site: Site, one: ModelEndpoint, upstream: Upstream
) -> None:
    upstream.next(*[fault(Action.STALL, Place.DATA)] * 17)
    async with opened(site, PATIENT) as line:
        turns = [asyncio.create_task(ask(line, site, cache_key=str(number))) for number in range(17)]
        counts = await upstream.until("stalled", 17)
        assert (counts.creates_queued, counts.sockets_open) == (0, 2)
        upstream.release()
        await asyncio.gather(*turns)


@pytest.mark.parametrize("way", ["lanes"], indirect=True)
async def test_names_are_leased_and_never_run_out(line: Line, site: Site, upstream: Upstream) -> None:
    for number in range(40):
        assert (await ask(line, site, cache_key=str(number))).text == SAID
    assert len({request.stream_id for request in answers(upstream)}) == 32
    counts = await upstream.until(
        "sockets_opened", 2
    )  # opened beside, when the first one's names had run out
    assert counts.creates_refused == 0


@pytest.mark.parametrize("way", ["lanes"], indirect=True)
async def test_one_conversations_failure_leaves_the_others_talking(
    site: Site, one: ModelEndpoint, upstream: Upstream
) -> None:
    upstream.next(msgspec.structs.replace(fault(Action.STALL), script=Text(SAID)))
    async with opened(site, PATIENT) as line:
        running = asyncio.create_task(ask(line, site, cache_key="a"))
        await upstream.until("stalled", 1)
        upstream.next(refusal(500, "server_error"), fault(Action.FAILED, Place.DATA))
        await ask(line, site, cache_key="b")
        await ask(line, site, cache_key="c")
        assert (await ask(line, site, cache_key="d")).text == SAID
        upstream.release()
        assert (await running).text == SAID
        assert upstream.counts().sockets_opened == 1


@pytest.mark.parametrize("way", ["lanes"], indirect=True)
async def test_when_a_socket_breaks_only_those_who_had_begun_to_hear_lose_their_answer(
    site: Site, one: ModelEndpoint, upstream: Upstream
) -> None:
    upstream.next(fault(Action.STALL), fault(Action.STALL, Place.DATA))
    async with opened(site, PATIENT) as line:
        heard = Heard()
        hearing = asyncio.create_task(line.stream(site.pk, asking(cache_key="a"), heard))
        await heard.begun()
        waiting = asyncio.create_task(ask(line, site, cache_key="b"))
        await upstream.until("stalled", 2)
        upstream.end_connections(Leave.RESET, idle_only=False)
        with pytest.raises(ModelUnavailable):
            await hearing
        assert (await waiting).text == SAID


@pytest.mark.parametrize("way", ["lanes"], indirect=True)
async def test_a_server_that_knows_no_lanes_is_learned_in_the_same_turn(
    site: Site, one: ModelEndpoint, upstream: Upstream
) -> None:
    upstream.set_profile(profile_of("sequential"))
    async with opened(site) as line:
        talk = Talk(line, site, "c-1")
        assert (await talk.ask("one")).text == SAID
        assert (await talk.ask("two")).text == SAID
    assert (await reloaded(one)).last_error_kind == ""
    assert [request.input_items for request in answers(upstream)] == [2, 1]
    assert upstream.counts().creates_refused == 1


async def test_a_full_endpoint_is_passed_over(site: Site, one: ModelEndpoint, upstream: Upstream) -> None:
    await in_database(ModelEndpoint.objects.update, max_concurrent=1)
    upstream.next(fault(Action.STALL, Place.DATA))
    async with opened(site, PATIENT) as line:
        waiting = asyncio.create_task(ask(line, site))
        await upstream.until("stalled", 1)
        assert (await ask(line, site)).text == BUILTIN
        upstream.release()
        assert (await waiting).done.endpoint == "first"


async def test_the_sixty_first_minute_of_an_idle_socket_harms_nobody(
    line: Line, site: Site, one: ModelEndpoint, upstream: Upstream
) -> None:
    talk = Talk(line, site, "c-1")
    await talk.ask("one")
    expired_opened = upstream.counts().sockets_opened
    upstream.expire()
    await upstream.until("sockets_opened", expired_opened + 1)  # warm again before the next question
    assert (await talk.ask("two")).text == SAID
    assert (await talk.ask("three")).text == SAID
    assert [request.input_items for request in answers(upstream)] == [2, 4, 1]
    assert (await reloaded(one)).last_error_kind == ""


async def test_the_sixty_first_minute_before_the_first_word_costs_a_resend(
    site: Site, one: ModelEndpoint, upstream: Upstream
) -> None:
    upstream.next(Plan(faults=(Fault(action=Action.STALL, after_tokens=0),)))
    async with opened(site, PATIENT) as line:
        waiting = asyncio.create_task(ask(line, site, cache_key="a"))
        await upstream.until("stalled", 1)
        upstream.expire()
        assert (await waiting).text == SAID
    assert (await reloaded(one)).last_error_kind == ""


async def test_the_sixty_first_minute_within_an_answer_ends_it_visibly(
    site: Site, one: ModelEndpoint, upstream: Upstream
) -> None:
    upstream.next(fault(Action.STALL))
    heard = Heard()
    async with opened(site, PATIENT) as line:
        hearing = asyncio.create_task(line.stream(site.pk, asking(), heard))
        await heard.begun()
        upstream.expire()
        with pytest.raises(ModelUnavailable) as caught:
            await hearing
        assert (caught.value.reason, caught.value.said) == ("broken", True)
        assert (await ask(line, site)).text == SAID


async def test_the_limit_may_also_be_told_as_the_answer_to_a_question(
    line: Line, site: Site, one: ModelEndpoint, upstream: Upstream
) -> None:
    upstream.next(
        Plan(faults=(Fault(action=Action.ERROR, place=Place.DATA, status=400, code=EXPIRED, laneless=True),))
    )
    assert (await ask(line, site)).text == SAID
    assert (await reloaded(one)).last_error_kind == ""


@pytest.mark.parametrize("way", ["lanes"], indirect=True)
async def test_a_socket_is_renewed_in_time_and_its_last_answer_is_heard_out(
    site: Site, one: ModelEndpoint, upstream: Upstream
) -> None:
    upstream.next(msgspec.structs.replace(fault(Action.STALL), script=Text(SAID)))
    async with opened(site, dataclasses.replace(PATIENT, socket_life_s=1.0)) as line:
        running = asyncio.create_task(ask(line, site, cache_key="a"))
        await upstream.until("stalled", 1)
        await upstream.until(
            "sockets_opened", 3
        )  # it goes on being renewed, so the first one has been retired
        assert (await ask(line, site, cache_key="b")).text == SAID
        assert [request.connection for request in answers(upstream)][-1] != answers(upstream)[0].connection
        upstream.release()
        assert (await running).text == SAID
    assert upstream.counts().sockets_expired == 0


IDLE_NEWS: dict[str, tuple[str, int]] = {
    "limit": ('{"type":"error","status":400,"error":{"code":"websocket_connection_limit_reached"}}', 0),
    "error": ('{"type":"error","status":500,"error":{"code":"server_error","message":"oh"}}', 0),
    "error_of_a_lane": ('{"type":"error","status":500,"stream_id":"lane-1","error":{"code":"x"}}', 0),
    "unknown": ('{"type":"response.unheard_of","stream_id":"lane-77"}', 0),
    "straggler": ('{"type":"response.output_text.delta","stream_id":"lane-1","delta":"boo"}', 0),
    "garbage": ("}", 0),
    "closed": ("", 1001),
    "closed_without_a_code": ("", 1000),
}


@pytest.mark.parametrize("name", IDLE_NEWS)
async def test_whatever_is_said_on_an_idle_socket_harms_nobody(
    name: str, line: Line, site: Site, one: ModelEndpoint, upstream: Upstream
) -> None:
    talk = Talk(line, site, "c-1")
    await talk.ask("one")
    text, code = IDLE_NEWS[name]
    await upstream.push(text, close=code)
    assert (await talk.ask("two")).text == SAID
    assert (await talk.ask("three")).text == SAID
    assert (await reloaded(one)).last_error_kind == ""


@pytest.mark.parametrize("how", [Leave.CLOSE, Leave.RESET])
async def test_a_socket_that_ends_while_idle_costs_no_answer(
    how: Leave, line: Line, site: Site, one: ModelEndpoint, upstream: Upstream
) -> None:
    await ask(line, site)
    upstream.end_connections(how)
    assert (await ask(line, site)).text == SAID
    assert (await reloaded(one)).last_error_kind == ""


@pytest.mark.parametrize("status", [403, 404, 426, 429])
async def test_a_refused_upgrade_leaves_http_for_a_while(
    status: int, site: Site, one: ModelEndpoint, upstream: Upstream, way: str
) -> None:
    upstream.set_profile(profile_of(way, ws_refusal=status))
    async with opened(site) as line:
        for _ in range(3):
            assert (await ask(line, site)).text == SAID
        assert {request.method for request in answers(upstream)} == {"POST"}
        assert upstream.counts().sockets_refused == 1
    assert (await reloaded(one)).last_error_kind == ""
    await upstream.until("connections_open", 0, exactly=True)


@pytest.mark.parametrize("upgrade", [Upgrade.MANGLE, Upgrade.DIE])
async def test_where_sockets_do_not_work_http_answers_in_the_same_turn(
    upgrade: Upgrade, site: Site, one: ModelEndpoint, upstream: Upstream, way: str
) -> None:
    upstream.set_profile(profile_of(way, ws_upgrade=upgrade))
    async with opened(site) as line:
        for _ in range(3):
            assert (await ask(line, site)).text == SAID
        assert {request.method for request in answers(upstream)} == {"POST"}
        assert upstream.counts().sockets_opened <= 3
    assert (await reloaded(one)).last_error_kind == ""
    await upstream.until("connections_open", 0, exactly=True)


async def test_an_upgrade_nobody_answers_is_a_connection_that_did_not_come_about(
    site: Site, one: ModelEndpoint, upstream: Upstream, way: str
) -> None:
    upstream.set_profile(profile_of(way, ws_upgrade=Upgrade.STALL))
    async with opened(site, dataclasses.replace(QUICK, connect_s=0.3)) as line:
        assert (await ask(line, site)).text == BUILTIN
    assert (await reloaded(one)).last_error_kind == "stalled_connect"
    await upstream.until("connections_open", 0, exactly=True)


@pytest.mark.parametrize("way", ["lanes"], indirect=True)
async def test_a_socket_that_works_goes_on_while_no_second_one_is_to_be_had(
    site: Site, one: ModelEndpoint, upstream: Upstream
) -> None:
    async with opened(site, PATIENT) as line:
        upstream.set_profile(profile_of("lanes", ws_refusal=429, ws_retry_after="30"))
        upstream.next(*[fault(Action.STALL, Place.DATA)] * 16)
        turns = [asyncio.create_task(ask(line, site, cache_key=str(number))) for number in range(16)]
        await upstream.until("stalled", 16)
        assert (await ask(line, site, cache_key="16")).text == SAID
        assert answers(upstream)[-1].method == "POST"
        upstream.release()
        await asyncio.gather(*turns)
        assert (await ask(line, site, cache_key="0")).text == SAID
        assert answers(upstream)[-1].method == "WS"


@pytest.mark.parametrize("way", ["lanes"], indirect=True)
async def test_cancelling_discards_the_lanes_events_and_nobody_elses(
    site: Site, one: ModelEndpoint, upstream: Upstream
) -> None:
    upstream.next(Plan(script=Text("word " * 30), tokens_per_s=60.0))
    upstream.next(msgspec.structs.replace(fault(Action.STALL), script=Text(SAID)))
    heard = Heard()
    async with opened(site, PATIENT) as line:
        turn = asyncio.create_task(line.stream(site.pk, asking(cache_key="a"), heard))
        await heard.begun()
        other = asyncio.create_task(ask(line, site, cache_key="b"))
        await upstream.until("stalled", 1)
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        said = heard.text
        assert (await ask(line, site, cache_key="a")).text == SAID  # on another lane
        await upstream.until("finished", 2)  # the answer above, and the one nobody heard
        upstream.release()
        assert (await other).text == SAID
        assert heard.text == said
        assert upstream.counts().sockets_opened == 1
        assert upstream.counts().creates_queued == 0
        assert (await ask(line, site, cache_key="c")).text == SAID
        await in_database(lambda: None)
    spent = await in_database(DailySpend.objects.get)
    assert spent.completion_tokens > 0


@pytest.mark.parametrize("way", ["sequential"], indirect=True)
async def test_cancelling_closes_a_lone_connection_which_stops_the_model(
    line: Line, site: Site, upstream: Upstream
) -> None:
    upstream.next(Plan(script=Filler(10_000), tokens_per_s=50.0))
    heard = Heard()
    turn = asyncio.create_task(line.stream(site.pk, asking(), heard))
    await heard.begun()
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    said = heard.text
    await upstream.until("aborts", 1)
    assert (await ask(line, site)).text == SAID
    assert heard.text == said


async def test_cancelled_turns_give_their_places_back(
    site: Site, one: ModelEndpoint, upstream: Upstream
) -> None:
    await in_database(ModelEndpoint.objects.update, max_concurrent=2)
    async with opened(site, PATIENT) as line:
        for places in (Place.HEADERS, Place.DATA, Place.STREAM) * 2:
            upstream.next(*[fault(Action.STALL, places)] * 2)
            turns = [asyncio.create_task(ask(line, site)) for _ in range(2)]
            await upstream.until("stalled", 2)
            for turn in turns:
                turn.cancel()
            await asyncio.gather(*turns, return_exceptions=True)
            upstream.release()
            await upstream.until("requests_open", 0, exactly=True)
        heard = await asyncio.gather(*(ask(line, site) for _ in range(2)))
    assert {each.done.endpoint for each in heard} == {"first"}


async def test_what_the_receiver_raises_ends_the_turn_and_comes_through(
    line: Line, site: Site, upstream: Upstream
) -> None:
    upstream.next(Plan(script=Filler(40), tokens_per_s=200.0))

    async def receiver(_: ModelEvent) -> None:
        raise LookupError("superseded")

    with pytest.raises(LookupError):
        await line.stream(site.pk, asking(), receiver)
    assert (await ask(line, site)).text == SAID


async def test_closing_the_line_ends_also_what_still_runs(
    site: Site, one: ModelEndpoint, upstream: Upstream
) -> None:
    upstream.next(fault(Action.STALL))
    heard = Heard()
    async with opened(site, PATIENT) as line:
        turn = asyncio.create_task(line.stream(site.pk, asking(), heard))
        await heard.begun()
    with pytest.raises(ModelUnavailable):
        await turn
    await upstream.until("connections_open", 0, exactly=True)


def prepared(outcome: str) -> float:
    return REGISTRY.get_sample_value("chatsvc_llm_prepared_total", {"outcome": outcome}) or 0.0


@pytest.mark.parametrize("way", ["lanes"], indirect=True)
async def test_a_prompt_read_ahead_is_continued_by_its_question(
    site: Site, one: ModelEndpoint, upstream: Upstream
) -> None:
    await in_database(ModelEndpoint.objects.update, prepare_prompts=True)
    used, wasted = prepared("used"), prepared("wasted")
    async with opened(site) as line:
        talk = Talk(line, site, "c-1")
        await talk.prepare()
        await talk.prepare()  # the server knows all of it already
        await talk.ask("one", "Boots: thirty days.")
        await talk.prepare()  # nor is there anything new behind an answer
        await talk.ask("two")
        await Talk(line, site, "c-2").prepare()
        other = Talk(line, site, "c-2")
        other.policy = "Be brief."
        await other.ask("one")
    seen = answers(upstream)
    assert [(request.generate, request.input_items) for request in seen] == [
        (False, 1), (True, 2), (True, 2), (False, 1), (True, 2),
    ]  # fmt: skip
    assert seen[1].cached_tokens > 0
    assert (prepared("used") - used, prepared("wasted") - wasted) == (1, 1)


@pytest.mark.parametrize("way", ["sequential"], indirect=True)
async def test_reading_ahead_works_without_lanes_too(
    site: Site, one: ModelEndpoint, upstream: Upstream
) -> None:
    await in_database(ModelEndpoint.objects.update, prepare_prompts=True)
    async with opened(site) as line:
        talk = Talk(line, site, "c-1")
        await talk.prepare()
        await talk.ask("one")
    assert [(request.generate, request.input_items) for request in answers(upstream)] == [
        (False, 1),
        (True, 1),
    ]


async def test_nothing_is_read_ahead_unless_it_is_switched_on(
    line: Line, site: Site, upstream: Upstream
) -> None:
    await Talk(line, site, "c-1").prepare()
    assert answers(upstream) == []


@pytest.mark.parametrize("plan", [refusal(500, "server_error"), fault(Action.RESET, Place.DATA)])
async def test_reading_ahead_that_fails_is_nobodys_failure(
    plan: Plan, site: Site, one: ModelEndpoint, upstream: Upstream
) -> None:
    await in_database(ModelEndpoint.objects.update, prepare_prompts=True)
    async with opened(site) as line:
        talk = Talk(line, site, "c-1")
        upstream.next(plan)
        await talk.prepare()
        assert (await talk.ask("one")).text == SAID
    assert (await reloaded(one)).last_error_kind == ""
