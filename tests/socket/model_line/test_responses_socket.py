"""The Responses API over WebSocket, with lanes and without: chains, limits, renewal, refusals, reading ahead.

Every fault ends in its typed error or in the same turn's answer; two conversations never mix; nothing leaks.
"""

from __future__ import annotations

import asyncio
import dataclasses

import msgspec
import pytest

from apps.accounts.models import Site
from apps.engine.ports import ModelUnavailable
from apps.llm.line import Line
from apps.llm.models import DailySpend, ModelEndpoint
from apps.stores.database import in_database
from tests.fakes.transport.listener import Leave
from tests.fakes.upstream.faults import FAILING, Action, Fault, Place, Plan, fault, refusal
from tests.fakes.upstream.handle import Upstream
from tests.fakes.upstream.profile import Upgrade
from tests.fakes.upstream.script import Text
from tests.socket.model_line.apis import SOCKETS, of, profile_of
from tests.support.metrics import counted_here
from tests.support.model_line import (
    BUILTIN,
    PATIENT,
    SAID,
    Heard,
    Talk,
    answers,
    ask,
    asking,
    body_of,
    opened,
    reloaded,
)

pytestmark = pytest.mark.django_db(transaction=True)

EXPIRED = "websocket_connection_limit_reached"


@pytest.fixture(params=SOCKETS)
def api(request: pytest.FixtureRequest) -> str:
    return str(request.param)


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


async def test_the_request_is_the_apis_own(line: Line, site: Site, upstream: Upstream, api: str) -> None:
    await ask(line, site, cache_key="c-7")
    seen = answers(upstream)[-1]
    made = body_of(seen)
    assert (made["store"], made["instructions"], made["max_output_tokens"]) == (False, "Be kind.", 700)
    assert made["tools"][0]["name"] == "handoff"
    assert seen.headers["authorization"] == "Bearer k"
    assert made["type"] == "response.create"
    assert "stream" not in made
    assert made.get("stream_id") == ("lane-1" if api == "lanes" else None)
    assert made.get("prompt_cache_key") == ("c-7" if api == "lanes" else None)


MORE: dict[str, tuple[Plan, str]] = {
    "error_for_nobody": (
        Plan(faults=(Fault(action=Action.ERROR, place=Place.DATA, laneless=True),)),
        "server",
    ),
    "misframed": (fault(Action.MISFRAME, Place.DATA), "broken"),
    "garbage": (fault(Action.GARBAGE, Place.DATA), "broken"),
    "restarting": (fault(Action.GOAWAY, Place.HEADERS), "broken"),
}


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


BREAKS = ("reset_before_headers", "close_before_headers", "reset_before_first_data", "end_without_anything")


@pytest.mark.parametrize("name", BREAKS)
async def test_a_connection_that_breaks_before_the_first_word_is_mended_in_the_same_turn(
    name: str, line: Line, site: Site, one: ModelEndpoint, upstream: Upstream
) -> None:
    upstream.next(FAILING[name])
    assert (await ask(line, site)).text == SAID
    assert (await reloaded(one)).last_error_kind == ""


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


async def test_conversations_side_by_side_never_mix(
    line: Line, site: Site, upstream: Upstream, api: str
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
    if api == "lanes":
        assert counts.sockets_opened == 1
        assert [request.input_items for request in answers(upstream)] == [2] * 8 + [1] * 16


@of("lanes")
async def test_a_seventeenth_answer_gets_a_socket_of_its_own_instead_of_waiting(
    site: Site, one: ModelEndpoint, upstream: Upstream
) -> None:
    upstream.next(*[fault(Action.STALL, Place.DATA)] * 17)
    async with opened(site) as line:
        turns = [asyncio.create_task(ask(line, site, cache_key=str(number))) for number in range(17)]
        counts = await upstream.until("stalled", 17)
        assert (counts.creates_queued, counts.sockets_open) == (0, 2)
        upstream.release()
        await asyncio.gather(*turns)


@of("lanes")
async def test_names_are_leased_and_never_run_out(line: Line, site: Site, upstream: Upstream) -> None:
    for number in range(40):
        assert (await ask(line, site, cache_key=str(number))).text == SAID
    assert len({request.stream_id for request in answers(upstream)}) == 32
    counts = await upstream.until(
        "sockets_opened", 2
    )  # opened beside, when the first one's names had run out
    assert counts.creates_refused == 0


@of("lanes")
async def test_one_conversations_failure_leaves_the_others_talking(
    site: Site, one: ModelEndpoint, upstream: Upstream
) -> None:
    upstream.next(msgspec.structs.replace(fault(Action.STALL), script=Text(SAID)))
    async with opened(site) as line:
        running = asyncio.create_task(ask(line, site, cache_key="a"))
        await upstream.until("stalled", 1)
        upstream.next(refusal(500, "server_error"), fault(Action.FAILED, Place.DATA))
        await ask(line, site, cache_key="b")
        await ask(line, site, cache_key="c")
        assert (await ask(line, site, cache_key="d")).text == SAID
        upstream.release()
        assert (await running).text == SAID
        assert upstream.counts().sockets_opened == 1


@of("lanes")
async def test_when_a_socket_breaks_only_those_who_had_begun_to_hear_lose_their_answer(
    site: Site, one: ModelEndpoint, upstream: Upstream
) -> None:
    upstream.next(fault(Action.STALL), fault(Action.STALL, Place.DATA))
    async with opened(site) as line:
        heard = Heard()
        hearing = asyncio.create_task(line.stream(site.pk, asking(cache_key="a"), heard))
        await heard.begun()
        waiting = asyncio.create_task(ask(line, site, cache_key="b"))
        await upstream.until("stalled", 2)
        upstream.end_connections(Leave.RESET, idle_only=False)
        with pytest.raises(ModelUnavailable):
            await hearing
        assert (await waiting).text == SAID


@of("lanes")
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
    async with opened(site) as line:
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
    async with opened(site) as line:
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


@of("lanes")
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
    status: int, site: Site, one: ModelEndpoint, upstream: Upstream, api: str
) -> None:
    upstream.set_profile(profile_of(api, ws_refusal=status))
    async with opened(site) as line:
        for _ in range(3):
            assert (await ask(line, site)).text == SAID
        assert {request.method for request in answers(upstream)} == {"POST"}
        assert upstream.counts().sockets_refused == 1
    assert (await reloaded(one)).last_error_kind == ""
    await upstream.until("connections_open", 0, exactly=True)


@pytest.mark.parametrize("upgrade", [Upgrade.MANGLE, Upgrade.DIE])
async def test_where_sockets_do_not_work_http_answers_in_the_same_turn(
    upgrade: Upgrade, site: Site, one: ModelEndpoint, upstream: Upstream, api: str
) -> None:
    upstream.set_profile(profile_of(api, ws_upgrade=upgrade))
    async with opened(site) as line:
        for _ in range(3):
            assert (await ask(line, site)).text == SAID
        assert {request.method for request in answers(upstream)} == {"POST"}
        assert upstream.counts().sockets_opened <= 3
    assert (await reloaded(one)).last_error_kind == ""
    await upstream.until("connections_open", 0, exactly=True)


async def test_an_upgrade_nobody_answers_is_a_connection_that_did_not_come_about(
    site: Site, one: ModelEndpoint, upstream: Upstream, api: str
) -> None:
    upstream.set_profile(profile_of(api, ws_upgrade=Upgrade.STALL))
    async with opened(site, dataclasses.replace(PATIENT, connect_s=0.3)) as line:
        assert (await ask(line, site)).text == BUILTIN
    assert (await reloaded(one)).last_error_kind == "stalled_connect"
    await upstream.until("connections_open", 0, exactly=True)


@of("lanes")
async def test_a_socket_that_works_goes_on_while_no_second_one_is_to_be_had(
    site: Site, one: ModelEndpoint, upstream: Upstream
) -> None:
    async with opened(site) as line:
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


@of("lanes")
async def test_cancelling_discards_the_lanes_events_and_nobody_elses(
    site: Site, one: ModelEndpoint, upstream: Upstream
) -> None:
    upstream.next(Plan(script=Text("word " * 30), tokens_per_s=60.0))
    upstream.next(msgspec.structs.replace(fault(Action.STALL), script=Text(SAID)))
    heard = Heard()
    async with opened(site) as line:
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


async def test_closing_the_line_ends_also_what_still_runs(
    site: Site, one: ModelEndpoint, upstream: Upstream
) -> None:
    upstream.next(fault(Action.STALL))
    heard = Heard()
    async with opened(site) as line:
        turn = asyncio.create_task(line.stream(site.pk, asking(), heard))
        await heard.begun()
    with pytest.raises(ModelUnavailable):
        await turn
    await upstream.until("connections_open", 0, exactly=True)


def prepared(outcome: str) -> float:
    return counted_here("chatsvc_llm_prepared_total", outcome=outcome)


@of("lanes")
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


@of("sequential")
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
