"""The answer cache: answers to questions asked before, given again only where a verifier finds the same question.

Word for word the same is the same. Everything else is a proposal, by prefix or by nearness of meaning, which
`paraphrase.verdict` may veto. Pure: no clock, no I/O; what is shared between processes is the shell's.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

import numpy as np
import numpy.typing as npt

from apps.engine.languages import asked_in
from apps.engine.paraphrase import meaning_of
from apps.engine.paraphrase.meaning import Meaning, known
from apps.engine.paraphrase.normal import MAX_CHARACTERS, asks_twice, normal
from apps.engine.paraphrase.verdict import Veto

Vector = npt.NDArray[np.float32]

TTL_S: Final = 24 * 3600.0
MAX_ANSWER_CHARACTERS: Final = 4000


class By(StrEnum):
    """How an answer was found."""

    EXACT = "exact"
    PREFIX = "prefix"
    SIMILAR = "similar"


@dataclass(frozen=True, slots=True)
class Scope:
    """Where an answer holds. A new version of anything it was made from is another scope, so it misses."""

    site: str
    language: str
    settings: int
    rules: int
    knowledge: int

    @property
    def key(self) -> str:
        """Names the scope in stores that all processes share."""
        return f"{self.site}:{self.language}:{self.settings}.{self.rules}.{self.knowledge}"

    def searched(self, knowledge: int) -> Scope:
        """The same, with this version of the knowledge."""
        return self if knowledge == self.knowledge else replace(self, knowledge=knowledge)

    @property
    def versions(self) -> tuple[int, int, int]:
        """Settings, rules, knowledge: of two scopes in one place the greater is newer."""
        return self.settings, self.rules, self.knowledge


@dataclass(frozen=True, slots=True)
class Question:
    """A question as the cache compares it. `key` names its normal form."""

    language: str
    plain: str
    key: str
    meaning: Meaning


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """What is kept of a finished turn. `vector` is its question's; `stored_s` is seconds since 1970."""

    language: str
    plain: str
    text: str
    sources: tuple[tuple[str, str], ...]  # (title, url)
    vector: Vector | None
    stored_s: float

    @property
    def key(self) -> str:
        return key_of(self.plain)


@dataclass(frozen=True, slots=True)
class Look:
    """What looking by likeness came to. `vetoes` are the reasons of the proposals that were turned down."""

    answer: Answer | None = None
    by: By | None = None
    vetoes: tuple[Veto, ...] = ()


def question_of(text: str, locale: str) -> Question | None:
    """The question in comparable form; None for a text that is empty, asks two things or tells a story."""
    if not text.strip() or len(text) > MAX_CHARACTERS or asks_twice(text):
        return None
    language = asked_in(text, locale)
    plain = normal(text, language)
    return Question(language, plain, key_of(plain), meaning_of(plain, language))


def key_of(plain: str) -> str:
    """Of a normal form, whatever its length: 24 hexadecimal digits."""
    return hashlib.blake2b(plain.encode("utf-8", "replace"), digest_size=12).hexdigest()


def alone(meaning: Meaning, first: bool) -> Veto | None:
    """Why the question cannot be answered from its own words; None when it can.

    Within a conversation it must also name what it is about: "how long is the warranty?" follows what was said.
    """
    if meaning.personal:
        return Veto.PERSONAL
    if meaning.passing:
        return Veto.PASSING
    names = any(not known(word) for word in meaning.words)
    if meaning.refers and not (first and names):
        return Veto.CONTEXT
    return None if first or names else Veto.CONTEXT
