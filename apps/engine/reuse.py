"""What one turn does with the answer cache: whether its question may be looked up, and its answer kept. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from apps.engine.cache import Answer, By, Question, alone, question_of
from apps.engine.events import Delta, Emit, Finished
from apps.engine.needs import needs_facts
from apps.engine.ports import AnswerCache, Trace
from apps.engine.rules import Decision
from apps.engine.types import Facts, Passage

CACHE = "cache"  # the mark, the stage, and the endpoint of an answer given again


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Who asks, and whether nothing was said in the conversation before."""

    verified: bool
    first: bool


class Reuse:
    """The cache as one turn may use it. Without one it does nothing and leaves no mark."""

    def __init__(
        self, answers: AnswerCache | None, asker: Asker, decision: Decision, text: str, locale: str
    ) -> None:
        self._answers = answers
        self._asker = asker
        self._decision = decision
        self._asked, self._why = _judged(asker, decision, text, locale) if answers is not None else (None, "")

    async def same_words(self, emit: Emit, trace: Trace) -> bool:
        """Gives the answer to the same words again; false where there is none. Marks what became of the cache."""
        if self._answers is None:
            return False
        if self._asked is None or not self._answers.open:
            trace.marks.update({CACHE: "off", "cache_off": self._why or "idle"})
            return False
        trace.marks[CACHE] = "miss"
        with trace.stage(CACHE):
            answer = await self._answers.exact(self._asked)
        return await _give(answer, By.EXACT, emit, trace)

    async def same_meaning(self, passages: Sequence[Passage], emit: Emit, trace: Trace) -> bool:
        """Gives the answer to the same question in other words again; false where there is none."""
        if self._answers is None or self._asked is None or not self._answers.open:
            return False
        with trace.stage(CACHE):
            look = await self._answers.similar(self._asked, passages)
        return await _give(look.answer, look.by, emit, trace)

    def anyones(self, facts: Facts) -> Question | None:
        """The question, where nothing in the prompt is the asker's own: a stranger's first, which no rule touched."""
        stranger = not (self._asker.verified or facts.profile is not None or facts.orders)
        return self._asked if stranger and self._asker.first and not self._decision.matched else None


def _judged(asker: Asker, decision: Decision, text: str, locale: str) -> tuple[Question | None, str]:
    """The question where another's answer may be its own; else None and why not."""
    if decision.instructions:
        return None, "rules"
    if asker.verified and needs_facts(text):
        return None, "facts"
    asked = question_of(text, locale)
    if asked is None:
        return None, "form"
    why = alone(asked.meaning, asker.first)
    return (None, why.value) if why is not None else (asked, "")


async def _give(answer: Answer | None, by: By | None, emit: Emit, trace: Trace) -> bool:
    if answer is None or by is None:
        return False
    trace.marks[CACHE] = by.value
    await emit(Delta(answer.text))
    await emit(Finished(answer.sources, endpoint=CACHE))
    return True
