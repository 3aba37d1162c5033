"""The verifier on public data that no list or constant was made from. Read in place, never copied."""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

from apps.engine.answer_store import NEAR_FROM
from apps.engine.cache import question_of
from apps.engine.paraphrase.verdict import veto
from bench.answers.trial import Shop

SHOWN = 20


def report_banking(file: Path, shop: Shop) -> None:
    """Pairs of customers' questions that would share an answer, by whether they have the same of 77 intents."""
    with file.open(encoding="utf-8", newline="") as lines:
        rows = [
            (row["text"], row["category"], question)
            for row in csv.DictReader(lines)
            if (question := question_of(row["text"], "en"))
        ]
    alike = defaultdict(list)
    for row in rows:
        meaning = row[2].meaning
        alike[(meaning.kind, meaning.words, meaning.numbers, meaning.negated)].append(row)
    same, other = 0, []
    for group in alike.values():
        for (one, category, first), (two, another, second) in combinations(group, 2):
            if (
                veto(first.meaning, second.meaning) is None
                and shop.vector(one) @ shop.vector(two) >= NEAR_FROM
            ):
                same += category == another
                if category != another:
                    other.append((one, two))
    print(
        f"\nbanking77: {len(rows)} questions; {same} pairs of one intent and {len(other)} of two would be served"
    )
    for one, two in other[:: max(1, len(other) // SHOWN)]:
        print(f"    {one!r} | {two!r}")


def report_paws(file: Path, shop: Shop) -> None:
    """Chinese sentences with swapped words: pairs that would be served, by whether they mean the same."""
    served: Counter[str] = Counter()
    identical = 0
    for one, two, label in _pairs(file):
        first, second = question_of(one, "zh"), question_of(two, "zh")
        if first and second and veto(first.meaning, second.meaning) is None and _near(shop, one, two):
            served[label] += 1
            identical += label == "0" and first.key == second.key
    print(
        f"\npaws_x_zh: {served['1']} pairs that mean the same would be served, {served['0']} that do not",
        end="",
    )
    print(f" ({identical} of these are the same sentence twice)")


def _near(shop: Shop, one: str, two: str) -> bool:
    return bool(shop.vector(one) @ shop.vector(two) >= NEAR_FROM)


def _pairs(file: Path) -> Iterator[tuple[str, str, str]]:
    with file.open(encoding="utf-8", newline="") as lines:
        for row in csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE):
            if len(row) == 3:
                yield row[0], row[1], row[2]
