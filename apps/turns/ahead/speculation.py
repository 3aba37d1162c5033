"""Answers begun before their question is sent, where a site has tokens for that: thrown away unless the very prompt of
a turn is the one that was guessed.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import Final

from apps.accounts.resident import SiteSettings
from apps.engine.budget import TokenBudget
from apps.engine.drafts import finished
from apps.engine.events import HandoffCall, ModelEvent
from apps.telemetry import instruments
from apps.telemetry.waterfall import Waterfall
from apps.turns.ahead.answer import AnswerAhead
from apps.turns.ahead.expected import Asking, prompt_of_draft
from apps.turns.runtime import Runtime

# For so long a sentence without an end must have stayed as it is, beyond the rest after which the widget tells it.
STABLE_S: Final = 0.4
# Of the process: questions that were sent must find the endpoints free.
MOST_AT_ONCE: Final = 4


class Speculations:
    """Owned by the process: the sites' budgets, and how many run."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.running = 0
        self._budgets: dict[str, TokenBudget] = {}

    def begin(self, site: SiteSettings, asking: Asking) -> Speculation | None:
        """None where the site has no tokens for it. Begins once the draft is finished, or stable for a while."""
        return Speculation(self, site, asking) if site.speculation_tokens else None

    def budget(self, site: SiteSettings) -> TokenBudget:
        """What the site may spend now."""
        held = self._budgets.get(site.id)
        if held is None or held.tokens_a_minute != site.speculation_tokens:
            held = self._budgets[site.id] = TokenBudget(site.speculation_tokens)
        return held


class Speculation(AnswerAhead):
    """One guess."""

    def __init__(self, owner: Speculations, site: SiteSettings, asking: Asking) -> None:
        self._owner, self._runtime = owner, owner.runtime
        self._site, self._asking = site, asking
        super().__init__(self._runtime.spawn, "speculation")

    async def ask(self) -> None:
        if not finished(self._asking.text):
            await asyncio.sleep(STABLE_S)
        try:
            await self._guess()
        except _Acted:
            self.fail("acted", "acted")

    async def hear(self, event: ModelEvent) -> None:
        if isinstance(event, HandoffCall) and not self.taken:
            raise _Acted
        await super().hear(event)

    def count(self, fate: str) -> None:
        instruments.speculations.labels(fate).inc()
        instruments.speculation_tokens.labels("used" if fate == "used" else "wasted").inc(self.spent())

    def mark_used(self, trace: Waterfall, waited_s: float) -> None:
        saved_s = waited_s if self.first_s is None else min(self.first_s, waited_s)
        instruments.speculation_saved_seconds.inc(saved_s)
        trace.marks.update({"speculation": "used", "speculation_saved_ms": f"{saved_s * 1000:.1f}"})

    async def _guess(self) -> None:
        owner, runtime, site = self._owner, self._runtime, self._site
        request = await prompt_of_draft(runtime, site, self._asking)
        if request is None:
            instruments.speculations.labels("passed").inc()
            return
        if not await runtime.line.has_room(site.id, request):
            instruments.speculations.labels("busy").inc()
            return
        budget, now = owner.budget(site), time.monotonic()
        asked = request.prompt_tokens + request.max_output_tokens
        if owner.running >= MOST_AT_ONCE or not budget.take(asked, now):
            instruments.speculations.labels("capped").inc()
            return
        self.request, self.began = request, now
        owner.running += 1
        try:
            # Of no conversation: a chain that was guessed wrong would cost the right one its place.
            await runtime.line.stream(site.id, replace(request, cache_key=""), self.hear, or_builtin=False)
        finally:
            owner.running -= 1
            budget.give_back(asked - self.spent())


class _Acted(Exception):
    """The model wants to do something: that is for a turn."""
