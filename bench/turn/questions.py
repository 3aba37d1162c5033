"""What is asked: a fixed round for the comparison, and a service's mix of frequent and new questions."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product

ROUND = (
    "Can I return worn boots?",
    "Where is my order 1042?",
    "How long does shipping take?",
    "How do I clean my tent?",
    "Which boot size should I take?",
    "Can I change an order after paying?",
    "Is the battery safe on a plane?",
    "Do you take gift cards?",
    "How long is the warranty on a lamp?",
    "When do your stores open?",
)


def rounds(conversations: int, turns: int) -> list[tuple[str, ...]]:
    """What each of so many conversations asks: the round over and over, and no two questions in the same words."""
    return [
        tuple(signed(ROUND[n % len(ROUND)], who * turns + n) for n in range(turns))
        for who in range(conversations)
    ]


def signed(question: str, number: int) -> str:
    """The question with a name, another one for each number below 250,000.

    What is kept of a question would else serve all others of a bench, as it seldom does in a shop.
    """
    syllables = (number // 4_096 % 64, number // 64 % 64, number % 64)
    name = "".join("bdfgklmnprstvwyz"[n // 4] + "aeio"[n % 4] for n in syllables)
    return f"{question} {name.capitalize()} here."


FREQUENT = (
    "How long does shipping take?",
    "Can I return worn boots?",
    "Do you take gift cards?",
    "How long is the warranty on a lamp?",
)
REPEATED_SHARE = 0.30
QUESTIONS_A_VISIT = 2

_THINGS = ("tent", "lamp", "rain jacket", "sleeping bag", "trail boot", "stove", "rucksack", "hiking pole")
_PLACES = ("Norway", "a desert", "the Alps", "a rainy autumn", "a beach", "two weeks of frost", "a small car")
_PEOPLE = ("a child of ten", "a tall man", "my mother", "a beginner", "a dog owner")


def visits(count: int, seed: int) -> list[tuple[str, ...]]:
    """So many visits of two questions each, the same for every path of a seed: 30 % of all are frequent ones."""
    rng = random.Random(seed)
    new = _new(rng)
    return [
        tuple(
            rng.choice(FREQUENT) if rng.random() < REPEATED_SHARE else next(new)
            for _ in range(QUESTIONS_A_VISIT)
        )
        for _ in range(count)
    ]


def _new(rng: random.Random) -> Iterator[str]:
    asked = [
        f"Which {thing} is right for {person} in {place}?"
        for thing, place, person in product(_THINGS, _PLACES, _PEOPLE)
    ]
    rng.shuffle(asked)
    return iter(asked)
