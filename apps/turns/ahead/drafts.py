"""While the customer types: begins what the question will need. A draft stays in this process's memory, and there only
until the next one. It is never stored, logged, shown, nor sent to another process.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Final

from apps.accounts.resident import SiteSettings
from apps.customers.facts import Asker, Refreshed
from apps.engine.drafts import Step, Typing
from apps.engine.needs import needs_facts
from apps.telemetry import instruments
from apps.telemetry.waterfall import Waterfall
from apps.turns.ahead.expected import Asking
from apps.turns.ahead.speculation import Speculation, Speculations
from apps.turns.ahead.warmups import Warmups
from apps.turns.retrieval import StartedRetrieval
from apps.turns.runtime import Runtime
from apps.wire.protocol import DRAFT_LIMIT_CHARACTERS, DRAFT_PAUSE_S

# Of the process: questions that were sent must find the embedding model free.
MAX_SEARCHES: Final = 2
# A copy of a customer's facts that lives so long still serves the question.
FACTS_SERVE_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Draft:
    """What a customer is writing, from whom and where. `number` grows with every draft of the client."""

    conversation: str
    site: str
    asker: Asker
    text: str
    number: int
    locale: str


@dataclass(frozen=True, slots=True)
class Begun:
    """What was begun for the very text that was sent, for its turn to take over."""

    search: StartedRetrieval | None = None
    ahead: Speculation | None = None


class Drafts:
    """Owned by the process. When too many searches of drafts run, further ones are dropped."""

    def __init__(self, runtime: Runtime, warmups: Warmups) -> None:
        self.runtime = runtime
        self.warmups = warmups
        self.speculations = Speculations(runtime)
        self._searches: list[StartedRetrieval] = []

    def search(self, site: SiteSettings, text: str, locale: str) -> StartedRetrieval | None:
        """None where as many run as may."""
        self._searches = [search for search in self._searches if search.running]
        if len(self._searches) >= MAX_SEARCHES:
            instruments.drafts.labels("busy").inc()
            return None
        runtime = self.runtime
        search = StartedRetrieval(runtime.spawn, runtime.knowledge, site=site.id, text=text, locale=locale)
        self._searches.append(search)
        return search


class Drafting:
    """The drafts of one client: the newest wins, and nothing outlives the connection."""

    def __init__(self, drafts: Drafts) -> None:
        self._drafts = drafts
        self._runtime = drafts.runtime
        self._typing = Typing(shortest_pause_s=DRAFT_PAUSE_S, most_characters=DRAFT_LIMIT_CHARACTERS)
        self._conversation = ""
        self._search: StartedRetrieval | None = None
        self._ahead: Speculation | None = None
        self._looking: asyncio.Task[None] | None = None
        self._refreshing: asyncio.Task[None] | None = None
        self._refreshed_at = float("-inf")
        self._fetched = False
        self._searched, self._wasted_s = 0, 0.0  # since the last message

    def heard(self, draft: Draft) -> None:
        """Begins what this text needs. Nothing where the site does not want it; then nothing is kept either."""
        site = self._runtime.sites.current(draft.site)
        if site is None or not (site.reads_drafts and site.assistant_enabled):
            self._typing.forget()
            self._let_go("left")
            return
        if draft.conversation != self._conversation:
            self._typing.forget()
            self._let_go("replaced")
            self._conversation = draft.conversation
        match self._typing.heard(draft.text, draft.number, time.monotonic()):
            case Step.SEARCH:
                self._let_go("replaced")
                self._begin(site, draft)
            case Step.LET_GO:
                self._let_go("replaced")
            case Step.KEEP:
                pass

    def sent(self, conversation: str, text: str, trace: Waterfall) -> Begun:
        """The search and the answer of this very text, if they were begun; nothing else that was begun goes on.

        Marks what drafts have saved and wasted since the last message.
        """
        ahead: Speculation | None = None
        search, same = self._search, self._typing.sent(text) and conversation == self._conversation
        if search is not None and same and search.serves_yet:
            self._search = None
            if self._ahead is not None and self._ahead.begun():
                ahead, self._ahead = self._ahead, None
            self._end_ahead("unneeded")  # no model was asked: nothing to be counted
            self._searched += 1
            instruments.drafts.labels("used").inc()
            instruments.drafts_saved_seconds.inc(search.ran_s)
            trace.marks.update({"retrieval": "draft", "draft_saved_ms": f"{search.ran_s * 1000:.1f}"})
        else:
            search = None
            self._let_go("stale" if same else "changed")
        if self._searched:
            trace.marks.update(
                {"drafts": str(self._searched), "draft_wasted_ms": f"{self._wasted_s * 1000:.1f}"}
            )
        if self._fetched:
            instruments.prefetched.labels("used" if needs_facts(text) else "wasted").inc()
        self._searched, self._wasted_s, self._fetched = 0, 0.0, False
        return Begun(search, ahead)

    def left(self) -> None:
        """The client is gone."""
        self._let_go("left")
        for task in (self._looking, self._refreshing):
            if task is not None:
                task.cancel()

    def _begin(self, site: SiteSettings, draft: Draft) -> None:
        text, spawn = self._typing.text, self._runtime.spawn
        self._search = self._drafts.search(site, text, draft.locale)
        if self._search is None:
            self._typing.forget()
            return
        asking = Asking(draft.conversation, draft.asker, draft.text.strip(), draft.locale, self._search)
        self._ahead = self._drafts.speculations.begin(site, asking)
        self._looking = spawn(self._runtime.answers.take_in(site, text, draft.locale), "answers for a draft")
        self._drafts.warmups.typing(site, asking)
        due = time.monotonic() - self._refreshed_at > FACTS_SERVE_S
        if due and draft.asker.verified and needs_facts(text):
            self._refreshed_at = time.monotonic()
            self._refreshing = spawn(self._refresh(draft.asker), "facts for a draft")

    async def _refresh(self, asker: Asker) -> None:
        refreshed = await self._runtime.facts.refresh(asker, outlives_s=FACTS_SERVE_S)
        instruments.prefetches.labels(refreshed.value).inc()
        self._fetched = refreshed is Refreshed.FETCHED

    def _let_go(self, fate: str) -> None:
        """What was begun is of no use any more."""
        self._end_ahead(fate)
        search, self._search = self._search, None
        if search is None:
            return
        search.cancel()
        self._drafts.warmups.end(self._conversation)
        self._searched += 1
        self._wasted_s += search.ran_s
        instruments.drafts.labels(fate).inc()
        instruments.drafts_wasted_seconds.inc(search.ran_s)
        if self._looking is not None:
            self._looking.cancel()

    def _end_ahead(self, fate: str) -> None:
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            ahead.end(fate)
