"""A concise answer out of an article's own sentences. Pure; it chooses, it never writes."""

from __future__ import annotations

import re

from apps.engine.languages import Language, language_of
from apps.engine.terms import terms
from apps.engine.types import Passage

SENTENCES = 3
CHARACTERS = 420
# So little apart the ranker's scores do not say which section of an article answers.
_AS_GOOD_WITHIN = 0.01

# Chinese characters that say only that something is asked, owned, done or there.
_ONLY_ASKS = re.compile("[吗呢吧啊呀嘛的了有]")
_HEADING = re.compile(r"^\s*#{1,6}\s.*$", re.MULTILINE)
_BULLET = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=\S)|(?<=[。！？])")


def best_passage(passages: tuple[Passage, ...], question: str, language: Language) -> Passage | None:
    """The best passage the ranker stands behind; one in the customer's language before any other.

    The opening of its article goes before it where that is about as good and says more of what was asked, or all of
    it: the ranker reads headings too, and "After the warranty" does not tell how long the warranty is, nor what it does
    not cover whether there is one.
    """
    answerable = [passage for passage in passages if passage.answerable]
    if not answerable:
        return None
    best = max(answerable, key=lambda passage: (language_of(passage.locale) is language, passage.score))
    opening = next((passage for passage in passages if _opens(passage, best)), best)
    wanted = terms(_ONLY_ASKS.sub(" ", question))
    as_near = _overlap(wanted, _whole(opening)) >= _overlap(wanted, _whole(best))
    says_more = _overlap(wanted, opening.text) > _overlap(wanted, best.text)
    return opening if as_near and (says_more or wanted <= terms(opening.text)) else best


def _opens(passage: Passage, best: Passage) -> bool:
    same = (passage.title, passage.url, passage.locale) == (best.title, best.url, best.locale)
    return same and not passage.heading and best.score - passage.score <= _AS_GOOD_WITHIN


def _whole(passage: Passage) -> str:
    return f"{passage.heading}\n{passage.text}"


def concise(passage: Passage, question: str) -> str:
    """Up to three of the passage's sentences, those nearest to the question, in the article's order."""
    sentences = _sentences(passage.text)
    wanted = terms(question)
    ranked = sorted(range(len(sentences)), key=lambda index: (-_overlap(wanted, sentences[index]), index))
    if wanted and ranked and _overlap(wanted, sentences[ranked[0]]) == 0:
        ranked = list(range(len(sentences)))  # nothing in common (another language): the article's beginning
    chosen: list[int] = []
    for index in ranked[:SENTENCES]:
        if chosen and sum(len(sentences[i]) for i in [*chosen, index]) > CHARACTERS:
            break
        chosen.append(index)
    return _joined([sentences[index] for index in sorted(chosen)])


def _overlap(wanted: frozenset[str], sentence: str) -> int:
    return len(wanted & terms(sentence))


def _sentences(text: str) -> list[str]:
    found: list[str] = []
    paragraph: list[str] = []
    for line in [*_HEADING.sub("", text).splitlines(), ""]:
        bullet = _BULLET.match(line)
        if bullet or not line.strip():
            found.extend(_split(" ".join(paragraph)))
            paragraph = []
        if bullet:
            found.append(f"- {line[bullet.end() :].strip()}")
        elif line.strip():
            paragraph.append(line.strip())
    return found


def _split(paragraph: str) -> list[str]:
    return [part.strip() for part in _SENTENCE_END.split(paragraph) if part.strip()]


def _joined(sentences: list[str]) -> str:
    """Bullets stay a list; everything else flows."""
    text = ""
    for sentence in sentences:
        if not text:
            text = sentence
        elif sentence.startswith("- ") or text.rsplit("\n", 1)[-1].startswith("- "):
            between = (
                "\n" if sentence.startswith("- ") and text.rsplit("\n", 1)[-1].startswith("- ") else "\n\n"
            )
            text += between + sentence
        else:
            text += ("" if text[-1] in "。！？" else " ") + sentence
    return text
