"""Orders a site's passages for one question and judges whether the best is about it. Pure: numpy, no I/O.

BM25 (Robertson & Zaragoza 2009, with Lucene's non-negative idf) finds names, numbers and exact words; the
embedding finds the same thing said otherwise, and across languages. How the constants were found, and what
they reach, is in docs/decisions (retrieval); `python -m bench.retrieval` measures them again.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from apps.engine.languages import Language, asked_in, language_of
from apps.engine.types import Passage
from apps.knowledge.words import asked_words, words

Floats = npt.NDArray[np.float32]

# BM25's usual saturation and length constants.
_K1 = 1.2
_B = 0.75
# What words may add to a cosine (squeezed: 0.69 for nonsense, 0.95 for the question itself), and the BM25
# score that adds half of it.
_WORDS_WEIGHT = 0.05
_HALF_BM25 = 8.0
# A passage is about the question from here on: cosine + 0.05 x coverage, by (asked, written) language. The
# cosines of the model lie higher in Chinese, and lower where no word can match.
_ABOUT_FROM = {
    (Language.ENGLISH, Language.ENGLISH): 0.894,
    (Language.CHINESE, Language.CHINESE): 0.912,
    (Language.CHINESE, Language.ENGLISH): 0.838,
    (Language.ENGLISH, Language.CHINESE): 0.838,
}
# Without a vector: so much of the question's words, by rarity, must be in the passage.
_ABOUT_BY_WORDS_FROM = 0.9
_PASSAGES_AN_ARTICLE = 2
# So little apart the scores do not say which section of an article answers: of two its opening is one, which says what
# holds in general.
_AS_GOOD_WITHIN = 0.01


@dataclass(frozen=True, slots=True)
class Entry:
    """A passage as it was ingested."""

    slug: str
    locale: str
    title: str
    heading: str
    text: str
    url: str = ""


def searched_text(title: str, heading: str, text: str) -> str:
    """What is embedded and indexed of a passage: it may never name its subject, which its headings do."""
    return f"{title}\n{heading}\n{text}"


class WordIndex:
    """BM25 and coverage over passages, by inverted lists."""

    def __init__(self, texts: Sequence[str]) -> None:
        counts = [Counter(words(text)) for text in texts]
        self._size = len(texts)
        lengths = np.array([count.total() for count in counts], np.float32)
        mean = float(lengths.mean()) if self._size else 1.0
        self._norm = _K1 * (1 - _B + _B * lengths / (mean or 1.0))
        postings: dict[str, list[tuple[int, int]]] = {}
        for at, count in enumerate(counts):
            for word, times in count.items():
                postings.setdefault(word, []).append((at, times))
        self._postings = {
            word: (
                np.array([at for at, _ in hits], np.intp),
                np.array([times for _, times in hits], np.float32),
            )
            for word, hits in postings.items()
        }

    def scores(self, asked: Iterable[str]) -> tuple[Floats, Floats]:
        """(BM25, coverage) of every passage. Coverage is the part of the asked words, by idf, that it has."""
        bm25 = np.zeros(self._size, np.float32)
        coverage = np.zeros(self._size, np.float32)
        total = 0.0
        for word in set(asked):
            hits = self._postings.get(word)
            idf = self._idf(0 if hits is None else len(hits[0]))
            total += idf
            if hits is not None:
                at, times = hits
                bm25[at] += idf * times * (_K1 + 1) / (times + self._norm[at])
                coverage[at] += idf
        return bm25, coverage / total if total else coverage

    def _idf(self, passages: int) -> float:
        return math.log(1 + (self._size - passages + 0.5) / (passages + 0.5))


class Corpus:
    """Everything searched for one site; immutable. `vectors` has a unit row per entry, zeros for none."""

    def __init__(self, entries: Sequence[Entry], vectors: Floats) -> None:
        self.entries = tuple(entries)
        self._vectors = vectors
        self._embedded = np.asarray(vectors.any(axis=1), bool)
        self._words = WordIndex([searched_text(e.title, e.heading, e.text) for e in entries])
        self._locales = {entry.locale for entry in entries}
        self._hidden = {locale: self._translated_into(locale) for locale in self._locales}

    def _translated_into(self, locale: str) -> npt.NDArray[np.bool_]:
        """The entries of other languages whose article also exists in `locale`."""
        here = {entry.slug for entry in self.entries if entry.locale == locale}
        return np.array([e.locale != locale and e.slug in here for e in self.entries], bool)

    def passages(self, question: str, vector: Floats | None, locale: str, limit: int) -> tuple[Passage, ...]:
        """The best passages, best first, at most two an article. Without a vector by words alone.

        Of an article in several languages the one in the question's own is taken: Chinese characters say
        Chinese whatever `locale` says, and other words do not.
        """
        if not self.entries:
            return ()
        asked = asked_words(question)
        bm25, coverage = self._words.scores(asked)
        cosines = None if vector is None else self._vectors @ vector
        score = _WORDS_WEIGHT * bm25 / (bm25 + _HALF_BM25)
        if cosines is not None:
            score = score + cosines
        language = asked_in(question, locale)
        hidden = self._hidden.get(language)
        if hidden is not None:
            score = np.where(hidden, -1.0, score)
        chosen = self._best(score, limit)
        return tuple(
            self._passage(at, float(score[at]), self._about(at, language, coverage, cosines)) for at in chosen
        )

    def _best(self, score: Floats, limit: int) -> list[int]:
        chosen: list[int] = []
        of_article: dict[str, list[int]] = {}
        for at in map(int, np.argsort(-score, kind="stable")):
            if score[at] <= 0 or len(chosen) == limit:
                break
            taken = of_article.setdefault(self.entries[at].slug, [])
            if len(taken) < _PASSAGES_AN_ARTICLE:
                taken.append(at)
                chosen.append(at)
            elif self._opens_as_well(at, taken, score):
                chosen.remove(taken[-1])
                taken[-1] = at
                chosen.append(at)
        return chosen

    def _opens_as_well(self, at: int, taken: list[int], score: Floats) -> bool:
        """Whether a passage is the opening of the article of those that are taken, and about as good as its best."""
        best, entry = self.entries[taken[0]], self.entries[at]
        opens = not entry.heading and all(self.entries[one].heading for one in taken)
        return opens and entry.locale == best.locale and bool(score[taken[0]] - score[at] <= _AS_GOOD_WITHIN)

    def _about(self, at: int, language: Language, coverage: Floats, cosines: Floats | None) -> bool:
        if cosines is None or not self._embedded[at]:
            return bool(coverage[at] >= _ABOUT_BY_WORDS_FROM)
        written = language_of(self.entries[at].locale)
        return bool(cosines[at] + _WORDS_WEIGHT * coverage[at] >= _ABOUT_FROM[(language, written)])

    def _passage(self, at: int, score: float, answerable: bool) -> Passage:
        entry = self.entries[at]
        return Passage(
            title=entry.title,
            text=entry.text,
            url=entry.url,
            score=score,
            answerable=answerable,
            locale=entry.locale,
            heading=entry.heading,
        )
