"""Which articles an answer is from. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from apps.engine.languages import Language, has_han, language_of
from apps.engine.needs import needs_facts
from apps.engine.terms import terms
from apps.engine.types import Facts, ModelRequest, Passage

# Of what a sentence says beyond the question, so much must stand in the article, and so many terms of it.
_SHARE = 0.4
_LEAST = 3

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？；])|\n+")


def behind(said: str, request: ModelRequest) -> tuple[Passage, ...]:
    """Of the passages that the ranker stands behind, those that the answer repeats, in their order.

    A model was given passages for whatever it was asked, also where it tells of an order, asks to log in or does not
    know. So an article counts where one sentence of the answer says what it says: two in five of its terms beyond the
    question's own, three at least, or both where it has two. A sentence that names an order is from the order. Where
    article and answer differ in language words cannot tell: there it counts unless the question was after an order.
    """
    if not said:
        return ()
    asked = terms(request.question)
    own = terms(" ".join(_of_orders(request.facts)))
    told = [words - asked for words in map(terms, _SENTENCE_END.split(said)) if not words & own]
    return tuple(p for p in request.passages if p.answerable and _repeats(told, p, said, request))


def _repeats(told: list[frozenset[str]], passage: Passage, said: str, request: ModelRequest) -> bool:
    if has_han(said) is not (language_of(passage.locale) is Language.CHINESE):
        return not needs_facts(request.question)
    written = terms(f"{passage.title}\n{passage.heading}\n{passage.text}")
    return any(_stands_in(words, written) for words in told)


def _stands_in(words: frozenset[str], written: frozenset[str]) -> bool:
    shared = len(words & written)
    return shared >= min(_LEAST, len(words)) and shared >= _SHARE * len(words) and shared > 1


def _of_orders(facts: Facts) -> Iterator[str]:
    for order in facts.orders:
        yield from (order.number, order.tracking, order.carrier)
