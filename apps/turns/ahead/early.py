"""The model is asked while its question is still being stored: what it says is told once the turn is open."""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import Final

from apps.accounts.resident import SiteSettings
from apps.engine.context import Context
from apps.llm import waits
from apps.telemetry import instruments
from apps.telemetry.waterfall import Waterfall
from apps.turns.ahead.answer import AnswerAhead
from apps.turns.ahead.expected import Asking, expected_prompt
from apps.turns.job import Said
from apps.turns.retrieval import StartedRetrieval
from apps.turns.runtime import Runtime

MAX_CONVERSATIONS: Final = 2_000  # whose newest question is remembered


class EarlyAnswers:
    """Owned by the process: knows each conversation's newest question, which may be sent again."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._newest: OrderedDict[str, str] = OrderedDict()  # by conversation, its client id

    def ask(self, site: SiteSettings | None, said: Said, retrieval: StartedRetrieval) -> EarlyAnswer | None:
        """None where it is not all but certain that this opens a turn that asks a model. No query, no waiting.

        What the database knows better, such as that an agent of another process has just taken the conversation,
        makes the answer useless, not wrong.
        """
        runtime = self._runtime
        if site is None or not site.assistant_enabled or site.capped:
            return None
        if self._newest.get(said.conversation) == said.client_id:
            return None  # sent again by a client that has not heard that it is stored
        context = runtime.contexts.awaiting(said.conversation)
        if context is None or not runtime.line.has_model(site.id):
            return None
        asked = Asking(said.conversation, said.asker, said.text, said.locale, retrieval)
        # Now: once the message is stored, it stands in the context itself.
        return EarlyAnswer(runtime, site, asked, context.with_question(said.text), said.received.started)

    def stored(self, said: Said) -> None:
        """The question has opened its turn."""
        self._newest.pop(said.conversation, None)
        self._newest[said.conversation] = said.client_id
        if len(self._newest) > MAX_CONVERSATIONS:
            self._newest.popitem(last=False)


class EarlyAnswer(AnswerAhead):
    """The turn's own request, sent before the turn is open. `received` is when the question was, monotonic."""

    def __init__(
        self, runtime: Runtime, site: SiteSettings, asked: Asking, context: Context, received: float
    ) -> None:
        self._runtime, self._site, self._asked, self._context = runtime, site, asked, context
        self._trace = Waterfall(started=received)
        super().__init__(runtime.spawn, "early answer")

    async def ask(self) -> None:
        runtime, site, asked = self._runtime, self._site, self._asked
        await runtime.answers.take_in(site, asked.text, asked.locale)
        request = await expected_prompt(runtime, site, asked, self._context, self._trace)
        if request is None:
            instruments.asked_early.labels("passed").inc()
            return
        self.request, self.began = request, time.monotonic()
        with waits.told_to(self._trace.add):
            await runtime.line.stream(site.id, request, self.hear)

    def count(self, fate: str) -> None:
        instruments.asked_early.labels(fate).inc()

    def mark_used(self, trace: Waterfall, waited_s: float) -> None:
        trace.asked_early(self._trace, self.began + (self.first_s or 0.0))
        trace.marks["asked_early_ms"] = f"{waited_s * 1000:.1f}"
        instruments.asked_early_seconds.inc(waited_s)
