"""What a turn gives again, what it may keep, and that neither is ever somebody's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from apps.engine import turn as engine
from apps.engine.cache import Answer, By, Look, Question, question_of
from apps.engine.context import Context
from apps.engine.events import (
    Delta,
    Done,
    Finished,
    HandoffCall,
    ModelEvent,
    OnModelEvent,
    TextDelta,
    TurnEvent,
)
from apps.engine.ports import ModelUnavailable
from apps.engine.rules import Decision, RuleInput
from apps.engine.types import (
    Assistant,
    Facts,
    FactsState,
    ModelRequest,
    Order,
    Passage,
    Profile,
    Speaker,
)
from apps.telemetry.waterfall import Waterfall

VISITOR = Facts(verified=False, state=FactsState.NONE)
RETURNS = Passage("Returns", "Thirty days.", "https://shop.example/r", 0.9, answerable=True)
SOURCES = (("Returns", "https://shop.example/r"),)
GIVEN = Answer("en", "can i return a kettle", "Within thirty days.", SOURCES, None, 0.0)
QUESTION = "Can I return a kettle?"
AGAIN = [Delta("Within thirty days."), Finished(SOURCES, endpoint="cache")]


@dataclass
class Cache:
    """Has what it is told, by words or by likeness; remembers what it was asked."""

    words: Answer | None = None
    like: Answer | None = None
    open: bool = True
    asked: list[tuple[str, str]] = field(default_factory=list)

    async def exact(self, question: Question) -> Answer | None:
        self.asked.append(("exact", question.plain))
        return self.words

    async def similar(self, question: Question, passages: Sequence[Passage]) -> Look:
        self.asked.append(("similar", ", ".join(p.title for p in passages)))
        return Look(self.like, By.SIMILAR if self.like else None)


@dataclass
class Asked:
    """A turn's outside, as `Turn` needs it."""

    says: tuple[ModelEvent, ...] = (TextDelta("Thirty days."), Done("stop", None, "first"))
    known: Facts = VISITOR
    decision: Decision = field(default_factory=Decision)
    passages_found: tuple[Passage, ...] = (RETURNS,)
    searched: int = 0
    modelled: int = 0

    async def stream(self, request: ModelRequest, on_event: OnModelEvent) -> None:
        self.modelled += 1
        for event in self.says:
            await on_event(event)

    async def facts(self, needed: bool, deadline_s: float) -> Facts:
        return self.known

    async def passages(self) -> tuple[Passage, ...]:
        self.searched += 1
        return self.passages_found

    def decide(self, given: RuleInput) -> Decision:
        return self.decision


async def turn(
    cache: Cache | None, outside: Asked, text: str = QUESTION, before: Sequence[str] = ()
) -> tuple[list[TurnEvent], dict[str, str]]:
    """One turn; what it emitted and what its trace says of the cache."""
    context, trace, emitted = Context(), Waterfall(), []
    for place, said in enumerate((*before, text), start=1):
        context.add(place, Speaker.CUSTOMER, said)
    given = engine.TurnInput(
        conversation="c",
        question=text,
        locale="en",
        verified=outside.known.verified,
        context=context,
        assistant=Assistant("Lumen", "Lantern", ""),
        teams=(),
        within_hours=True,
    )

    async def emit(event: TurnEvent) -> None:
        emitted.append(event)

    await engine.run(given, engine.Ports(outside, outside, outside, outside, cache), emit, trace)
    return emitted, {name: value for name, value in trace.marks.items() if name.startswith("cache")}


def kept(emitted: list[TurnEvent]) -> bool:
    [*_, finished] = emitted
    assert isinstance(finished, Finished)
    assert finished.reusable in (None, question_of(QUESTION, "en"))
    return finished.reusable is not None


async def test_the_same_words_are_answered_before_search_and_model() -> None:
    outside = Asked()
    assert await turn(Cache(words=GIVEN), outside) == (AGAIN, {"cache": "exact"})
    assert (outside.searched, outside.modelled) == (0, 0)


async def test_the_same_meaning_is_answered_after_the_search_and_without_the_model() -> None:
    outside, cache = Asked(), Cache(like=GIVEN)
    assert await turn(cache, outside) == (AGAIN, {"cache": "similar"})
    assert (outside.searched, outside.modelled) == (1, 0)
    assert cache.asked == [("exact", "can i return a kettle"), ("similar", "Returns")]


async def test_what_is_not_found_is_answered_by_the_model_and_may_be_kept() -> None:
    emitted, marks = await turn(Cache(), Asked())
    assert (emitted[0], marks, kept(emitted)) == (Delta("Thirty days."), {"cache": "miss"}, True)


async def test_without_a_cache_the_trace_does_not_speak_of_it() -> None:
    emitted, marks = await turn(None, Asked())
    assert (marks, kept(emitted)) == ({}, False)


async def test_an_idle_cache_is_not_asked_but_goes_on_keeping() -> None:
    cache = Cache(words=GIVEN, like=GIVEN, open=False)
    emitted, marks = await turn(cache, Asked())
    assert (cache.asked, marks) == ([], {"cache": "off", "cache_off": "idle"})
    assert kept(emitted)


@pytest.mark.parametrize(
    ("text", "before", "outside", "why"),
    [
        ("Where is my order?", (), Asked(), "personal"),
        ("Is it open today?", (), Asked(), "passing"),
        ("How long does it take?", (), Asked(), "context"),
        ("How long is the warranty?", ("Do you sell kettles?",), Asked(), "context"),
        ("x" * 201, (), Asked(), "form"),
        (QUESTION, (), Asked(decision=Decision(instructions=("Be brief.",), matched=("short",))), "rules"),
        (QUESTION, (), Asked(known=Facts(verified=True, state=FactsState.NONE)), "facts"),
    ],
)
async def test_what_another_may_not_be_told_is_neither_looked_up_nor_kept(
    text: str, before: Sequence[str], outside: Asked, why: str
) -> None:
    cache = Cache(words=GIVEN, like=GIVEN)
    emitted, marks = await turn(cache, outside, text, before)
    assert (cache.asked, marks) == ([], {"cache": "off", "cache_off": why})
    assert (outside.modelled, kept(emitted)) == (1, False)


MIA = Facts(verified=True, state=FactsState.WARM, profile=Profile("Mia"))


@pytest.mark.parametrize(
    ("outside", "before"),
    [
        (Asked(known=MIA), ()),
        (Asked(known=Facts(verified=True, state=FactsState.NONE)), ()),
        (Asked(known=replace(VISITOR, orders=(Order("1042", "shipped", "2026-01-01"),))), ()),
        (Asked(decision=Decision(tags=("kettle",), matched=("tag",))), ()),
        (Asked(), ("My name is Bob and I live in Oslo.",)),
        (Asked(says=(TextDelta("Ye"), Done("length"))), ()),
        (Asked(says=(TextDelta("A colleague"), HandoffCall(""), Done("tool_calls"))), ()),
        (Asked(says=(TextDelta("A colleague"), HandoffCall(""), Done("stop"))), ()),
        (Asked(says=(Done("stop"),)), ()),
        (Asked(passages_found=(replace(RETURNS, answerable=False),)), ()),
        (Asked(passages_found=()), ()),
    ],
    ids=[
        "a known customer", "a known customer of whom nothing is known", "an order in the prompt",
        "a rule that matched", "something said before", "cut off",
        "handed over", "handed over, then stopped", "nothing said", "articles beside the point", "no articles",
    ],
)  # fmt: skip
async def test_an_answer_made_from_anything_of_the_askers_or_from_no_article_is_not_kept(
    outside: Asked, before: Sequence[str]
) -> None:
    text = "Is there a guarantee on kettles?" if outside.known.verified else QUESTION
    emitted, _ = await turn(Cache(), outside, text, before)
    assert outside.modelled == 1
    assert not kept(emitted)


async def test_an_answer_that_failed_is_not_kept() -> None:
    class Broken(Asked):
        async def stream(self, request: ModelRequest, on_event: OnModelEvent) -> None:
            raise ModelUnavailable("stalled")

    emitted, _ = await turn(Cache(), Broken())
    assert not any(isinstance(event, Finished) for event in emitted)


async def test_a_rules_reply_comes_before_any_cached_answer() -> None:
    cache = Cache(words=GIVEN)
    emitted, _ = await turn(cache, Asked(decision=Decision(reply="Closed today.", matched=("holiday",))))
    assert (emitted, cache.asked) == ([Delta("Closed today."), Finished(())], [])


async def test_a_known_customer_is_told_what_strangers_were_where_no_order_matters() -> None:
    emitted, marks = await turn(Cache(words=GIVEN), Asked(known=MIA), "Is there a guarantee on kettles?")
    assert (emitted, marks) == (AGAIN, {"cache": "exact"})
