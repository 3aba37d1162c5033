"""What holds for every API that an endpoint may speak: answers, faults, deadlines, cancelling, and no leak."""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path

import msgspec
import pytest
from pytest_django import Settings

from apps.accounts.models import Site
from apps.engine.events import HandoffCall, ModelEvent
from apps.engine.ports import ModelUnavailable
from apps.llm.deadlines import Deadlines
from apps.llm.line import Line
from apps.llm.models import DailySpend, ModelEndpoint
from apps.llm.probe import probe
from apps.llm.records import spec_of
from apps.stores.database import in_database
from tests.fakes.upstream.faults import FAILING, ODD, Action, Fault, Place, Plan, fault
from tests.fakes.upstream.handle import Upstream
from tests.fakes.upstream.script import Filler, Text, ToolCall
from tests.socket.model_line.apis import FIELDS, SOCKETS, of, profile_of
from tests.support.model_line import (
    BUILTIN,
    LABELS,
    PATIENT,
    QUICK,
    SAID,
    SAYS_FIRST,
    Heard,
    answers,
    ask,
    asking,
    opened,
    reloaded,
    trust,
)

pytestmark = pytest.mark.django_db(transaction=True)

# Streams over HTTP are read by the same code, and so are sockets: of one each a sample will do.
WHOLE, SAMPLED = ("chat", "lanes"), ("responses", "sequential")
SAMPLE = {
    *("error_first", "rate_limited", "unauthorized", "reset_before_first_data"),
    *("reset_mid_stream", "error_mid_stream", "end_mid_stream", "end_without_finish_and_done"),
}
FAULTS = [(api, name) for api in WHOLE for name in sorted(FAILING)]
FAULTS += [(api, name) for api in SAMPLED for name in sorted(SAMPLE)]
# A socket knows one silence before the first word and one behind it.
FAULTS.remove(("lanes", "stall_before_first_data"))
FAULTS.remove(("lanes", "stall_mid_stream"))


def waits_for(fault: str) -> Deadlines:
    return QUICK if LABELS[fault].startswith("stalled") else PATIENT


def with_each(cases: list[tuple[str, str]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("api", "name"), cases, indirect=["api"])


@of(*FIELDS)
async def test_an_answer_arrives_whole_and_names_its_endpoint_and_usage(line: Line, site: Site) -> None:
    heard = await ask(line, site)
    assert heard.text == SAID
    assert (heard.done.finish, heard.done.endpoint) == ("stop", "first")
    assert heard.done.usage is not None
    assert heard.done.usage.completion_tokens > 5


@with_each([(api, name) for api in ("chat", "responses", "lanes") for name in sorted(ODD)])
async def test_an_odd_but_good_answer_is_read_to_its_end(
    name: str, line: Line, site: Site, upstream: Upstream
) -> None:
    plan = ODD[name]
    upstream.next(plan if plan.script else msgspec.structs.replace(plan, script=Text(SAID)))
    heard = await ask(line, site)
    assert heard.done.endpoint == "first"
    spoken = {"line_separator_in_text": "one\u2028two\u2029three\u0085four", "tool_call": ""}
    assert heard.text == spoken.get(name, "42." if name.startswith("reasoning") else SAID)


@of(*FIELDS)
async def test_a_handoff_call_in_pieces_becomes_an_action_with_a_known_team(
    line: Line, site: Site, upstream: Upstream
) -> None:
    wish = '{"reason": "Wants 退货 \\"now\\"", "team": "returns"}'
    upstream.next(Plan(script=ToolCall(arguments=wish, pieces=17, text="One moment.")))
    upstream.next(Plan(script=ToolCall(arguments='{"reason": "x", "team": "Nobody"}')))
    upstream.next(Plan(script=ToolCall(arguments='{"reason": "cut')))
    heard = [await ask(line, site) for _ in range(3)]
    assert (heard[0].text, heard[0].done.finish) == ("One moment.", "tool_calls")
    assert [each.events[-2] for each in heard] == [
        HandoffCall('Wants 退货 "now"', "Returns"), HandoffCall("x", ""), HandoffCall("", ""),
    ]  # fmt: skip


@of(*FIELDS)
async def test_the_connection_test_of_the_admin_speaks_it_too(one: ModelEndpoint, upstream: Upstream) -> None:
    outcome = await probe(await in_database(spec_of, one))
    assert (outcome.failure, outcome.first_ms is not None) == ("", True)
    await upstream.until("connections_open", 0, exactly=True)


def test_every_fault_of_the_fake_has_its_expected_name() -> None:
    assert LABELS.keys() == FAILING.keys()


@with_each([case for case in FAULTS if case[1] not in SAYS_FIRST])
async def test_a_fault_before_the_first_word_is_noted_and_another_endpoint_answers(
    name: str, site: Site, one: ModelEndpoint, upstream: Upstream, second: Upstream
) -> None:
    async with opened(site, waits_for(name)) as line:
        upstream.always(FAILING[name])
        heard = await ask(line, site)
    assert (heard.text, heard.done.endpoint) == ("From the second.", "second")
    assert (await reloaded(one)).last_error_kind == LABELS[name]
    assert (await in_database(ModelEndpoint.objects.get, name="second")).last_ok_at is not None
    await upstream.until("connections_open", 0, exactly=True)
    assert upstream.counts().requests_open == 0


@with_each([case for case in FAULTS if case[1] in SAYS_FIRST])
async def test_a_fault_after_the_first_word_ends_the_answer_and_nobody_goes_on(
    name: str, site: Site, upstream: Upstream, second: Upstream
) -> None:
    # At a pace, so that the words before the fault arrive before it.
    upstream.next(msgspec.structs.replace(FAILING[name], script=Text(SAID), tokens_per_s=50.0))
    heard = Heard()
    async with opened(site, waits_for(name)) as line:
        with pytest.raises(ModelUnavailable) as caught:
            await line.stream(site.pk, asking(), heard)
        assert (caught.value.reason, caught.value.said) == (LABELS[name], True)
        assert heard.text
        assert SAID.startswith(heard.text)
        assert answers(second) == []
        upstream.release()
        assert (await ask(line, site)).text == SAID
    await upstream.until("connections_open", 0, exactly=True)


@of("responses", "lanes")
async def test_a_refusal_that_came_in_time_is_no_stall_for_a_process_that_was_busy(
    site: Site, one: ModelEndpoint, upstream: Upstream
) -> None:
    refused = FAILING["rate_limited"].faults
    upstream.next(Plan(faults=(Fault(action=Action.STALL, place=Place.HEADERS), *refused)))
    async with opened(site, QUICK) as line:
        asked = asyncio.create_task(ask(line, site))
        await upstream.until("stalled", 1)
        stalled_at = asyncio.get_running_loop().time()
        # From here on the loop stands still: the refusal is there before its deadline, and both are found behind it.
        upstream.release()
        upstream.wait("stalled", 0, exactly=True)
        while asyncio.get_running_loop().time() < stalled_at + QUICK.first_data_s:
            pass
        assert (await asked).text == BUILTIN
    assert (await reloaded(one)).last_error_kind == "rate_limited"


@of("responses", *SOCKETS)
async def test_a_response_that_failed_says_so_in_an_event_of_its_own(
    line: Line, site: Site, one: ModelEndpoint, upstream: Upstream
) -> None:
    upstream.next(fault(Action.FAILED, Place.DATA))
    assert (await ask(line, site)).text == BUILTIN
    assert (await reloaded(one)).last_error_kind == "server"


@of("responses", "lanes")
async def test_a_response_that_is_only_accepted_has_not_begun(
    site: Site, one: ModelEndpoint, upstream: Upstream
) -> None:
    upstream.next(Plan(faults=(Fault(action=Action.STALL, after_tokens=0),)))
    async with opened(site, QUICK) as line:
        assert (await ask(line, site)).text == BUILTIN
    assert (await reloaded(one)).last_error_kind == "stalled_first_data"


@of(*WHOLE)
async def test_the_whole_turn_has_a_deadline_that_progress_does_not_move(
    site: Site, one: ModelEndpoint, upstream: Upstream
) -> None:
    upstream.next(Plan(script=Filler(10_000), tokens_per_s=50.0))
    async with opened(site, dataclasses.replace(PATIENT, turn_s=1.5)) as line:
        with pytest.raises(ModelUnavailable) as caught:
            await ask(line, site)
    assert caught.value.reason == "stalled_turn"


@of("chat", *SOCKETS)
async def test_an_endpoint_that_refuses_connections_is_found_again(
    site: Site, one: ModelEndpoint, upstream: Upstream
) -> None:
    upstream.refuse()
    async with opened(site) as line:
        heard = await ask(line, site)
        assert (heard.text, heard.done.endpoint) == (BUILTIN, "builtin")
        assert (await reloaded(one)).last_error_kind == "connect"
        upstream.accept()
        assert (await ask(line, site)).text == SAID


@of("chat", *SOCKETS)
async def test_an_untrusted_certificate_is_a_tls_failure(
    site: Site, one: ModelEndpoint, settings: Settings, tmp_path: Path
) -> None:
    with Upstream() as stranger:
        trust(settings, tmp_path / "..", stranger)
        async with opened(site) as line:
            assert (await ask(line, site)).text == BUILTIN
    assert (await reloaded(one)).last_error_kind == "tls"


@of("chat", *SOCKETS)
async def test_a_wrong_key_rests_at_once_and_asks_for_an_administrator(
    api: str, site: Site, upstream: Upstream, one: ModelEndpoint
) -> None:
    upstream.set_profile(profile_of(api, api_keys=("right",)))
    async with opened(site) as line:
        heard = [await ask(line, site) for _ in range(2)]
        assert (await reloaded(one)).needs_admin
        await in_database(ModelEndpoint.objects.update, api_key="right")
        await in_database(line.refresh, site.pk, 2)
        assert (await ask(line, site)).done.endpoint == "first"
    assert {each.done.endpoint for each in heard} == {"builtin"}
    assert not (await reloaded(one)).needs_admin


@of("chat", *SOCKETS)
async def test_a_full_endpoint_is_passed_over(
    site: Site, one: ModelEndpoint, upstream: Upstream, second: Upstream
) -> None:
    await in_database(ModelEndpoint.objects.filter(name="first").update, max_concurrent=1)
    upstream.next(fault(Action.STALL, Place.DATA))
    async with opened(site) as line:
        waiting = asyncio.create_task(ask(line, site))
        await upstream.until("stalled", 1)
        assert (await ask(line, site)).done.endpoint == "second"
        upstream.release()
        assert (await waiting).done.endpoint == "first"


# With lanes the model goes on, and what it says is passed over: see test_responses_socket.
@of("chat", "responses", "sequential")
async def test_cancelling_ends_the_request_which_stops_the_model(
    site: Site, one: ModelEndpoint, upstream: Upstream
) -> None:
    upstream.next(Plan(script=Filler(10_000), tokens_per_s=50.0))
    heard = Heard()
    async with opened(site) as line:
        turn = asyncio.create_task(line.stream(site.pk, asking(), heard))
        await heard.begun()
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        said = heard.text
        await upstream.until("aborts", 1)
        again = await ask(line, site)
    assert again.text == SAID
    assert heard.text == said
    usage, spent = again.done.usage, await in_database(DailySpend.objects.get)
    assert usage is not None
    assert spent.prompt_tokens > usage.prompt_tokens  # what was cancelled is paid for as well
    assert spent.completion_tokens > usage.completion_tokens


@of("chat", *SOCKETS)
async def test_cancelled_turns_give_their_places_back(
    site: Site, one: ModelEndpoint, upstream: Upstream
) -> None:
    await in_database(ModelEndpoint.objects.update, max_concurrent=2)
    async with opened(site) as line:
        for place in (Place.HEADERS, Place.DATA, Place.STREAM) * 2:
            upstream.next(*[fault(Action.STALL, place)] * 2)
            turns = [asyncio.create_task(ask(line, site)) for _ in range(2)]
            await upstream.until("stalled", 2)
            for turn in turns:
                turn.cancel()
            await asyncio.gather(*turns, return_exceptions=True)
            upstream.release()
            await upstream.until("requests_open", 0, exactly=True)
        heard = await asyncio.gather(*(ask(line, site) for _ in range(2)))
    assert {each.done.endpoint for each in heard} == {"first"}


@of(*FIELDS)
async def test_what_the_receiver_raises_ends_the_turn_and_comes_through(
    line: Line, site: Site, upstream: Upstream
) -> None:
    upstream.next(Plan(script=Filler(40), tokens_per_s=200.0))

    async def receiver(_: ModelEvent) -> None:
        raise LookupError("superseded")

    with pytest.raises(LookupError):
        await line.stream(site.pk, asking(), receiver)
    assert (await ask(line, site)).text == SAID
