"""The demo's articles as a corpus, and the questions its answers are judged by."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from apps.engine.types import Passage
from apps.knowledge.chunking import chunk
from apps.knowledge.demo import articles
from apps.knowledge.demo.vectors import shipped_vectors
from apps.knowledge.embeddings import MODEL, passage_digest, process_embedder
from apps.knowledge.ranking import Corpus, Entry, searched_text

FIXTURES = Path(__file__).parent.parent / "fixtures"


@dataclass(frozen=True, slots=True)
class Question:
    """A question with the articles that answer it: none for one that the shop does not answer."""

    text: str
    locale: str
    about: frozenset[str]


@dataclass(frozen=True, slots=True)
class Tally:
    """How a list of questions came out. A false answer is worse than a false "I don't know"."""

    answerable: int
    answered_right: int
    ranked_right: int  # the first passage is of a right article, whatever the verdict
    answered_wrong: tuple[str, ...]  # from a wrong article, or not answerable at all
    given_up: tuple[str, ...]  # answerable, but declined

    @property
    def precision(self) -> float:
        return self.answered_right / max(1, self.answered_right + len(self.answered_wrong))

    @property
    def recall(self) -> float:
        return self.answered_right / max(1, self.answerable)


def questions(name: str, locale: str) -> Iterator[Question]:
    """The questions of a fixture: `lantern_questions` set the constants, `…_unseen` never did."""
    lists = json.loads((FIXTURES / f"{name}.json").read_text(encoding="utf-8"))[locale]
    for row in lists["answerable"]:
        yield Question(row["question"], locale, frozenset(row["about"]))
    for text in lists["unanswerable"]:
        yield Question(text, locale, frozenset())


def corpus(locales: tuple[str, ...] = ("en", "zh")) -> Corpus:
    """The demo's articles with the embeddings that come with them. Raises KeyError where one is missing."""
    vectors = shipped_vectors()
    entries = [
        Entry(slug, locale, title, section.heading, section.text, url=slug)
        for locale, slug, title, body in articles()
        if locale in locales
        for section in chunk(body)
    ]
    digests = [passage_digest(MODEL, searched_text(e.title, e.heading, e.text)) for e in entries]
    return Corpus(entries, np.stack([np.frombuffer(vectors[digest], "<f4") for digest in digests]))


def first_passage(searched: Corpus, question: Question, by_words: bool = False) -> Passage | None:
    vector = None if by_words else process_embedder().embed_question(question.text)
    return next(iter(searched.passages(question.text, vector, question.locale, limit=4)), None)


def tally(searched: Corpus, asked: list[Question], by_words: bool = False) -> Tally:
    """Asks every question and compares. The article is told by its url, which `corpus` sets to the slug."""
    first = [(question, first_passage(searched, question, by_words)) for question in asked]
    right = [q for q, p in first if p and p.answerable and p.url in q.about]
    return Tally(
        answerable=sum(bool(q.about) for q in asked),
        answered_right=len(right),
        ranked_right=sum(bool(p) and p.url in q.about for q, p in first if p),
        answered_wrong=tuple(q.text for q, p in first if p and p.answerable and p.url not in q.about),
        given_up=tuple(q.text for q, p in first if q.about and not (p and p.answerable)),
    )
