"""The Responses API over HTTP: its own request, answers read whole, and chains where the provider keeps answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import msgspec
import pytest
from pytest_django import Settings

from apps.accounts.models import Site, Workspace
from apps.engine.events import HandoffCall
from apps.engine.ports import ModelUnavailable
from apps.engine.types import ChatMessage
from apps.llm.line import Line
from apps.llm.models import ModelEndpoint
from apps.llm.probe import probe
from apps.llm.records import spec_of
from apps.stores.database import in_database
from tests.fakes.upstream.faults import FAILING, ODD, Action, Fault, Place, Plan, fault, refusal
from tests.fakes.upstream.handle import Upstream
from tests.fakes.upstream.script import Filler, Text, ToolCall
from tests.support.model_line import (
    BUILTIN,
    LABELS,
    SAID,
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


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    with Upstream() as server:
        server.always(Plan(script=Text(SAID)))
        yield server


@pytest.fixture
def site() -> Site:
    return Site.objects.create(workspace=Workspace.objects.create(name="Lantern"), name="Lantern")


@pytest.fixture
def one(site: Site, upstream: Upstream, settings: Settings, tmp_path: Path) -> ModelEndpoint:
    trust(settings, tmp_path, upstream)
    return endpoint(site, upstream, "first", 1, provider="responses", dialect="openai")


@pytest.fixture
async def line(site: Site, one: ModelEndpoint, upstream: Upstream) -> AsyncIterator[Line]:
    """Closed at the end, after which nothing of it may be left: no connection, no task."""
    before = asyncio.all_tasks()
    async with opened(site) as it:
        yield it
    await upstream.until("connections_open", 0, exactly=True)
    assert asyncio.all_tasks() <= before | {asyncio.current_task()}


async def test_the_request_is_the_apis_own_and_the_answer_is_read_whole(
    line: Line, site: Site, upstream: Upstream
) -> None:
    heard = await ask(line, site, cache_key="c-7")
    seen = answers(upstream)[-1]
    made = body_of(seen)

    assert heard.text == SAID
    assert (heard.done.finish, heard.done.endpoint) == ("stop", "first")
    assert heard.done.usage is not None
    assert heard.done.usage.completion_tokens > 5
    assert (seen.path, seen.headers["authorization"]) == ("/v1/responses", "Bearer k")
    assert (made["stream"], made["store"], made["instructions"]) == (True, False, "Be kind.")
    assert (made["max_output_tokens"], made["prompt_cache_key"]) == (700, "c-7")
    assert made["tools"][0]["name"] == "handoff"


@pytest.mark.parametrize("name", sorted(ODD))
async def test_an_odd_but_good_answer_is_read_to_its_end(
    name: str, line: Line, site: Site, upstream: Upstream
) -> None:
    plan = ODD[name]
    upstream.next(plan if plan.script else msgspec.structs.replace(plan, script=Text(SAID)))
    heard = await ask(line, site)
    spoken = {"line_separator_in_text": "one\u2028two\u2029three\u0085four", "tool_call": ""}
    assert heard.text == spoken.get(name, "42." if name.startswith("reasoning") else SAID)
    assert heard.done.endpoint == "first"


async def test_a_handoff_call_in_pieces_becomes_an_action_with_a_known_team(
    line: Line, site: Site, upstream: Upstream
) -> None:
    wish = '{"reason": "Wants 退货 \\"now\\"", "team": "returns"}'
    upstream.next(Plan(script=ToolCall(arguments=wish, pieces=17, text="One moment.")))
    heard = await ask(line, site)
    assert (heard.text, heard.done.finish) == ("One moment.", "tool_calls")
    assert heard.events[-2] == HandoffCall('Wants 退货 "now"', "Returns")


async def test_the_connection_test_of_the_admin_speaks_it_too(one: ModelEndpoint, upstream: Upstream) -> None:
    outcome = await probe(await in_database(spec_of, one))
    assert (outcome.failure, outcome.first_ms is not None) == ("", True)
    await upstream.until("connections_open", 0, exactly=True)


# Reading a stream is the same for every API over HTTP: its deadlines and the rest of the catalogue are in test_line.
@pytest.mark.parametrize("name", ["error_first", "rate_limited", "reset_before_first_data", "unauthorized"])
async def test_a_fault_before_the_first_word_is_noted_and_the_builtin_answers(
    name: str, line: Line, site: Site, one: ModelEndpoint, upstream: Upstream
) -> None:
    upstream.always(FAILING[name])
    assert (await ask(line, site)).text == BUILTIN
    assert (await reloaded(one)).last_error_kind == LABELS[name]


@pytest.mark.parametrize("name", ["error_mid_stream", "end_mid_stream", "end_without_finish_and_done"])
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
    assert (await ask(line, site)).text == SAID


async def test_a_response_that_failed_says_so_in_an_event_of_its_own(
    line: Line, site: Site, one: ModelEndpoint, upstream: Upstream
) -> None:
    upstream.next(fault(Action.FAILED, Place.DATA))
    assert (await ask(line, site)).text == BUILTIN
    assert (await reloaded(one)).last_error_kind == "server"


async def test_a_response_that_is_only_accepted_has_not_begun(
    line: Line, site: Site, one: ModelEndpoint, upstream: Upstream
) -> None:
    upstream.next(Plan(faults=(Fault(action=Action.STALL, after_tokens=0),)))
    assert (await ask(line, site)).text == BUILTIN
    assert (await reloaded(one)).last_error_kind == "stalled_first_data"


async def test_cancelling_closes_the_request_which_stops_the_model(
    line: Line, site: Site, upstream: Upstream
) -> None:
    upstream.next(Plan(script=Filler(10_000), tokens_per_s=50.0))
    heard = Heard()
    turn = asyncio.create_task(line.stream(site.pk, asking(), heard))
    await heard.begun()
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    await upstream.until("aborts", 1)
    assert (await ask(line, site)).text == SAID


class TestChains:
    """What the provider keeps is continued: a turn sends only what is new."""

    @pytest.fixture
    def keeping(self, one: ModelEndpoint) -> ModelEndpoint:
        ModelEndpoint.objects.update(keep_responses=True)
        return one

    async def test_only_what_is_new_is_sent_while_the_provider_keeps_answers(
        self, keeping: ModelEndpoint, line: Line, site: Site, upstream: Upstream
    ) -> None:
        talk = Talk(line, site, "c-1")
        for question in ("one", "two", "three"):
            await talk.ask(question)
        await in_database(ModelEndpoint.objects.update, keep_responses=False)
        await in_database(line.refresh, site.pk, 2)
        await talk.ask("four")
        await talk.ask("five")
        assert [seen.input_items for seen in answers(upstream)] == [2, 1, 1, 8, 10]
        assert [body_of(seen)["store"] for seen in answers(upstream)] == [True] * 3 + [False] * 2

    async def test_continuing_can_be_switched_off(
        self, keeping: ModelEndpoint, site: Site, upstream: Upstream
    ) -> None:
        await in_database(ModelEndpoint.objects.update, continue_chains=False)
        async with opened(site) as line:
            talk = Talk(line, site, "c-1")
            await talk.ask("one")
            await talk.ask("two")
        assert [seen.previous_response_id for seen in answers(upstream)] == ["", ""]

    async def test_a_server_without_a_store_is_never_asked_to_continue(
        self, keeping: ModelEndpoint, site: Site, upstream: Upstream
    ) -> None:
        await in_database(ModelEndpoint.objects.update, dialect="ollama")
        async with opened(site) as line:
            talk = Talk(line, site, "c-1")
            await talk.ask("one")
            await talk.ask("two")
        assert [seen.previous_response_id for seen in answers(upstream)] == ["", ""]

    async def test_a_change_of_policy_or_of_what_was_said_sends_everything(
        self, keeping: ModelEndpoint, line: Line, site: Site, upstream: Upstream
    ) -> None:
        talk = Talk(line, site, "c-1")
        await talk.ask("one")
        talk.policy = "Be brief."
        await talk.ask("two")
        await talk.ask("three")
        talk.said[0] = ChatMessage("user", "One, edited")
        await talk.ask("four")
        assert [seen.input_items for seen in answers(upstream)] == [2, 4, 1, 8]

    async def test_an_answer_that_called_for_a_human_is_not_continued(
        self, keeping: ModelEndpoint, line: Line, site: Site, upstream: Upstream
    ) -> None:
        upstream.next(Plan(script=ToolCall(text="One moment.")))
        talk = Talk(line, site, "c-1")
        await talk.ask("human")
        await talk.ask("two")
        assert [seen.previous_response_id for seen in answers(upstream)] == ["", ""]

    @pytest.mark.parametrize(("status", "code"), [(400, "previous_response_not_found"), (404, "not_found")])
    async def test_a_lost_chain_is_sent_again_in_full_once_and_is_no_failure(
        self,
        status: int,
        code: str,
        keeping: ModelEndpoint,
        line: Line,
        site: Site,
        upstream: Upstream,
    ) -> None:
        talk = Talk(line, site, "c-1")
        await talk.ask("one")
        for question in ("two", "three", "four", "five"):  # more than send an endpoint to rest
            upstream.next(refusal(status, code))
            assert (await talk.ask(question)).text == SAID
        assert (await reloaded(keeping)).last_error_kind == ""
        assert [seen.input_items for seen in answers(upstream)] == [2, 1, 4, 1, 6, 1, 8, 1, 10]

    async def test_a_request_that_is_refused_in_full_is_not_repeated(
        self, keeping: ModelEndpoint, line: Line, site: Site, upstream: Upstream
    ) -> None:
        talk = Talk(line, site, "c-1")
        await talk.ask("one")
        upstream.next(*[refusal(400, "previous_response_not_found")] * 2)
        assert (await talk.ask("two")).text == BUILTIN
        assert (await reloaded(keeping)).last_error_kind == "refused"
        assert [bool(seen.previous_response_id) for seen in answers(upstream)] == [False, True, False]
