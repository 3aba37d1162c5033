"""The line to the models: which endpoint answers, what happens when it cannot, and who answers then."""

from __future__ import annotations

import asyncio
import datetime as dt
import logging
import time
from dataclasses import dataclass

from django.db import Error as DatabaseFailure

from apps.engine.events import Done, ModelEvent, OnModelEvent, TextDelta
from apps.engine.ports import ModelUnavailable
from apps.engine.tokens import tokens_of_bytes
from apps.engine.types import ModelRequest, Usage
from apps.llm import records, spend
from apps.llm.deadlines import Deadlines
from apps.llm.endpoint import Endpoint
from apps.llm.errors import LlmError
from apps.llm.journal import OK, Journal
from apps.llm.keeper import Keeper
from apps.llm.pool import Pool
from apps.llm.providers import builtin
from apps.llm.spec import EndpointSpec
from apps.stores.database import in_database
from apps.telemetry import instruments

logger = logging.getLogger(__name__)

# How long a start may wait for warm connections: a dead endpoint must not keep the service down.
OPEN_WAITS_S = 2.0


@dataclass(frozen=True, slots=True)
class _Roster:
    """What a site's answers may use, as last loaded."""

    version: int
    specs: tuple[EndpointSpec, ...]


class Line:
    """One a web process. `open` and `close` it on the loop; `refresh`, `loaded_version`, `forget` from any thread."""

    def __init__(self, deadlines: Deadlines | None = None) -> None:
        self._deadlines = deadlines or Deadlines()
        self._journal = Journal()
        self._pool = Pool(self._deadlines, self._journal)
        self._keeper = Keeper(self._pool, self._journal, self._wanted, self._set_capped)
        self._rosters: dict[str, _Roster] = {}
        self._capped_on: dict[str, dt.date] = {}

    async def open(self) -> None:
        """Warms what is known so far, for at most two seconds; the keeper goes on until `close`."""
        await self._keeper.open(OPEN_WAITS_S)

    async def close(self) -> None:
        """Writes the last notes and closes every connection. Answers should have ended before."""
        await self._keeper.close()
        await self._pool.close()

    # -------------------------------------------------------------- resident

    def refresh(self, site_id: str, version: int) -> None:
        """Loads the site's endpoints and spend. Synchronous, four queries; the new ones are warmed by the keeper."""
        specs = records.specs_of_site(site_id)
        self._set_capped(site_id, spend.cap_reached(site_id))
        self._rosters[site_id] = _Roster(version, specs)
        self._keeper.endpoints_changed()

    def loaded_version(self, site_id: str) -> int:
        """The version given at the last `refresh`, 0 when there was none."""
        roster = self._rosters.get(site_id)
        return roster.version if roster else 0

    def forget(self, site_id: str) -> None:
        """The site is gone; its endpoints are closed once idle."""
        self._rosters.pop(site_id, None)
        self._capped_on.pop(site_id, None)
        self._keeper.endpoints_changed()

    # ---------------------------------------------------------------- answer

    async def stream(
        self, site_id: str, request: ModelRequest, on_event: OnModelEvent, force_builtin: bool = False
    ) -> None:
        """Answers from the first endpoint that can, else from `builtin`; `on_event` gets the pieces, then `Done`.

        Of endpoints of one priority the one that answered the conversation last is asked first.
        Another endpoint is tried only while nothing was said. Raises `ModelUnavailable` (said) when an answer broke
        off, and whatever `on_event` raises. Cancelling closes the request to the model. Spend is booked here.
        """
        if force_builtin or self._capped_on.get(site_id) == spend.today():
            await self._answer_builtin(request, on_event, "forced" if force_builtin else "capped")
            return
        turn_ends = asyncio.get_running_loop().time() + self._deadlines.turn_s
        reason = "no_endpoint"
        specs = await self._specs(site_id)
        for spec in sorted(specs, key=lambda spec: (spec.priority, spec.name != request.endpoint)):
            endpoint = self._pool.endpoint(spec)
            if not endpoint.allows():
                reason = "resting"
                continue
            failure = await self._answer(site_id, endpoint, request, on_event, turn_ends)
            if failure is None:
                return
            reason = failure.label
            if not failure.elsewhere or asyncio.get_running_loop().time() >= turn_ends:
                break
        if reason != "no_endpoint":
            logger.warning("site %s: the builtin answers, no endpoint could: %s", site_id, reason)
        await self._answer_builtin(request, on_event, reason)

    async def prepare(self, site_id: str, request: ModelRequest) -> None:
        """Has the endpoint that would answer read what is known before the question, where that is switched on.

        Waits for nothing, fails silently, and gives way to answers.
        """
        for spec in await self._specs(site_id):
            endpoint = self._pool.endpoint(spec)
            if endpoint.ready:
                await endpoint.prepare(request)
                return

    async def _answer(
        self,
        site_id: str,
        endpoint: Endpoint,
        request: ModelRequest,
        on_event: OnModelEvent,
        turn_ends: float,
    ) -> LlmError | None:
        """None when it answered, the failure when another may try. Raises `ModelUnavailable` when words were said."""
        ear = _Ear(endpoint, on_event)
        outcome = "stopped"
        try:
            await endpoint.stream(request, ear.hear, turn_ends)
            outcome = "ok"
            self._journal.health(endpoint.spec.id, OK)
        except LlmError as error:
            outcome = error.label
            self._journal.health(endpoint.spec.id, error.label)
            logger.warning("endpoint %s failed: %s (%s)", endpoint.spec.name, error.label, error)
            if ear.acted:
                raise ModelUnavailable(error.label, said=True) from error
            return error
        finally:
            instruments.llm_answers.labels(endpoint.spec.quirks.name, outcome).inc()
            self._book(site_id, endpoint, ear.usage_of(request))
        return None

    async def _answer_builtin(self, request: ModelRequest, on_event: OnModelEvent, reason: str) -> None:
        instruments.llm_builtin_answers.labels(reason).inc()
        await builtin.stream(request, on_event)

    async def _specs(self, site_id: str) -> tuple[EndpointSpec, ...]:
        if site_id not in self._rosters:
            try:
                await in_database(self.refresh, site_id, 0)
            except DatabaseFailure:
                logger.exception("site %s: its endpoints could not be loaded", site_id)
                return ()
        return self._rosters[site_id].specs

    def _book(self, site_id: str, endpoint: Endpoint, usage: Usage | None) -> None:
        if usage is not None:
            self._journal.spent(site_id, endpoint.spec.id, usage)
            instruments.llm_tokens.labels("prompt").inc(usage.prompt_tokens)
            instruments.llm_tokens.labels("cached").inc(usage.cached_tokens)
            instruments.llm_tokens.labels("completion").inc(usage.completion_tokens)
        if not self._journal.empty:
            self._keeper.noted()

    def _wanted(self) -> set[EndpointSpec]:
        return {spec for roster in list(self._rosters.values()) for spec in roster.specs}

    def _set_capped(self, site_id: str, capped: bool) -> None:
        if capped:
            self._capped_on[site_id] = spend.today()
        else:
            self._capped_on.pop(site_id, None)


class _Ear:
    """Listens in on one answer: whether anything was said, when it began, what it cost."""

    def __init__(self, endpoint: Endpoint, on_event: OnModelEvent) -> None:
        self.acted = False
        self._endpoint = endpoint
        self._on_event = on_event
        self._started = time.monotonic()
        self._text_bytes = 0
        self._usage: Usage | None = None

    async def hear(self, event: ModelEvent) -> None:
        if isinstance(event, Done):
            self._usage = event.usage
        elif isinstance(event, TextDelta):
            self._text_bytes += len(event.text.encode("utf-8", "replace"))
        if not self.acted:
            self.acted = True
            self._endpoint.breaker.succeeded()
            first_s = time.monotonic() - self._started
            instruments.llm_first_text_seconds.labels(self._endpoint.spec.quirks.name).observe(first_s)
        await self._on_event(event)

    def usage_of(self, request: ModelRequest) -> Usage | None:
        """What the server told, else an estimate for an answer that was stopped or told nothing; None if none began."""
        if self._usage is not None or not self.acted:
            return self._usage
        prompt_tokens = sum(message.tokens for message in request.messages)
        return Usage(prompt_tokens, tokens_of_bytes(self._text_bytes))
