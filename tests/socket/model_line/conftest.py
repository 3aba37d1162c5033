"""A site's line to a model server that speaks one of the APIs.

`api`       which one: `chat` unless a file or a test says otherwise, as with `@of("lanes", "sequential")`.
`upstream`  the server, saying `SAID`; `site`, and `one`, the site's endpoint `first` at the server.
`second`    another server, over plain HTTP, and its endpoint `second`, asked after `first`.
`line`      the site's line, open and warm; at the end nothing of it may be left.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from pytest_django import Settings

from apps.accounts.models import Site, Workspace
from apps.llm.line import Line
from apps.llm.models import ModelEndpoint
from tests.fakes.upstream.faults import Plan
from tests.fakes.upstream.handle import Upstream
from tests.fakes.upstream.script import Text
from tests.socket.model_line.apis import FIELDS, profile_of
from tests.support.model_line import SAID, endpoint, opened, trust


@pytest.fixture
def api(request: pytest.FixtureRequest) -> str:
    return str(getattr(request, "param", "chat"))


@pytest.fixture
def upstream(api: str) -> Iterator[Upstream]:
    with Upstream(profile_of(api)) as server:
        server.always(Plan(script=Text(SAID)))
        yield server


@pytest.fixture
def site() -> Site:
    return Site.objects.create(workspace=Workspace.objects.create(name="Lantern"), name="Lantern")


@pytest.fixture
def one(api: str, site: Site, upstream: Upstream, settings: Settings, tmp_path: Path) -> ModelEndpoint:
    trust(settings, tmp_path, upstream)
    return endpoint(site, upstream, "first", 1, **FIELDS[api])


@pytest.fixture
def second(site: Site, one: ModelEndpoint) -> Iterator[Upstream]:
    with Upstream(tls=False) as server:
        server.always(Plan(script=Text("From the second.")))
        endpoint(site, server, "second", 2)
        yield server


@pytest.fixture
async def line(site: Site, one: ModelEndpoint, upstream: Upstream) -> AsyncIterator[Line]:
    before = asyncio.all_tasks()
    async with opened(site) as it:
        yield it
    counts = await upstream.until("connections_open", 0, exactly=True)
    assert (counts.sockets_open, counts.requests_open) == (0, 0)
    assert asyncio.all_tasks() <= before | {asyncio.current_task()}
