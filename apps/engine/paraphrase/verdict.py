"""Whether two questions may share one answer: every difference that could change it is a veto. Pure."""

from __future__ import annotations

from enum import StrEnum

from apps.engine.paraphrase import chinese_words, english_words
from apps.engine.paraphrase.meaning import Meaning, known


class Veto(StrEnum):
    """Why not."""

    LANGUAGE = "language"
    PERSONAL = "personal"
    CONTEXT = "context"  # it leans on what was said before
    PASSING = "passing"  # it asks about now
    NUMBER = "number"
    NEGATION = "negation"
    KIND = "kind"  # when, how much, where, may I
    ACTOR = "actor"  # who acts: the customer or the shop
    ANTONYM = "antonym"
    DEALING = "dealing"  # returned is not shipped, exchanged is not refunded
    NAME = "name"  # a thing, place or name, or any word the lexicon does not know
    WORDS = "words"
    ORDER = "order"  # the same words about each other's things
    EMPTY = "empty"  # nothing but courtesies and small words
    SOURCES = "sources"  # its own search finds none of the articles that the answer came from


_ANTONYMS = english_words.ANTONYMS + chinese_words.ANTONYMS
_DEALINGS = english_words.DEALINGS | chinese_words.DEALINGS


def veto(asked: Meaning, known_one: Meaning) -> Veto | None:
    """Why the two must not share an answer; None when nothing tells them apart. Symmetric. About 2 µs."""
    if asked.language != known_one.language:
        return Veto.LANGUAGE
    if asked.personal or known_one.personal:
        return Veto.PERSONAL
    if asked.numbers != known_one.numbers:
        return Veto.NUMBER
    if asked.negated != known_one.negated:
        return Veto.NEGATION
    if asked.kind is not known_one.kind:
        return Veto.KIND
    if asked.words != known_one.words:
        return _difference(asked.words ^ known_one.words)
    if asked.order != known_one.order:
        return Veto.ORDER
    if asked.actor and known_one.actor and asked.actor != known_one.actor:
        return Veto.ACTOR
    return None if asked.words else Veto.EMPTY


def _difference(words: frozenset[str]) -> Veto:
    plain = {word.removeprefix("=") for word in words}
    if any(one in plain and other in plain for one, other in _ANTONYMS):
        return Veto.ANTONYM
    if plain & _DEALINGS:
        return Veto.DEALING
    return Veto.WORDS if all(known(word) for word in words) else Veto.NAME
