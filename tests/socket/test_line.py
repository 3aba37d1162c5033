"""The line against a model server over real TLS: every fault gets its name, nothing leaks, nobody waits for ever."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from prometheus_client import REGISTRY
from pytest_django import Settings

from apps.accounts.models import Site, Workspace
from apps.engine.events import HandoffCall, ModelEvent
from apps.engine.ports import ModelUnavailable
from apps.llm import records
from apps.llm.line import Line
from apps.llm.models import DailySpend, ModelEndpoint
from apps.stores.database import in_database
from tests.fakes.upstream.faults import FAILING, ODD, Action, Place, Plan, fault, refusal
from tests.fakes.upstream.handle import Upstream
from tests.fakes.upstream.profile import Profile
from tests.fakes.upstream.script import Filler, Text, ToolCall
from tests.support.model_line import (
    BUILTIN,
    LABELS,
    QUICK,
    SAID,
    SAYS_FIRST,
    Heard,
    ask,
    asking,
    endpoint,
    opened,
    reloaded,
    trust,
)

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    with Upstream() as server:
        server.always(Plan(script=Text(SAID)))
        yield server


@pytest.fixture
def second() -> Iterator[Upstream]:
    with Upstream() as server:
        server.always(Plan(script=Text("From the second.")))
        yield server


@pytest.fixture
def site() -> Site:
    return Site.objects.create(workspace=Workspace.objects.create(name="Lantern"), name="Lantern")


@pytest.fixture
def one(site: Site, upstream: Upstream, settings: Settings, tmp_path: Path) -> ModelEndpoint:
    """The site's endpoint `first`, at `upstream`."""
    trust(settings, tmp_path, upstream)
    return endpoint(site, upstream, "first", 1)


@pytest.fixture
def two(
    site: Site, upstream: Upstream, second: Upstream, settings: Settings, tmp_path: Path
) -> tuple[ModelEndpoint, ModelEndpoint]:
    """`first` at `upstream`, then `second` at `second`."""
    trust(settings, tmp_path, upstream, second)
    return endpoint(site, upstream, "first", 1), endpoint(site, second, "second", 2)


# ------------------------------------------------------------------ good answers


async def test_an_answer_arrives_whole_and_names_its_endpoint_and_usage(
    site: Site, one: ModelEndpoint
) -> None:
    async with opened(site) as line:
        heard = await ask(line, site)
    assert heard.text == SAID
    assert (heard.done.finish, heard.done.endpoint) == ("stop", "first")
    assert heard.done.usage is not None
    assert heard.done.usage.completion_tokens > 5


@pytest.mark.parametrize("name", sorted(ODD))
async def test_an_odd_but_good_answer_is_read_to_its_end(
    name: str, site: Site, upstream: Upstream, one: ModelEndpoint
) -> None:
    plan = ODD[name]
    upstream.next(plan if plan.script else msgspec.structs.replace(plan, script=Text(SAID)))
    async with opened(site) as line:
        heard = await ask(line, site)
    assert heard.done.endpoint == "first"
    spoken = {"line_separator_in_text": "one\u2028two\u2029three\u0085four", "tool_call": ""}
    assert heard.text == spoken.get(name, "42." if name.startswith("reasoning") else SAID)


async def test_a_handoff_call_in_pieces_becomes_an_action_with_a_known_team(
    site: Site, upstream: Upstream, one: ModelEndpoint
) -> None:
    wish = '{"reason": "Wants 退货 \\"now\\"", "team": "returns"}'
    upstream.next(Plan(script=ToolCall(arguments=wish, pieces=17, text="One moment.")))
    upstream.next(Plan(script=ToolCall(arguments='{"reason": "x", "team": "Nobody"}')))
    upstream.next(Plan(script=ToolCall(arguments='{"reason": "cut')))
    async with opened(site) as line:
        answers = [await ask(line, site) for _ in range(3)]
    assert answers[0].text == "One moment."
    assert [heard.events[-2] for heard in answers] == [
        HandoffCall('Wants 退货 "now"', "Returns"), HandoffCall("x", ""), HandoffCall("", ""),
    ]  # fmt: skip
    assert answers[0].done.finish == "tool_calls"


async def test_a_warm_connection_serves_the_first_question_and_the_next(
    site: Site, upstream: Upstream, one: ModelEndpoint
) -> None:
    async with opened(site) as line:
        warmed = upstream.counts()
        await ask(line, site)
        await ask(line, site)
        counts = upstream.counts()
    assert warmed.connections_opened == 1
    assert (counts.connections_opened, counts.tls_handshakes, counts.requests) == (1, 1, 3)


async def test_an_http2_endpoint_multiplexes_over_one_connection(
    site: Site, upstream: Upstream, one: ModelEndpoint
) -> None:
    await in_database(ModelEndpoint.objects.update, http2=True)
    async with opened(site) as line:
        answers = await asyncio.gather(*(ask(line, site) for _ in range(5)))
        counts = upstream.counts()
    assert {heard.text for heard in answers} == {SAID}
    assert counts.connections_opened == 1
    assert "2" in upstream.requests()[-1].http


async def test_the_request_offers_the_handoff_and_asks_for_usage(
    site: Site, upstream: Upstream, one: ModelEndpoint
) -> None:
    await in_database(ModelEndpoint.objects.update, extra_body={"temperature": 0.3}, dialect="openai")
    async with opened(site) as line:
        await ask(line, site, cache_key="site-7")
    seen = upstream.requests()[-1]
    body = msgspec.json.decode(seen.body)
    assert body["stream_options"] == {"include_usage": True, "include_obfuscation": False}
    assert body["tools"][0]["function"]["parameters"]["properties"]["team"]["enum"] == ["Support", "Returns"]
    assert (body["max_completion_tokens"], body["prompt_cache_key"], body["temperature"]) == (
        700,
        "site-7",
        0.3,
    )
    assert next(reversed(body)) == "messages"
    assert seen.headers["authorization"] == "Bearer k"


# ------------------------------------------------------------------ faults


def test_every_fault_of_the_fake_has_its_expected_name() -> None:
    assert LABELS.keys() == FAILING.keys()


@pytest.mark.parametrize("name", sorted(FAILING.keys() - SAYS_FIRST))
async def test_a_fault_before_the_first_word_is_noted_and_another_endpoint_answers(
    name: str, site: Site, upstream: Upstream, two: tuple[ModelEndpoint, ModelEndpoint]
) -> None:
    upstream.always(FAILING[name])
    async with opened(site) as line:
        heard = await ask(line, site)
        await upstream.until("requests_open", 0, exactly=True)
    assert heard.text == "From the second."
    assert heard.done.endpoint == "second"
    assert (await reloaded(two[0])).last_error_kind == LABELS[name]
    assert (await reloaded(two[1])).last_ok_at is not None
    await upstream.until("connections_open", 0, exactly=True)


@pytest.mark.parametrize("name", sorted(SAYS_FIRST))
async def test_a_fault_after_the_first_word_ends_the_answer_and_nobody_goes_on(
    name: str, site: Site, upstream: Upstream, second: Upstream, two: tuple[ModelEndpoint, ModelEndpoint]
) -> None:
    # At a pace, so that the words before the fault arrive before it.
    upstream.next(msgspec.structs.replace(FAILING[name], script=Text(SAID), tokens_per_s=50.0))
    heard = Heard()
    async with opened(site) as line:
        with pytest.raises(ModelUnavailable) as caught:
            await line.stream(site.pk, asking(), heard)
        await upstream.until("requests_open", 0, exactly=True)
        assert (caught.value.reason, caught.value.said) == (LABELS[name], True)
        assert heard.text
        assert SAID.startswith(heard.text)
        assert second.counts().requests == 1  # its warm-up
        assert (await ask(line, site)).text == SAID
    await upstream.until("connections_open", 0, exactly=True)


async def test_keep_alive_comments_do_not_hold_a_deadline(
    site: Site, upstream: Upstream, one: ModelEndpoint
) -> None:
    upstream.next(fault(Action.STALL, Place.DATA, keepalive_s=0.01))
    async with opened(site) as line:
        heard = await ask(line, site)
        await upstream.until("aborts", 1)
    assert heard.text == BUILTIN
    assert (await reloaded(one)).last_error_kind == "stalled_first_data"


async def test_the_whole_turn_has_a_deadline_that_progress_does_not_move(
    site: Site, upstream: Upstream, one: ModelEndpoint
) -> None:
    upstream.next(Plan(script=Filler(10_000), tokens_per_s=50.0))
    async with opened(site, dataclasses.replace(QUICK, turn_s=1.5, first_data_s=20.0)) as line:
        with pytest.raises(ModelUnavailable) as caught:
            await ask(line, site)
        await upstream.until("aborts", 1)
    assert caught.value.reason == "stalled_turn"


async def test_an_endpoint_that_refuses_connections_is_replaced_and_found_again(
    site: Site, upstream: Upstream, two: tuple[ModelEndpoint, ModelEndpoint]
) -> None:
    upstream.refuse()
    async with opened(site) as line:
        assert (await ask(line, site)).done.endpoint == "second"
        upstream.accept()
        assert (await ask(line, site)).done.endpoint == "first"


async def test_an_untrusted_certificate_is_a_tls_failure(
    site: Site, one: ModelEndpoint, second: Upstream, settings: Settings, tmp_path: Path
) -> None:
    trust(settings, tmp_path / "..", second)
    async with opened(site) as line:
        assert (await ask(line, site)).done.endpoint == "builtin"
    assert (await reloaded(one)).last_error_kind == "tls"


async def test_with_every_endpoint_dead_at_start_the_builtin_answers(
    site: Site, upstream: Upstream, one: ModelEndpoint
) -> None:
    upstream.refuse()
    async with opened(site) as line:
        heard = await ask(line, site)
    assert (heard.text, heard.done.endpoint) == (BUILTIN, "builtin")
    assert (await reloaded(one)).last_error_kind == "connect"


async def test_a_connection_closed_while_idle_costs_no_answer(
    site: Site, upstream: Upstream, one: ModelEndpoint
) -> None:
    async with opened(site) as line:
        await ask(line, site)
        upstream.end_connections()
        assert (await ask(line, site)).text == SAID


# ------------------------------------------------------------------ rests


async def test_three_failures_in_a_row_send_an_endpoint_to_rest(
    site: Site, upstream: Upstream, two: tuple[ModelEndpoint, ModelEndpoint]
) -> None:
    upstream.always(refusal(500, "server_error"))
    async with opened(site) as line:
        answers = [await ask(line, site) for _ in range(5)]
    assert {heard.done.endpoint for heard in answers} == {"second"}
    assert upstream.counts().requests == 1 + 3  # its warm-up, and no more after the third


async def test_a_wrong_key_rests_at_once_and_asks_for_an_administrator(
    site: Site, upstream: Upstream, one: ModelEndpoint
) -> None:
    upstream.set_profile(Profile(api_keys=("right",)))
    async with opened(site) as line:
        answers = [await ask(line, site) for _ in range(2)]
        assert (await reloaded(one)).needs_admin
        await in_database(ModelEndpoint.objects.filter(pk=one.pk).update, api_key="right")
        await in_database(line.refresh, site.pk, 2)
        assert (await ask(line, site)).done.endpoint == "first"
    assert {heard.done.endpoint for heard in answers} == {"builtin"}
    assert not (await reloaded(one)).needs_admin


async def test_a_wrong_key_of_the_settings_asks_for_an_administrator_too(
    site: Site, upstream: Upstream, settings: Settings, tmp_path: Path
) -> None:
    trust(settings, tmp_path, upstream)
    settings.ENVIRONMENT = dataclasses.replace(
        settings.ENVIRONMENT, llm_base_url=upstream.base_url, llm_model="m", llm_api_key="wrong"
    )
    upstream.set_profile(Profile(api_keys=("right",)))
    async with opened(site) as line:
        answered = await ask(line, site)
    assert answered.done.endpoint == "builtin"
    assert await in_database(records.ailing_default, Site.objects.all()) is not None
    upstream.set_profile(Profile(api_keys=("wrong",)))
    async with opened(site) as line:
        answered = await ask(line, site)
    assert answered.done.endpoint == "default"
    assert await in_database(records.ailing_default, Site.objects.all()) is None


async def test_a_full_endpoint_is_passed_over(
    site: Site, upstream: Upstream, two: tuple[ModelEndpoint, ModelEndpoint]
) -> None:
    await in_database(ModelEndpoint.objects.filter(name="first").update, max_concurrent=1)
    upstream.next(fault(Action.STALL, Place.DATA))
    async with opened(site, dataclasses.replace(QUICK, first_data_s=20.0)) as line:
        waiting = asyncio.create_task(ask(line, site))
        await upstream.until("stalled", 1)
        assert (await ask(line, site)).done.endpoint == "second"
        upstream.release()
        assert (await waiting).done.endpoint == "first"


# ------------------------------------------------------------------ cancelling


async def test_cancelling_closes_the_request_to_the_model(
    site: Site, upstream: Upstream, one: ModelEndpoint
) -> None:
    upstream.next(Plan(script=Filler(10_000), tokens_per_s=50.0))
    heard = Heard()
    async with opened(site) as line:
        turn = asyncio.create_task(line.stream(site.pk, asking(), heard))
        await heard.first.wait()
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        said = heard.text
        await upstream.until("aborts", 1)
        assert heard.text == said
        assert (await ask(line, site)).text == SAID
        await in_database(lambda: None)
    spent = await in_database(DailySpend.objects.get)
    assert spent.completion_tokens > 0
    assert spent.prompt_tokens > 0


async def test_cancelled_turns_give_their_slots_back(
    site: Site, upstream: Upstream, one: ModelEndpoint
) -> None:
    await in_database(ModelEndpoint.objects.update, max_concurrent=2)
    async with opened(site, dataclasses.replace(QUICK, first_data_s=20.0)) as line:
        for places in (Place.HEADERS, Place.DATA, Place.STREAM) * 2:
            upstream.next(*[fault(Action.STALL, places)] * 2)
            turns = [asyncio.create_task(ask(line, site)) for _ in range(2)]
            await upstream.until("stalled", 2)
            for turn in turns:
                turn.cancel()
            await asyncio.gather(*turns, return_exceptions=True)
            await upstream.until("requests_open", 0, exactly=True)
        answers = await asyncio.gather(*(ask(line, site) for _ in range(2)))
    assert {heard.done.endpoint for heard in answers} == {"first"}
    assert upstream.counts().aborts == 12


async def test_what_the_receiver_raises_ends_the_request_and_comes_through(
    site: Site, upstream: Upstream, one: ModelEndpoint
) -> None:
    upstream.next(Plan(script=Filler(10_000), tokens_per_s=50.0))

    async def receiver(_: ModelEvent) -> None:
        raise LookupError("superseded")

    async with opened(site) as line:
        with pytest.raises(LookupError):
            await line.stream(site.pk, asking(), receiver)
        await upstream.until("aborts", 1)


# ------------------------------------------------------------------ who answers


async def test_spend_is_booked_and_at_the_cap_the_builtin_answers(
    site: Site, upstream: Upstream, one: ModelEndpoint
) -> None:
    await in_database(Site.objects.update, daily_spend_cap="0.01")
    async with opened(site) as line:
        heard = await ask(line, site)
        usage = heard.done.usage
    spent = await in_database(DailySpend.objects.get)
    assert usage is not None
    assert (spent.prompt_tokens, spent.completion_tokens) == (usage.prompt_tokens, usage.completion_tokens)
    assert float(spent.cost) == pytest.approx((usage.prompt_tokens + 9 * usage.completion_tokens) / 1e3)
    async with opened(site) as line:
        assert (await ask(line, site)).done.endpoint == "builtin"
        await in_database(Site.objects.update, daily_spend_cap=None)
        await in_database(line.refresh, site.pk, 2)
        assert (await ask(line, site)).done.endpoint == "first"


async def test_the_endpoint_of_the_settings_serves_sites_that_have_none(
    site: Site, second: Upstream, settings: Settings, tmp_path: Path
) -> None:
    trust(settings, tmp_path, second)
    environment = settings.ENVIRONMENT
    settings.ENVIRONMENT = dataclasses.replace(environment, llm_base_url=second.base_url, llm_model="m")
    async with opened(site) as line:
        assert (await ask(line, site)).text == "From the second."


async def test_a_site_with_endpoints_of_its_own_never_uses_that_of_the_settings(
    site: Site, upstream: Upstream, one: ModelEndpoint, second: Upstream, settings: Settings
) -> None:
    environment = settings.ENVIRONMENT
    settings.ENVIRONMENT = dataclasses.replace(environment, llm_base_url=second.base_url, llm_model="m")
    upstream.always(refusal(500, "server_error"))
    async with opened(site) as line:
        assert (await ask(line, site)).done.endpoint == "builtin"
    assert second.counts().requests == 0


async def test_a_site_that_was_never_loaded_is_loaded_by_its_first_question(
    site: Site, upstream: Upstream, one: ModelEndpoint
) -> None:
    line = Line(QUICK)
    await line.open()
    try:
        assert line.loaded_version(site.pk) == 0
        assert (await ask(line, site)).done.endpoint == "first"
    finally:
        await line.close()


async def test_an_edited_endpoint_replaces_the_old_one_and_its_connections(
    site: Site, upstream: Upstream, one: ModelEndpoint, second: Upstream, settings: Settings, tmp_path: Path
) -> None:
    trust(settings, tmp_path, upstream, second)
    async with opened(site) as line:
        assert (await ask(line, site)).text == SAID
        await in_database(ModelEndpoint.objects.update, base_url=second.base_url)
        await in_database(line.refresh, site.pk, 2)
        assert line.loaded_version(site.pk) == 2
        assert (await ask(line, site)).text == "From the second."
        await upstream.until("connections_open", 0, exactly=True)


async def test_the_builtin_can_be_asked_for(site: Site, upstream: Upstream, one: ModelEndpoint) -> None:
    heard = Heard()
    async with opened(site) as line:
        await line.stream(site.pk, asking("talk to a human"), heard, force_builtin=True)
    assert HandoffCall("The customer asked for a person.") in heard.events
    assert upstream.counts().requests == 1  # its warm-up


async def test_an_answer_of_the_builtin_is_counted_by_why_it_spoke(
    site: Site, upstream: Upstream, one: ModelEndpoint
) -> None:
    def counted(reason: str) -> float:
        name = "chatsvc_llm_builtin_answers_total"
        return REGISTRY.get_sample_value(name, {"reason": reason}) or 0.0

    before = {reason: counted(reason) for reason in ("refused", "resting", "no_endpoint", "forced")}
    upstream.next(refusal(404, "model_not_found"), refusal(401, "invalid_api_key"))
    async with opened(site) as line:
        for _ in range(3):
            await ask(line, site)
        await line.stream(site.pk, asking(), Heard(), force_builtin=True)
        await in_database(ModelEndpoint.objects.update, enabled=False)
        await in_database(line.refresh, site.pk, 2)
        await ask(line, site)
    assert {reason: counted(reason) - before[reason] for reason in before} == dict.fromkeys(before, 1.0)
