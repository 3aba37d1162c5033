"""What a runner is given: the question, the model of its site, and how long it may take."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

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


@dataclass(frozen=True, slots=True)
class Job:
    """A question to answer. `retrieval` has been running since the question was received."""

    conversation: str
    site: SiteSettings
    asker: Asker
    locale: str
    question: str
    owner_version: int
    retrieval: StartedRetrieval
    waterfall: Waterfall

    def turn_input(self, context: Context) -> TurnInput:
        """What the engine is told, as things stand now."""
        site = self.site
        within_hours, _ = availability(site.hours, site.timezone, datetime.now(UTC))
        return TurnInput(
            conversation=self.conversation,
            question=self.question,
            locale=self.locale,
            verified=self.asker.verified,
            context=context,
            assistant=Assistant(site.assistant_name, site.name, site.instructions),
            teams=tuple(name for name, _ in site.teams),
            within_hours=within_hours,
        )


def job_for(
    asked: Said | Question,
    site: SiteSettings,
    appended: Appended,
    retrieval: StartedRetrieval,
    waterfall: Waterfall,
) -> Job:
    """The work on a question, under the owner that its commit has left."""
    return Job(
        conversation=asked.conversation,
        site=site,
        asker=asked.asker,
        locale=asked.locale,
        question=asked.text,
        owner_version=appended.standing.owner.version,
        retrieval=retrieval,
        waterfall=waterfall,
    )


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds. Whatever hangs below, a turn ends: by itself within these, or by the supervisor soon after."""

    history_s: float = 5.0  # what was said before must be read; without it there is no answer
    part_s: float = 105.0  # one part, its model included, whose own limit is 90 s
    store_s: float = 60.0  # a database that does not take the end is asked again for this long
    store_again_s: float = 0.5


class SiteModel:
    """The engine's model: the line of one site, or the builtin alone once the day's money is spent."""

    def __init__(self, runtime: Runtime, site: SiteSettings, waterfall: Waterfall, *, capped: bool) -> None:
        self._line = runtime.line
        self._site = site.id
        self._waterfall = waterfall
        self._capped = capped

    async def stream(self, request: ModelRequest, on_event: OnModelEvent) -> None:
        with waits.told_to(self._waterfall.add):
            await self._line.stream(self._site, request, on_event, force_builtin=self._capped)
