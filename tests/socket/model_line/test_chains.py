"""Chains: where the server keeps what was said, a turn sends only what is new, and everything when that is lost."""

from __future__ import annotations

import pytest

from apps.accounts.models import Site
from apps.engine.types import ChatMessage
from apps.llm.line import Line
from apps.llm.models import ModelEndpoint
from apps.stores.database import in_database
from tests.fakes.upstream.faults import Plan, refusal
from tests.fakes.upstream.handle import Upstream
from tests.fakes.upstream.script import ToolCall
from tests.socket.model_line.apis import SOCKETS
from tests.support.model_line import BUILTIN, SAID, Talk, answers, opened, reloaded

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(params=("responses", *SOCKETS))
def api(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def one(api: str, one: ModelEndpoint) -> ModelEndpoint:
    """Over HTTP the server keeps only what it is asked to keep."""
    ModelEndpoint.objects.update(keep_responses=api == "responses")
    return one


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
    assert [seen.input_items for seen in answers(upstream)] == [2, 4, 1, 8]


async def test_continuing_can_be_switched_off(site: Site, one: ModelEndpoint, upstream: Upstream) -> None:
    await in_database(ModelEndpoint.objects.update, continue_chains=False)
    async with opened(site) as line:
        talk = Talk(line, site, "c-1")
        await talk.ask("one")
        await talk.ask("two")
    assert [seen.previous_response_id for seen in answers(upstream)] == ["", ""]
    assert [seen.input_items for seen in answers(upstream)] == [2, 4]


async def test_an_answer_that_called_for_a_human_is_not_continued(
    line: Line, site: Site, upstream: Upstream
) -> None:
    upstream.next(Plan(script=ToolCall(text="One moment.")))
    talk = Talk(line, site, "c-1")
    await talk.ask("human")
    await talk.ask("two")
    assert [seen.previous_response_id for seen in answers(upstream)] == ["", ""]


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
    assert [bool(seen.previous_response_id) for seen in answers(upstream)] == [False, True, False]
