"""What a question asks, in parts that can be compared one by one. Pure data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What sort of answer is wanted."""

    YES = "yes"  # whether something is so, or may be done
    MUST = "must"  # whether something has to be done
    HOW = "how"
    REMEDY = "remedy"  # what to do about something; also a bare report of it
    WHAT = "what"
    WHEN = "when"
    WHERE = "where"
    WHO = "who"
    WHY = "why"
    COST = "cost"
    COUNT = "count"
    OFTEN = "often"
    SPAN = "span"  # for how long something holds, or until when it may be done
    TAKES = "takes"  # how long something takes, or how soon it comes
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Meaning:
    """A question taken apart. Concepts known to a lexicon are named `=so`; other words stand for themselves."""

    language: str
    kind: Kind
    words: frozenset[str]  # what it is about
    numbers: tuple[str, ...]  # each with its unit, sorted
    negated: tuple[str, ...]  # the word behind each negation, sorted
    order: tuple[
        str, ...
    ]  # its own words and its acts as they stand: a swap of two may change who does what to what
    actor: str  # "customer", "shop", "thing" or ""
    personal: bool  # about the asker's own orders or person
    refers: bool  # leans on something said before
    passing: bool  # about now, today, next week: true only for a while


def known(word: str) -> bool:
    """Whether the word is a concept of a lexicon, not a name or thing only this question knows."""
    return word.startswith("=")


def listed(words: str) -> frozenset[str]:
    """The words of a line."""
    return frozenset(words.split())


def ordered(sequence: list[str], kept: frozenset[str], acts: frozenset[str]) -> tuple[str, ...]:
    """`Meaning.order` of the words as they stand: those of no lexicon, then the acts."""
    own = (word for word in sequence if word in kept and not known(word))
    return (*own, *(word for word in sequence if word in kept and word in acts))


def beyond(found: frozenset[str], said: frozenset[str]) -> frozenset[str]:
    """The words that the kind does not say already; those alone, as concepts, where it says them all."""
    return (found - said) or frozenset(f"={word.removeprefix('=')}" for word in found)
