"""The answers one process holds: found by their words, by the beginning of frequent ones, by nearness. Pure."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from apps.engine.cache import TTL_S, Answer, By, Look, Question, Scope, Vector
from apps.engine.paraphrase import meaning_of
from apps.engine.paraphrase.meaning import Meaning
from apps.engine.paraphrase.verdict import Veto, veto

MAX_BYTES: Final = 32 * 1024 * 1024
# Below, a proposal costs more than it finds; above, near-misses still abound: the verifier decides.
NEAR_FROM: Final = 0.92
MAX_PROPOSALS: Final = 4
FREQUENT_FROM: Final = 2  # times an answer was given again before its question's beginning proposes it
MIN_PREFIX: Final = 6
_OVERHEAD_BYTES = 2000  # of an entry beside its texts and its vector


class AnswerStore:
    """The answers one process holds, least recently used out first. Not thread-safe: the loop owns it."""

    def __init__(self, max_bytes: int = MAX_BYTES, ttl_s: float = TTL_S) -> None:
        self.bytes = 0
        self._max_bytes = max_bytes
        self._ttl_s = ttl_s
        self._shelves: dict[tuple[str, str], _Shelf] = {}
        self._used: OrderedDict[tuple[str, str, str], None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._used)

    def exact(self, scope: Scope, question: Question, now_s: float) -> Answer | None:
        """The answer to the same words, or None. About 2 µs."""
        shelf = self._shelf(scope)
        kept = shelf.kept.get(question.key) if shelf else None
        return self._given(scope, kept, now_s) if kept else None

    def similar(
        self, scope: Scope, question: Question, vector: Vector | None, titles: Sequence[str], now_s: float
    ) -> Look:
        """The answer to a question that means the same, found by the beginning of frequent ones or by nearness.

        `titles` are the articles that answer the question by its own search: an answer from none of them is not its.
        One matrix product, then at most four verdicts: about 0.3 ms with 2,000 answers.
        """
        shelf = self._shelf(scope)
        vetoes = []
        for kept, by in shelf.proposals(question, vector) if shelf else ():
            reason = veto(question.meaning, kept.meaning)
            if reason is None and not any(title in titles for title, _ in kept.answer.sources):
                reason = Veto.SOURCES
            if reason is not None:
                vetoes.append(reason)
            elif answer := self._given(scope, kept, now_s):
                return Look(answer, by, tuple(vetoes))
        return Look(vetoes=tuple(vetoes))

    def keep(self, scope: Scope, answer: Answer) -> None:
        """Adds or replaces the answer to its question, and drops what that pushes out."""
        place = (scope.site, scope.language)
        shelf = self._shelf(scope)
        if shelf is None:
            if place in self._shelves and self._shelves[place].versions > scope.versions:
                return  # made from what is no longer so
            shelf = self._shelves[place] = _Shelf(scope.versions)
        if answer.key in shelf.kept:
            self._drop(place, answer.key)
        kept = _Kept(answer)
        shelf.add(kept)
        self.bytes += kept.bytes
        self._used[(*place, answer.key)] = None
        while self.bytes > self._max_bytes:
            site, language, key = next(iter(self._used))
            self._drop((site, language), key)

    def holds(self, scope: Scope, key: str) -> bool:
        """Whether this question has an answer here, expired or not."""
        shelf = self._shelf(scope)
        return shelf is not None and key in shelf.kept

    def _shelf(self, scope: Scope) -> _Shelf | None:
        """The shelf of this scope; one of older versions is cleared away, one of newer versions is not this scope's."""
        place = (scope.site, scope.language)
        shelf = self._shelves.get(place)
        if shelf is None or shelf.versions == scope.versions:
            return shelf
        if shelf.versions < scope.versions:
            self._clear(place)
        return None

    def _given(self, scope: Scope, kept: _Kept, now_s: float) -> Answer | None:
        place = (scope.site, scope.language)
        if now_s - kept.answer.stored_s > self._ttl_s:
            self._drop(place, kept.answer.key)
            return None
        self._used.move_to_end((*place, kept.answer.key))
        self._shelves[place].given(kept)
        return kept.answer

    def _drop(self, place: tuple[str, str], key: str) -> None:
        kept = self._shelves[place].remove(key)
        self.bytes -= kept.bytes
        del self._used[(*place, key)]

    def _clear(self, place: tuple[str, str]) -> None:
        for key in list(self._shelves[place].kept):
            self._drop(place, key)
        del self._shelves[place]


@dataclass(slots=True, eq=False)
class _Kept:
    answer: Answer
    row: int = -1
    given: int = 0
    _meaning: Meaning | None = None

    @property
    def meaning(self) -> Meaning:
        """Read once, when first proposed: most never are."""
        if self._meaning is None:
            self._meaning = meaning_of(self.answer.plain, self.answer.language)
        return self._meaning

    @property
    def bytes(self) -> int:
        answer = self.answer
        texts = len(answer.plain.encode("utf-8", "replace")) + len(answer.text.encode("utf-8", "replace"))
        return _OVERHEAD_BYTES + texts + (0 if answer.vector is None else answer.vector.nbytes)


class _Shelf:
    """The answers of one site and language, of one version of everything."""

    def __init__(self, versions: tuple[int, int, int]) -> None:
        self.versions = versions
        self.kept: dict[str, _Kept] = {}
        self._rows: list[_Kept] = []
        self._vectors = np.empty((0, 0), np.float32)
        self._frequent: list[tuple[str, str]] = []  # (plain, key), sorted

    def add(self, kept: _Kept) -> None:
        self.kept[kept.answer.key] = kept
        vector = kept.answer.vector
        if vector is None:
            return
        if len(self._rows) == len(self._vectors):
            grown = np.zeros((max(64, 2 * len(self._rows)), len(vector)), np.float32)
            grown[: len(self._rows)] = self._vectors[: len(self._rows)] if self._rows else 0
            self._vectors = grown
        kept.row = len(self._rows)
        self._vectors[kept.row] = vector
        self._rows.append(kept)

    def remove(self, key: str) -> _Kept:
        kept = self.kept.pop(key)
        if kept.row >= 0:
            last = self._rows.pop()
            if last is not kept:
                self._rows[kept.row] = last
                self._vectors[kept.row] = self._vectors[last.row]
                last.row = kept.row
        if kept.given >= FREQUENT_FROM:
            self._frequent.remove((kept.answer.plain, key))
        return kept

    def given(self, kept: _Kept) -> None:
        kept.given += 1
        if kept.given == FREQUENT_FROM:
            insort(self._frequent, (kept.answer.plain, kept.answer.key))

    def proposals(self, question: Question, vector: Vector | None) -> Iterator[tuple[_Kept, By]]:
        """Frequent questions that begin the same, then the nearest by meaning; each once, at most four of each."""
        proposed = set()
        for key in self._beginning_alike(question.plain):
            proposed.add(key)
            yield self.kept[key], By.PREFIX
        if vector is None or not self._rows:
            return
        nearness = self._vectors[: len(self._rows)] @ vector
        near = np.flatnonzero(nearness >= NEAR_FROM)
        for row in near[np.argsort(-nearness[near], kind="stable")][:MAX_PROPOSALS]:
            if self._rows[int(row)].answer.key not in proposed:
                yield self._rows[int(row)], By.SIMILAR

    def _beginning_alike(self, plain: str) -> list[str]:
        if len(plain) < MIN_PREFIX:
            return []
        at = bisect_left(self._frequent, (plain, ""))
        around = self._frequent[max(0, at - MAX_PROPOSALS // 2) : at + MAX_PROPOSALS // 2]
        return [
            key
            for frequent, key in around
            if len(frequent) >= MIN_PREFIX and (frequent.startswith(plain) or plain.startswith(frequent))
        ]
