"""The line to the models: which endpoint answers, what happens when it cannot, and who answers then."""

from __future__ import annotations

import asyncio
import datetime as dt
import logging
import time
from dataclasses import dataclass
from functools import partial

from django.db import Error as DatabaseFailure

from apps.engine.events import Done, ModelEvent, OnModelEvent, TextDelta
from apps.engine.ports import ModelUnavailable
from apps.engine.tokens import tokens_of_bytes
from apps.engine.types import ModelRequest, Usage
from apps.llm import records, spend, waits
from apps.llm.allowance import Extra, granted, granted_by
from apps.llm.choice import Choice
from apps.llm.deadlines import Deadlines
from apps.llm.endpoint import Endpoint
from apps.llm.errors import LlmError, is_unreliable
from apps.llm.journal import OK, Journal
from apps.llm.keeper import Keeper
from apps.llm.pool import Pool
from apps.llm.providers import builtin
from apps.llm.race import Ask, Race, Track
from apps.llm.score import Candidate
from apps.llm.spec import EndpointSpec
from apps.llm.tactics import Tactics
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


@dataclass(frozen=True, slots=True)
class _Known:
    """An endpoint as its site means it, and as this process holds it."""

    spec: EndpointSpec
    endpoint: Endpoint

    @property
    def candidate(self) -> Candidate:
        spec = self.spec
        return Candidate(spec.name, spec.region, spec.priority, self.endpoint.in_flight, self.endpoint.form)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A turn's question. `turn_ends` is loop time."""

    site_id: str
    request: ModelRequest
    on_event: OnModelEvent
    turn_ends: float


class Line:
    """One a web process. `open` and `close` it on the loop; `refresh`, `loaded_version`, `forget` from any thread."""

    def __init__(self, deadlines: Deadlines | None = None, tactics: Tactics | None = None) -> None:
        self._deadlines = deadlines or Deadlines()
        self._tactics = tactics or Tactics()
        self._journal = Journal()
        self._pool = Pool(self._deadlines, self._journal, self._tactics)
        self._keeper = Keeper(self._pool, self._journal, self._wanted, self._set_capped)
        self._rosters: dict[str, _Roster] = {}
        self._choices: dict[str, Choice] = {}
        self._capped_on: dict[str, dt.date] = {}

    async def open(self) -> None:
        """Warms what is known so far, for at most two seconds; the keeper goes on until `close`."""
        await self._keeper.open(OPEN_WAITS_S)

    async def close(self) -> None:
        """Writes the last notes and closes every connection. Answers should have ended before."""
        await self._keeper.close()
        await self._pool.close()

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
        self._choices.pop(site_id, None)
        self._capped_on.pop(site_id, None)
        self._keeper.endpoints_changed()

    async def stream(
        self,
        site_id: str,
        request: ModelRequest,
        on_event: OnModelEvent,
        *,
        force_builtin: bool = False,
        or_builtin: bool = True,
    ) -> None:
        """Answers from the best endpoint that can, else from `builtin`; `on_event` gets the pieces, then `Done`.

        Another endpoint is tried only while nothing was said, and within what a site's turns may ask in addition.
        Raises `ModelUnavailable` (said) when an answer broke off, and whatever `on_event` raises. Cancelling closes
        the request to the model. Spend is booked here. Unless `or_builtin`, it raises where no endpoint answers.
        """
        if force_builtin or self._capped_on.get(site_id) == spend.today():
            await self._answer_builtin(request, on_event, "forced" if force_builtin else "capped")
            return
        choice = self._choice(site_id)
        asked = _Asked(site_id, request, on_event, _now() + self._deadlines.turn_s)
        endpoints = await self._endpoints(site_id)
        order = choice.turn(
            [one.candidate for one in endpoints.values()], request.cache_key, request.endpoint, _now()
        )
        with granted_by(partial(_grant, choice)):
            reason = await self._ask_in_turn(asked, choice, [endpoints[one.name] for one in order])
        if reason is None:
            return
        if not or_builtin:
            raise ModelUnavailable(reason)
        if reason != "no_endpoint":
            logger.warning("site %s: the builtin answers, no endpoint could: %s", site_id, reason)
        await self._answer_builtin(request, on_event, reason)

    def has_model(self, site_id: str) -> bool:
        """Whether the site has an endpoint, and money for it."""
        roster = self._rosters.get(site_id)
        return roster is not None and bool(roster.specs) and self._capped_on.get(site_id) != spend.today()

    async def has_room(self, site_id: str, request: ModelRequest) -> bool:
        """Whether the endpoint that would answer this can do so without keeping a question waiting."""
        endpoints = await self._endpoints(site_id)
        ready = [one.candidate for one in endpoints.values() if one.endpoint.ready]
        likely = self._choice(site_id).likely(ready, request.cache_key, request.endpoint, _now())[:1]
        return any(endpoints[one.name].endpoint.spare for one in likely)

    def prepares(self, site_id: str) -> bool:
        """Whether some endpoint of the site may read ahead of questions, and the site's money is not used up."""
        roster = self._rosters.get(site_id)
        wanted = roster is not None and any(spec.prepare_prompts for spec in roster.specs)
        return wanted and self._capped_on.get(site_id) != spend.today()

    async def prepare(self, site_id: str, request: ModelRequest) -> Usage | None:
        """Has the endpoint that would answer read what is known before the question, where that is switched on.

        Gives way to answers and fails silently. What was read is booked as spent and returned; None when nothing was.
        Cancelling it stops the model where the server allows.
        """
        endpoints = await self._endpoints(site_id)
        ready = [one.candidate for one in endpoints.values() if one.endpoint.ready]
        if not (ready and self.prepares(site_id)):
            return None
        likely = self._choice(site_id).likely(ready, request.cache_key, request.endpoint, _now())[0]
        return await self._prepare(site_id, endpoints[likely.name], request)

    async def prepare_all(self, site_id: str, request: ModelRequest) -> list[Usage]:
        """The same at every endpoint of the site, one after the other: for what all its prompts begin with."""
        endpoints = await self._endpoints(site_id)
        ready = [one for one in endpoints.values() if one.endpoint.ready and self.prepares(site_id)]
        told = [await self._prepare(site_id, one, request) for one in ready]
        return [usage for usage in told if usage is not None]

    async def _prepare(self, site_id: str, known: _Known, request: ModelRequest) -> Usage | None:
        usage = await known.endpoint.prepare(request)
        if usage is not None:
            self._journal.spent(site_id, known.spec.id, usage)
            self._keeper.noted()
        return usage

    async def _ask_in_turn(self, asked: _Asked, choice: Choice, order: list[_Known]) -> str | None:
        """None when one has answered, else why the builtin must."""
        reason, begun = "no_endpoint", False
        while order:
            known = order.pop(0)
            if not known.endpoint.allows():
                reason = "resting"
                continue
            if begun and not granted(Extra.ELSEWHERE):
                return "budget"
            begun = True
            failure = await self._ask(asked, choice, known, order)
            if failure is None:
                return None
            reason = failure.label
            if not failure.elsewhere or _now() >= asked.turn_ends:
                break
        return reason

    async def _ask(
        self, asked: _Asked, choice: Choice, known: _Known, others: list[_Known]
    ) -> LlmError | None:
        """Asks one and, where that is allowed, a second of `others` when it is late; that one is taken out."""
        equals = [one for one in others if one.spec.priority == known.spec.priority and one.endpoint.ready]
        after_s = choice.hedge_after_s(known.candidate, [one.candidate for one in equals])
        if after_s is None:
            return await self._answer(asked, choice, known, None)
        race = Race(asked.on_event)

        def second() -> Ask | None:
            if not granted(Extra.HEDGE):
                return None
            hedge = next((one for one in equals if one.endpoint.allows()), None)
            if hedge is None:
                return None
            others.remove(hedge)
            return partial(self._answer_aside, asked, choice, hedge)

        failure = await race.run(partial(self._answer, asked, choice, known), second, after_s)
        if race.hedged:
            instruments.llm_hedges.labels("won" if race.second_won else "lost").inc()
        return failure

    async def _answer_aside(
        self, asked: _Asked, choice: Choice, known: _Known, track: Track
    ) -> LlmError | None:
        """A second one, while the turn's waterfall shows what the first waits for."""
        with waits.told_to(lambda *_: None):
            return await self._answer(asked, choice, known, track)

    async def _answer(
        self, asked: _Asked, choice: Choice, known: _Known, track: Track | None
    ) -> LlmError | None:
        """None when it answered, the failure when another may try. Raises `ModelUnavailable` when words were said."""
        spec, endpoint = known.spec, known.endpoint
        ear = _Ear(endpoint, asked.on_event if track is None else track.hear)
        outcome = "stopped"
        try:
            await endpoint.stream(asked.request, ear.hear, asked.turn_ends, ear.begun)
            outcome = "ok"
            choice.answered(asked.request.cache_key)
            self._journal.health(spec.id, OK)
        except LlmError as error:
            outcome = error.label
            self._journal.health(spec.id, error.label)
            logger.warning("endpoint %s failed: %s (%s)", spec.name, error.label, error)
            if is_unreliable(error):
                endpoint.form.failed(_now())
            if ear.acted:
                choice.broke(asked.request.cache_key, spec.name)
                raise ModelUnavailable(error.label, said=True) from error
            return error
        finally:
            if outcome == "stopped":
                outcome = ear.stopped(track)
                self._keeper.endpoints_changed()
            instruments.llm_answers.labels(spec.quirks.name, outcome).inc()
            self._book(asked.site_id, endpoint, ear.usage_of(asked.request))
        return None

    async def _answer_builtin(self, request: ModelRequest, on_event: OnModelEvent, reason: str) -> None:
        instruments.llm_builtin_answers.labels(reason).inc()
        await builtin.stream(request, on_event)

    def _choice(self, site_id: str) -> Choice:
        if site_id not in self._choices:
            self._choices[site_id] = Choice(self._tactics)
        return self._choices[site_id]

    async def _endpoints(self, site_id: str) -> dict[str, _Known]:
        """By name, as the site's row orders them."""
        return {spec.name: _Known(spec, self._pool.endpoint(spec)) for spec in await self._specs(site_id)}

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
        self._begun = False
        self._stopped = False

    def begun(self) -> None:
        """It has its place: from here on the prompt counts as read, though connecting may still fail."""
        self._begun = True

    async def hear(self, event: ModelEvent) -> None:
        if isinstance(event, Done):
            self._usage = event.usage
        elif isinstance(event, TextDelta):
            self._text_bytes += len(event.text.encode("utf-8", "replace"))
        if not self.acted:
            self.acted = True
            self._endpoint.breaker.succeeded()
            first_s = time.monotonic() - self._started
            self._endpoint.form.began(first_s, _now())
            instruments.llm_first_text_seconds.labels(self._endpoint.spec.quirks.name).observe(first_s)
        await self._on_event(event)

    def stopped(self, track: Track | None) -> str:
        """It was cancelled: by the customer, as of no use, or for a sooner endpoint. What had its place is paid for."""
        self._stopped = True
        if not self.acted:
            self._endpoint.form.gave_up(time.monotonic() - self._started, _now())
        return "lost" if track is not None and track.lost else "stopped"

    def usage_of(self, request: ModelRequest) -> Usage | None:
        """What the server told; else an estimate if it had spoken, or was stopped after it had its place; else None."""
        if self._usage is not None or not (self.acted or (self._stopped and self._begun)):
            return self._usage
        return Usage(request.prompt_tokens, tokens_of_bytes(self._text_bytes))


def _grant(choice: Choice, extra: Extra) -> bool:
    granted = choice.grants(extra, _now())
    instruments.llm_extra_requests.labels(extra.value, "made" if granted else "refused").inc()
    return granted


def _now() -> float:
    return asyncio.get_running_loop().time()
