"""Plays questions against the cache as a shop would meet them, with the shop's own search beside it."""

from __future__ import annotations

import math
import random
import statistics
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from apps.engine.answer_store import AnswerStore
from apps.engine.cache import Answer, Question, Scope, Vector, alone, question_of
from apps.engine.paraphrase.verdict import veto
from apps.knowledge.embeddings import process_embedder
from bench.answers.lists import Group, NearMiss, paraphrases
from tests.support.lantern import corpus

Z = 1.96  # a two-sided 95 % interval
SEED = 3


@dataclass(slots=True)
class Tally:
    asked: int = 0
    wrong: list[tuple[str, str]] = field(default_factory=list)
    by: Counter[str] = field(default_factory=Counter)

    @property
    def served(self) -> int:
        return self.by.total()

    @property
    def hit_rate(self) -> float:
        return self.served / self.asked if self.asked else 0.0

    @property
    def precision_at_least(self) -> float:
        """The lower bound of Wilson's interval."""
        n = self.served
        if not n:
            return 0.0
        right = (n - len(self.wrong)) / n
        spread = Z * math.sqrt(right * (1 - right) / n + Z * Z / (4 * n * n))
        return (right + Z * Z / (2 * n) - spread) / (1 + Z * Z / n)

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.asked + other.asked, self.wrong + other.wrong, self.by + other.by)


class Shop:
    """The demo shop: its articles, its search, its embedding model."""

    def __init__(self) -> None:
        self._corpus = corpus()
        self._vectors: dict[str, Vector] = {}

    def vector(self, text: str) -> Vector:
        if text not in self._vectors:
            self._vectors[text] = process_embedder().embed_question(text)
        return self._vectors[text]

    def titles(self, text: str, locale: str) -> tuple[str, ...]:
        """The articles that the shop's search finds to be about the question."""
        found = self._corpus.passages(text, self.vector(text), locale, limit=4)
        return tuple(dict.fromkeys(passage.title for passage in found if passage.answerable))


class Visit:
    """One site's cache, from empty. Every question is a visitor's first."""

    def __init__(self, shop: Shop, locale: str) -> None:
        self._shop = shop
        self._locale = locale
        self._scope = Scope("lantern", locale, 1, 1, 1)
        self._store = AnswerStore()
        self._asked_as: dict[str, tuple[str, str]] = {}  # key → (text, group)
        self._clock = 0.0

    def learn(self, text: str, group: str) -> None:
        """A model answered the question; the answer is kept where the product would keep it."""
        question = self._question(text)
        titles = self._shop.titles(text, self._locale)
        if question is None or not titles:
            return
        sources = tuple((title, "") for title in titles[:2])
        answer = Answer(
            self._locale, question.plain, group, sources, self._shop.vector(text), stored_s=self._clock
        )
        self._store.keep(self._scope, answer)
        self._asked_as.setdefault(question.key, (text, group))

    def ask(self, text: str) -> tuple[str, str, str] | None:
        """(the question whose answer was given, its group, how it was found); None when a model must answer."""
        question = self._question(text)
        if question is None:
            return None
        if answer := self._store.exact(self._scope, question, self._clock):
            return (*self._asked_as[answer.key], "exact")
        titles = self._shop.titles(text, self._locale)
        look = self._store.similar(self._scope, question, self._shop.vector(text), titles, self._clock)
        if look.answer is None or look.by is None:
            return None
        return (*self._asked_as[look.answer.key], look.by.value)

    def _question(self, text: str) -> Question | None:
        question = question_of(text, self._locale)
        return question if question and alone(question.meaning, first=True) is None else None


def one_stored(shop: Shop, groups: Sequence[Group]) -> Tally:
    """Of each group the first phrasing was answered before; the others are asked. All groups are held at once."""
    visit = Visit(shop, groups[0].locale)
    for group in groups:
        visit.learn(group.asked[0], group.means)
    tally = Tally()
    for group in groups:
        for text in group.asked[1:]:
            _ask(visit, text, group, tally)
    return tally


def as_they_come(shop: Shop, groups: Sequence[Group]) -> Tally:
    """All phrasings in a random order, each asked once; one that is not served is answered and kept."""
    visit, tally = Visit(shop, groups[0].locale), Tally()
    asked = [(text, group) for group in groups for text in group.asked]
    random.Random(SEED).shuffle(asked)
    for text, group in asked:
        if not _ask(visit, text, group, tally):
            visit.learn(text, group.means)
    return tally


def _ask(visit: Visit, text: str, group: Group, tally: Tally) -> bool:
    tally.asked += 1
    given = visit.ask(text)
    if given is None:
        return False
    known, means, by = given
    tally.by[by] += 1
    if means != group.means:
        tally.wrong.append((known, text))
    return True


def tried_near_misses(shop: Shop, rows: Sequence[NearMiss]) -> list[tuple[str, str]]:
    """Those that were served, or would be if search and nearness let everything through; both ways round."""
    wrong = []
    for row in rows:
        for known, asked in ((row.known, row.asked), (row.asked, row.known)):
            visit = Visit(shop, row.locale)
            visit.learn(known, "known")
            one, other = question_of(known, row.locale), question_of(asked, row.locale)
            if visit.ask(asked) or (one and other and veto(one.meaning, other.meaning) is None):
                wrong.append((known, asked))
    return wrong


def timed(shop: Shop) -> dict[str, tuple[float, float]]:
    """Microseconds of the parts of a look-up in a cache of 2,000 answers: (median, 99th percentile)."""
    texts = {
        locale: [text for group in paraphrases() if group.locale == locale for text in group.asked]
        for locale in ("en", "zh")
    }
    english = texts["en"]
    questions = [question for text in english if (question := question_of(text, "en"))]
    vectors = [shop.vector(text) for text in english]
    store, scope = AnswerStore(), Scope("lantern", "en", 1, 1, 1)
    for at in range(2000):
        plain = f"{questions[at % len(questions)].plain} number {at}"
        store.keep(scope, Answer("en", plain, "answer", (("title", ""),), vectors[at % len(vectors)], 0.0))

    def likeness(at: int) -> object:
        return store.similar(scope, questions[at], vectors[at], ("title",), 0.0)

    return {
        "reading an English question": _each(len(english), lambda at: question_of(english[at], "en")),
        "reading a Chinese question": _each(len(texts["zh"]), lambda at: question_of(texts["zh"][at], "zh")),
        "looking for the same words": _each(
            len(questions), lambda at: store.exact(scope, questions[at], 0.0)
        ),
        "looking for likeness, the first time": _each(len(questions), likeness),
        "looking for likeness": _each(len(questions), likeness),
    }


def _each(times: int, call: Callable[[int], object]) -> tuple[float, float]:
    taken = []
    for at in range(times):
        start = time.perf_counter()
        call(at)
        taken.append((time.perf_counter() - start) * 1e6)
    return statistics.median(taken), statistics.quantiles(taken, n=100)[-1]
