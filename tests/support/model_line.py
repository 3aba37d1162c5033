"""A site's line to fake model servers, as its tests use it."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from pytest_django import Settings

from apps.accounts.models import Site
from apps.engine.events import Done, ModelEvent, TextDelta
from apps.engine.types import ChatMessage, Facts, FactsState, ModelRequest
from apps.llm.deadlines import Deadlines
from apps.llm.line import Line
from apps.llm.models import ModelEndpoint
from apps.llm.providers.builtin_words import ENGLISH
from apps.llm.tactics import Tactics
from apps.stores.database import in_database
from tests.fakes.upstream.faults import FAILING, Place
from tests.fakes.upstream.handle import Upstream
from tests.fakes.upstream.ledger import Seen

# Where no deadline has to pass, a busy machine may take its time.
PATIENT = Deadlines(
    slot_s=0.5, connect_s=5.0, first_data_s=20.0, between_data_s=20.0, turn_s=30.0, usage_s=0.5
)
QUICK = dataclasses.replace(PATIENT, first_data_s=1.5, between_data_s=1.5)
BEGINS_S = 10.0
SAID = "Your lamp is on its way. 灯在路上。"
BUILTIN = f"{ENGLISH.unknown} {ENGLISH.offer}"

# What each fault of the fake is called when every request meets it.
LABELS = {
    "reset_before_headers": "broken", "close_before_headers": "broken", "reset_before_first_data": "broken",
    "end_without_anything": "broken", "stall_before_headers": "stalled_first_data",
    "stall_before_first_data": "stalled_first_data", "stall_before_first_data_with_comments": "stalled_first_data",
    "error_first": "server", "unauthorized": "auth", "forbidden": "auth", "unknown_model": "refused",
    "rate_limited": "rate_limited", "rate_limited_with_retry_after": "rate_limited", "server_error": "server",
    "overloaded": "server",
    # These say something first, so that nobody else may go on.
    "reset_mid_stream": "broken", "close_mid_stream": "broken", "reset_stream_mid_stream": "broken",
    "stall_mid_stream": "stalled_between_data", "stall_mid_stream_with_comments": "stalled_between_data",
    "cut_mid_character": "broken", "error_mid_stream": "server", "end_mid_stream": "broken",
    "end_without_finish_and_done": "broken",
}  # fmt: skip
SAYS_FIRST = {name for name, plan in FAILING.items() if plan.faults[0].place in (Place.STREAM, Place.END)}


def endpoint(site: Site, server: Upstream, name: str, priority: int, **fields: Any) -> ModelEndpoint:
    return ModelEndpoint.objects.create(
        site=site, name=name, priority=priority, base_url=server.base_url, model="m", api_key="k",
        price_in=1_000, price_out=9_000, **fields,
    )  # fmt: skip


def trust(settings: Settings, folder: Path, *servers: Upstream) -> None:
    bundle = folder / "authorities.pem"
    bundle.write_text("\n".join(Path(server.ca_file).read_text() for server in servers))
    settings.ENVIRONMENT = dataclasses.replace(settings.ENVIRONMENT, llm_ca_file=str(bundle))


@asynccontextmanager
async def opened(
    site: Site, deadlines: Deadlines = PATIENT, tactics: Tactics | None = None
) -> AsyncIterator[Line]:
    """A line that has the site's endpoints warm."""
    line = Line(deadlines, tactics)
    await in_database(line.refresh, site.pk, 1)
    await line.open()
    try:
        yield line
    finally:
        await line.close()


class Heard:
    """What a turn hears of its model."""

    def __init__(self) -> None:
        self.events: list[ModelEvent] = []
        self.first = asyncio.Event()

    async def __call__(self, event: ModelEvent) -> None:
        self.events.append(event)
        self.first.set()

    async def begun(self) -> None:
        """Returns when something was heard. Raises `TimeoutError`."""
        async with asyncio.timeout(BEGINS_S):
            await self.first.wait()

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, TextDelta))

    @property
    def done(self) -> Done:
        last = self.events[-1]
        assert isinstance(last, Done)
        return last


def asking(question: str = "Do lamps dream?", cache_key: str = "") -> ModelRequest:
    messages = (ChatMessage("system", "Be kind."), ChatMessage("user", question))
    facts = Facts(False, FactsState.NONE)
    return ModelRequest(messages, question, "en", facts, (), ("Support", "Returns"), cache_key=cache_key)


class Talk:
    """A conversation with its history, asked turn by turn."""

    def __init__(self, line: Line, site: Site, key: str) -> None:
        self._line = line
        self._site = site
        self.key = key
        self.said: list[ChatMessage] = []
        self.facts = "tier: gold"
        self.policy = "Be kind."

    def request(self, *rest: ChatMessage) -> ModelRequest:
        """Policy, facts, what was said, and `rest`."""
        head = (ChatMessage("system", self.policy), ChatMessage("system", self.facts))
        facts = Facts(False, FactsState.NONE)
        return ModelRequest((*head, *self.said, *rest), "q", "en", facts, (), cache_key=self.key)

    async def ask(self, question: str, article: str = "") -> Heard:
        passing = (ChatMessage("system", article),) if article else ()
        asked = ChatMessage("user", question)
        heard = Heard()
        await self._line.stream(self._site.pk, self.request(*passing, asked), heard)
        self.said += [asked, ChatMessage("assistant", heard.text)]
        return heard

    async def prepare(self) -> None:
        """Has what is known before the next question read ahead."""
        await self._line.prepare(self._site.pk, self.request())


async def ask(line: Line, site: Site, **fields: Any) -> Heard:
    heard = Heard()
    await line.stream(site.pk, asking(**fields), heard)
    return heard


def answers(upstream: Upstream) -> list[Seen]:
    """The requests that were for an answer, oldest first."""
    return [seen for seen in upstream.requests() if seen.method in ("POST", "WS")]


def body_of(seen: Seen) -> dict[str, Any]:
    """What a request has asked."""
    made: dict[str, Any] = msgspec.json.decode(seen.body)
    return made


async def reloaded(row: ModelEndpoint) -> ModelEndpoint:
    await in_database(row.refresh_from_db)
    return row
