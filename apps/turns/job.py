"""What a runner is given: the question, the model of its site, and how long it may take."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from apps.accounts.hours import availability
from apps.accounts.resident import SiteSettings
from apps.conversations.commands import Appended
from apps.customers.facts import Asker
from apps.engine.context import Context
from apps.engine.events import OnModelEvent
from apps.engine.turn import TurnInput
from apps.engine.types import Assistant, ModelRequest
from apps.llm import waits
from apps.telemetry.waterfall import Waterfall
from apps.turns.questions import Question
from apps.turns.retrieval import StartedRetrieval
from apps.turns.runtime import Runtime


class Ahead(Protocol):
    """An answer that was begun before its turn was open."""

    def fits(self, request: ModelRequest) -> bool:
        """Whether it answers this prompt."""

    async def tell(self, on_event: OnModelEvent, trace: Waterfall) -> bool:
        """Streams it; false where it failed and nothing was told. Raises `ModelUnavailable`."""

    def end(self, fate: str) -> None:
        """Throws it away, unless it was told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A customer's message as the socket received it. `received` started when its bytes arrived."""

    conversation: str
    site: str
    asker: Asker
    name: str
    client_id: str
    text: str
    locale: str
    received: Waterfall
    drafted: StartedRetrieval | None = None  # the search of this text, begun while it was written
    ahead: Ahead | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """A question to answer. `retrieval` has been running since the question was received.

    `opened_seq` is the number of the last event of the commit that opened the turn; 0 where a repeat found it open, and
    where the question was read back.
    """

    conversation: str
    site: SiteSettings
    asker: Asker
    locale: str
    question: str
    owner_version: int
    opened_seq: int
    retrieval: StartedRetrieval
    waterfall: Waterfall
    ahead: Ahead | None = None

    def turn_input(self, context: Context) -> TurnInput:
        """What the engine is told, as things stand now."""
        return turn_input(
            self.site,
            conversation=self.conversation,
            question=self.question,
            locale=self.locale,
            verified=self.asker.verified,
            context=context,
        )


def assistant_of(site: SiteSettings) -> Assistant:
    """Who speaks for the site, as every prompt begins."""
    return Assistant(site.assistant_name, site.name, site.instructions)


def teams_of(site: SiteSettings) -> tuple[str, ...]:
    """The names of those a model may hand over to."""
    return tuple(name for name, _ in site.teams)


def turn_input(
    site: SiteSettings, *, conversation: str, question: str, locale: str, verified: bool, context: Context
) -> TurnInput:
    """A turn of the site as things stand now."""
    within_hours, _ = availability(site.hours, site.timezone, datetime.now(UTC))
    return TurnInput(
        conversation=conversation,
        question=question,
        locale=locale,
        verified=verified,
        context=context,
        assistant=assistant_of(site),
        teams=teams_of(site),
        within_hours=within_hours,
    )


def job_for(
    asked: Said | Question,
    site: SiteSettings,
    appended: Appended,
    retrieval: StartedRetrieval,
    waterfall: Waterfall,
    *,
    ahead: Ahead | None = None,
) -> Job:
    """The work on a question, under the owner that its commit has left."""
    return Job(
        conversation=asked.conversation,
        site=site,
        asker=asked.asker,
        locale=asked.locale,
        question=asked.text,
        owner_version=appended.standing.owner.version,
        opened_seq=appended.events[-1].seq if appended.events else 0,
        retrieval=retrieval,
        waterfall=waterfall,
        ahead=ahead,
    )


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds. Whatever hangs below, a turn ends: by itself within these, or by the supervisor soon after."""

    history_s: float = 5.0  # what was said before must be read; without it there is no answer
    part_s: float = 105.0  # one part, its model included, whose own limit is 90 s
    store_s: float = 60.0  # a database that does not take the end is asked again for this long
    store_again_s: float = 0.5


class SiteModel:
    """The engine's model: the line of one site, or the builtin alone once the day's money is spent.

    What was begun ahead answers, where it answers this very prompt.
    """

    def __init__(self, runtime: Runtime, job: Job, *, capped: bool) -> None:
        self._line = runtime.line
        self._site = job.site.id
        self._waterfall = job.waterfall
        self._ahead = job.ahead
        self._capped = capped

    async def stream(self, request: ModelRequest, on_event: OnModelEvent) -> None:
        ahead = self._ahead
        if ahead is not None and ahead.fits(request) and await ahead.tell(on_event, self._waterfall):
            return
        if ahead is not None:
            ahead.end("differed")
        with waits.told_to(self._waterfall.add):
            await self._line.stream(self._site, request, on_event, force_builtin=self._capped)
