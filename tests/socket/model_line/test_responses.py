"""The Responses API over HTTP: its own request, and chains only where the provider keeps what was said."""

from __future__ import annotations

import pytest

from apps.accounts.models import Site
from apps.llm.line import Line
from apps.llm.models import ModelEndpoint
from apps.stores.database import in_database
from tests.fakes.upstream.handle import Upstream
from tests.support.model_line import (
    Talk,
    answers,
    ask,
    body_of,
    opened,
)

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def api() -> str:
    return "responses"


async def test_the_request_is_the_apis_own(line: Line, site: Site, upstream: Upstream) -> None:
    await ask(line, site, cache_key="c-7")
    seen = answers(upstream)[-1]
    made = body_of(seen)
    assert (seen.path, seen.headers["authorization"]) == ("/v1/responses", "Bearer k")
    assert (made["stream"], made["store"], made["instructions"]) == (True, False, "Be kind.")
    assert (made["max_output_tokens"], made["prompt_cache_key"]) == (700, "c-7")
    assert made["tools"][0]["name"] == "handoff"


@pytest.fixture
def keeping(one: ModelEndpoint) -> ModelEndpoint:
    """The provider keeps what was said."""
    ModelEndpoint.objects.update(keep_responses=True)
    return one


async def test_only_what_is_new_is_sent_while_the_provider_keeps_answers(
    keeping: ModelEndpoint, line: Line, site: Site, upstream: Upstream
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


async def test_a_server_without_a_store_is_never_asked_to_continue(
    keeping: ModelEndpoint, site: Site, upstream: Upstream
) -> None:
    await in_database(ModelEndpoint.objects.update, dialect="ollama")
    async with opened(site) as line:
        talk = Talk(line, site, "c-1")
        await talk.ask("one")
        await talk.ask("two")
    assert [seen.previous_response_id for seen in answers(upstream)] == ["", ""]
