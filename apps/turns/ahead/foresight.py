"""While the customer reads an answer: has ready what the next question probably needs. Nothing waits for it.

Only facts take time to fetch. Articles and their vectors are resident, and the prompt's prefix was just used.
"""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import Final

from apps.customers.facts import Asker, FactSources, Refreshed
from apps.engine.needs import needs_facts
from apps.engine.observing import Need, expected_needs
from apps.engine.prediction import Predictor
from apps.engine.preparing import MIN_CHANCE, Record, may_start
from apps.stores.database import in_database
from apps.telemetry import instruments
from apps.turns.ahead.learned import Learned, LearnedResident, moves_of
from apps.turns.spawn import Spawn

MAX_A_CONVERSATION: Final = 5
MAX_A_SITE: Final = 30  # in a minute, by this process
MAX_CONVERSATIONS: Final = 2_000  # whose expectations are remembered
FORGOTTEN_AFTER_S: Final = 600.0
# A copy must outlive so many usual pauses: were pauses exponential, 7 of 8 customers would have written by then.
PAUSES: Final = 3.0


@dataclass(frozen=True, slots=True)
class Answered:
    """A turn that has ended as it should; `processing_s` is what it took."""

    site: str
    conversation: str
    asker: Asker
    question: str
    processing_s: float


@dataclass(slots=True)
class _Outlook:
    """What was expected of a conversation after its last answer, and what was done about it so far."""

    site: str
    at: float = 0.0
    expected: dict[Need, float] = field(default_factory=dict)
    fetched: bool = False
    fetches: int = 0


class Foresight:
    """Owned by the web process. What it remembers is its own measure of itself, and gone with it."""

    def __init__(self, learned: LearnedResident, facts: FactSources, spawn: Spawn) -> None:
        self._learned = learned
        self._facts = facts
        self._spawn = spawn
        self._records: dict[str, Record] = {}
        self._fetches: dict[str, deque[float]] = {}
        self._outlooks: OrderedDict[str, _Outlook] = OrderedDict()  # the last answered last

    def answered(self, turn: Answered) -> None:
        """Settles what was expected of the turn's question, and looks ahead in a task of its own."""
        self._forget_old()
        learned = self._learned.loaded(turn.site)
        if learned is None or not turn.asker.verified:
            return
        outlook = self._outlooks.pop(turn.conversation, None) or _Outlook(turn.site)
        self._settle(outlook, {Need.FACTS} if needs_facts(turn.question) else set())
        outlook.at = time.monotonic()
        self._outlooks[turn.conversation] = outlook
        self._spawn(self._look_ahead(turn, learned, outlook), "foresight")

    async def _look_ahead(self, turn: Answered, learned: Learned, outlook: _Outlook) -> None:
        chances = await in_database(_expected, learned.predictor, turn.conversation)
        # What is likely is settled even when it is not acted on: a record that was bad could not mend otherwise.
        outlook.expected = {need: chance for need, chance in chances.items() if chance >= MIN_CHANCE}
        if Need.FACTS not in self._record(outlook.site).chosen(chances):
            return
        if not may_start(learned.pause_s, turn.processing_s):
            instruments.prefetches.labels("busy").inc()
            return
        began = self._reserve(outlook)
        if began is None:
            instruments.prefetches.labels("capped").inc()
            return
        refreshed = await self._facts.refresh(turn.asker, outlives_s=PAUSES * learned.pause_s)
        instruments.prefetches.labels(refreshed.value).inc()
        if refreshed in (Refreshed.FRESH, Refreshed.NOTHING):
            self._give_back(outlook, began)
        outlook.fetched = refreshed is Refreshed.FETCHED

    def _settle(self, outlook: _Outlook, came: set[Need]) -> None:
        if not outlook.expected:
            return
        hits = self._record(outlook.site).settle(outlook.expected, came)
        instruments.predictions.labels("hit").inc(hits)
        instruments.predictions.labels("miss").inc(len(outlook.expected) - hits)
        if outlook.fetched:
            instruments.prefetched.labels("used" if Need.FACTS in came else "wasted").inc()
        outlook.expected, outlook.fetched = {}, False

    def _record(self, site: str) -> Record:
        return self._records.setdefault(site, Record())

    def _reserve(self, outlook: _Outlook) -> float | None:
        """Counts a fetch against both caps before it begins; None when one is reached."""
        now = time.monotonic()
        recent = self._fetches.setdefault(outlook.site, deque())
        while recent and now - recent[0] > 60:
            recent.popleft()
        if outlook.fetches >= MAX_A_CONVERSATION or len(recent) >= MAX_A_SITE:
            return None
        outlook.fetches += 1
        recent.append(now)
        return now

    def _give_back(self, outlook: _Outlook, began: float) -> None:
        outlook.fetches -= 1
        self._fetches[outlook.site].remove(began)

    def _forget_old(self) -> None:
        """Customers who did not come back have needed nothing."""
        now = time.monotonic()
        while self._outlooks:
            conversation, oldest = next(iter(self._outlooks.items()))
            if now - oldest.at < FORGOTTEN_AFTER_S and len(self._outlooks) < MAX_CONVERSATIONS:
                return
            del self._outlooks[conversation]
            self._settle(oldest, set())


def _expected(predictor: Predictor, conversation: str) -> dict[Need, float]:
    return expected_needs(predictor, moves_of(conversation))
