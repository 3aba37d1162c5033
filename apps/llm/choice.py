"""One site's choice among its endpoints: the order a turn asks them in, and what it may ask beyond its first request.

Pure: the caller brings the clock (monotonic seconds).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from apps.llm.allowance import Allowance, Extra
from apps.llm.score import Candidate, Past, ranked, worth_a_try
from apps.llm.tactics import Tactics

KEPT_BROKEN = 1_000
# How many hedges, and tries of slow endpoints, may come in a row before only their share counts.
AT_ONCE = 2.0


class Choice:
    """Lives as long as the site is known to this process."""

    def __init__(self, tactics: Tactics) -> None:
        self.tactics = tactics
        self._extras = Allowance(tactics.extra_share, tactics.extra_at_once, tactics.extra_per_s)
        self._hedges = Allowance(tactics.hedged_share, AT_ONCE)
        self._tries = Allowance(tactics.explored_share, AT_ONCE)
        self._broke: OrderedDict[str, str] = OrderedDict()

    def turn(
        self, candidates: Sequence[Candidate], conversation: str, answered: str, now: float
    ) -> list[Candidate]:
        """A turn begins: whom to ask, first to last. `answered` is the endpoint of the conversation's last answer."""
        for allowance in (self._extras, self._hedges, self._tries):
            allowance.turn(now)
        order = self.likely(candidates, conversation, answered, now)
        # A conversation that has a cached prefix somewhere would lose it.
        if self.tactics.scored and self.tactics.explores and order and not (answered and self.tactics.sticky):
            tried = worth_a_try(order, now)
            if tried is not None and self._tries.take(now):
                order.remove(tried)
                order.insert(0, tried)
        return order

    def likely(
        self, candidates: Sequence[Candidate], conversation: str, answered: str, now: float
    ) -> list[Candidate]:
        """The order without a try: the first is the one that would most likely answer. Changes nothing."""
        past = Past(answered, self._broke.get(conversation, ""))
        return ranked(candidates, past, now, self.tactics)

    def answered(self, conversation: str) -> None:
        """The conversation has got a whole answer."""
        self._broke.pop(conversation, None)

    def broke(self, conversation: str, name: str) -> None:
        """The conversation's answer broke off at this endpoint: the next attempt goes elsewhere, if it can."""
        if not conversation:
            return
        self._broke[conversation] = name
        if len(self._broke) > KEPT_BROKEN:
            self._broke.popitem(last=False)

    def grants(self, extra: Extra, now: float) -> bool:
        """Whether one more request may be made; it counts as made. Hedges have a share of their own besides."""
        if extra is not Extra.HEDGE:
            return self._extras.take(now)
        return self._extras.has_one(now) and self._hedges.take(now) and self._extras.take(now)

    def hedge_after_s(self, asked: Candidate, others: Sequence[Candidate]) -> float | None:
        """How long to wait for a first text before one of the others is asked too; None: not at all.

        What is late is measured by whoever is usually soonest, so that a slow one that is tried keeps nobody waiting.
        """
        if not (self.tactics.hedges and others):
            return None
        late = [s for s in (one.form.late_s() for one in (asked, *others)) if s is not None]
        return max(min(late), self.tactics.hedged_after_s) if late else None
