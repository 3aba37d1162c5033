"""Answers begun before their question is sent, where a site has tokens for that: heard by nobody until the very prompt
of a turn is the one that was guessed, and thrown away otherwise.

Nothing here has an effect: no rule acts, nobody is handed over to, nothing is stored or told.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import Final

from apps.accounts.resident import SiteSettings
from apps.engine.budget import TokenBudget
from apps.engine.events import Done, HandoffCall, ModelEvent, OnModelEvent, TextDelta
from apps.engine.ports import ModelUnavailable
from apps.engine.tokens import tokens_of_bytes
from apps.engine.types import ModelRequest
from apps.telemetry import instruments
from apps.telemetry.waterfall import Waterfall
from apps.turns.ahead.expected import Drafted, expected_prompt
from apps.turns.runtime import Runtime

# For so long the draft must have stayed as it is, beyond the rest after which the widget tells it.
STABLE_S: Final = 0.4
# Of the process: questions that were sent must find the endpoints free.
MOST_AT_ONCE: Final = 4


class Speculations:
    """Owned by the process: the sites' budgets, and how many run."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.running = 0
        self._budgets: dict[str, TokenBudget] = {}

    def begin(self, site: SiteSettings, drafted: Drafted) -> Speculation | None:
        """None where the site has no tokens for it. Begins once the draft has been stable for a while."""
        return Speculation(self, site, drafted) if site.speculation_tokens else None

    def budget(self, site: SiteSettings) -> TokenBudget:
        """What the site may spend now."""
        held = self._budgets.get(site.id)
        if held is None or held.tokens_a_minute != site.speculation_tokens:
            held = self._budgets[site.id] = TokenBudget(site.speculation_tokens)
        return held


class Speculation:
    """One guess. `tell` gives it to its turn; `end` throws it away. Whichever comes first counts."""

    def __init__(self, owner: Speculations, site: SiteSettings, drafted: Drafted) -> None:
        self._owner, self._runtime = owner, owner.runtime
        self._site, self._drafted = site, drafted
        self._request: ModelRequest | None = None
        self._began = 0.0
        self._first_s: float | None = None  # after which the model spoke
        self._heard: list[ModelEvent] = []
        self._failure = ""
        self._over = False  # nothing more comes
        self._taken = self._ended = False
        self._changed = asyncio.Event()
        self._task = self._runtime.spawn(self._run(), "speculation")

    def begun(self) -> bool:
        """Whether a model has been asked."""
        return self._request is not None

    def fits(self, request: ModelRequest) -> bool:
        """Whether it answers this prompt, byte for byte: rules, articles, facts and history are then the same too."""
        guessed = self._request
        return (
            guessed is not None
            and not (self._failure or self._taken or self._ended)
            and (guessed.messages, guessed.teams, guessed.max_output_tokens)
            == (request.messages, request.teams, request.max_output_tokens)
        )

    async def tell(self, on_event: OnModelEvent, trace: Waterfall) -> bool:
        """What was said already at once, and the rest as it comes. False where it failed and nothing was told.

        Raises `ModelUnavailable` when it broke off later. Cancelling it stops the model.
        """
        self._taken = True
        waited_s = time.monotonic() - self._began
        saved_s = waited_s if self._first_s is None else min(self._first_s, waited_s)
        told = 0
        try:
            while not (self._over and told == len(self._heard)):
                self._changed.clear()
                news = self._heard[told:]
                if news and not told:
                    instruments.speculation_saved_seconds.inc(saved_s)
                    trace.marks.update(
                        {"speculation": "used", "speculation_saved_ms": f"{saved_s * 1000:.1f}"}
                    )
                told += len(news)
                for event in _joined(news):
                    await on_event(event)
                if not (self._over or told < len(self._heard)):
                    await self._changed.wait()
        finally:
            self._task.cancel()
            self._count("used" if told else "failed")
        if told and self._failure:
            raise ModelUnavailable(self._failure, said=True)
        return not self._failure

    def end(self, fate: str) -> None:
        """It is of no use: `changed`, `replaced`, `left`, `differed` …"""
        if self._taken or self._ended:
            return
        self._ended = True
        self._task.cancel()
        if self.begun():
            self._count(fate)

    async def _run(self) -> None:
        try:
            await asyncio.sleep(STABLE_S)
            await self._guess()
        except ModelUnavailable as unavailable:
            self._fail(unavailable.reason, "failed")
        except _Acted:
            self._fail("acted", "acted")
        except Exception:
            self._fail("broken", "failed")
            raise
        finally:
            self._over = True
            self._changed.set()

    def _fail(self, reason: str, fate: str) -> None:
        self._failure = reason
        if not (self._taken or self._ended):
            self._ended = True
            self._count(fate)

    async def _guess(self) -> None:
        owner = self._owner
        request = await expected_prompt(self._runtime, self._site, self._drafted)
        if request is None:
            instruments.speculations.labels("passed").inc()
            return
        if not await self._runtime.line.has_room(self._site.id, request):
            instruments.speculations.labels("busy").inc()
            return
        budget, now = owner.budget(self._site), time.monotonic()
        asked = request.prompt_tokens + request.max_output_tokens
        if owner.running >= MOST_AT_ONCE or not budget.take(asked, now):
            instruments.speculations.labels("capped").inc()
            return
        self._request, self._began = request, now
        owner.running += 1
        try:
            # Of no conversation: a chain that was guessed wrong would cost the right one its place.
            await self._runtime.line.stream(
                self._site.id, replace(request, cache_key=""), self._hear, or_builtin=False
            )
        finally:
            owner.running -= 1
            budget.give_back(asked - self._spent())

    async def _hear(self, event: ModelEvent) -> None:
        if isinstance(event, HandoffCall) and not self._taken:
            raise _Acted
        if self._first_s is None:
            self._first_s = time.monotonic() - self._began
        self._heard.append(event)
        self._changed.set()

    def _count(self, fate: str) -> None:
        instruments.speculations.labels(fate).inc()
        instruments.speculation_tokens.labels("used" if fate == "used" else "wasted").inc(self._spent())

    def _spent(self) -> int:
        """Prompt, and answer so far; as the model told, else estimated."""
        for event in self._heard:
            if isinstance(event, Done) and event.usage is not None:
                return event.usage.prompt_tokens + event.usage.completion_tokens
        said = sum(len(event.text.encode()) for event in self._heard if isinstance(event, TextDelta))
        return (self._request.prompt_tokens if self._request is not None else 0) + tokens_of_bytes(said)


class _Acted(Exception):
    """The model wants to do something: that is for a turn."""


def _joined(events: list[ModelEvent]) -> list[ModelEvent]:
    """The same with texts that follow one another as one."""
    joined: list[ModelEvent] = []
    for event in events:
        last = joined[-1] if joined else None
        if isinstance(event, TextDelta) and isinstance(last, TextDelta):
            joined[-1] = TextDelta(last.text + event.text)
        else:
            joined.append(event)
    return joined
