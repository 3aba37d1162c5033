"""What an answer waited for before it could be asked: a cold connection shows its stages, a warm one none."""

from __future__ import annotations

import asyncio
import dataclasses

import pytest
from pytest_django import Settings

from apps.engine.events import ModelEvent
from apps.engine.types import ChatMessage, Facts, FactsState, ModelRequest
from apps.llm import waits
from apps.llm.deadlines import Deadlines
from apps.llm.endpoint import Endpoint
from apps.llm.spec import EndpointSpec
from tests.fakes.upstream.faults import Plan
from tests.fakes.upstream.handle import Upstream
from tests.fakes.upstream.script import Text

REQUEST = ModelRequest((ChatMessage("user", "Hello?"),), "Hello?", "en", Facts(False, FactsState.NONE), ())


@pytest.mark.parametrize(
    ("http2", "connecting"), [(False, ["dns", "tcp", "tls"]), (True, ["tcp", "tls"])], ids=["http1", "http2"]
)
async def test_only_the_request_that_opened_a_connection_shows_it(
    upstream: Upstream, settings: Settings, http2: bool, connecting: list[str]
) -> None:
    settings.ENVIRONMENT = dataclasses.replace(settings.ENVIRONMENT, llm_ca_file=upstream.ca_file)
    upstream.always(Plan(script=Text("Hello.")))
    base_url = upstream.base_url.replace("127.0.0.1", "localhost")
    endpoint = Endpoint(EndpointSpec("fake", base_url, "m", http2=http2), Deadlines())
    try:
        cold, warm = await asked(endpoint), await asked(endpoint)
    finally:
        await endpoint.close()
    assert [stage for stage, _, _ in cold] == ["queue", *connecting]
    assert all(begun <= ended for _, begun, ended in cold)
    ends = [ended for _, _, ended in cold]
    assert ends == sorted(ends)
    assert [stage for stage, _, _ in warm] == ["queue"]


async def asked(endpoint: Endpoint) -> list[tuple[str, float, float]]:
    """One answer; the stages that its request waited for."""
    told: list[tuple[str, float, float]] = []

    async def hear(_: ModelEvent) -> None:
        pass

    with waits.told_to(lambda *stage: told.append(stage)):
        await endpoint.stream(REQUEST, hear, asyncio.get_running_loop().time() + 10)
    return sorted(told, key=lambda stage: stage[1])
