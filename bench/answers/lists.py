"""The committed lists: questions that mean the same, and questions that nearly do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent.parent / "data" / "answer_cache"
HALVES = ("calibration", "held out")


@dataclass(frozen=True, slots=True)
class Group:
    """Phrasings of one question: one answer serves them all, and serves no other group."""

    locale: str
    topic: str
    means: str
    asked: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NearMiss:
    """Two questions that differ in one number, denial, product, verb … and must not share an answer."""

    locale: str
    topic: str
    changed: str
    known: str
    asked: str


def paraphrases(half: str = "") -> list[Group]:
    """The groups of a half, or of both. The halves are every other topic in alphabetical order."""
    groups = [
        Group(row["locale"], row["topic"], row["means"], tuple(row["asked"])) for row in _rows("paraphrases")
    ]
    return [group for group in groups if not half or group.topic in topics(half)]


def fresh() -> list[Group]:
    """Other questions to the same articles, written when the verifier was done; nothing was changed after them."""
    return [Group(row["locale"], row["topic"], row["means"], tuple(row["asked"])) for row in _rows("fresh")]


def near_misses(half: str = "") -> list[NearMiss]:
    """The pairs of a half, or of both."""
    rows = [NearMiss(**row) for row in _rows("near_misses")]
    return [row for row in rows if not half or row.topic in topics(half)]


def topics(half: str) -> frozenset[str]:
    """What the questions of a half are about."""
    every = sorted({row["topic"] for row in _rows("paraphrases")})
    return frozenset(every[1::2] if half == HALVES[0] else every[0::2])


def _rows(name: str) -> Iterator[dict[str, Any]]:
    for locale in ("en", "zh"):
        for line in (FOLDER / f"{name}.{locale}.jsonl").read_text(encoding="utf-8").splitlines():
            yield json.loads(line)
