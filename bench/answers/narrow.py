"""The lexicons without what only the held-out half could have put there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from apps.engine.paraphrase import chinese, english
from apps.engine.paraphrase.lemmas import lemma
from bench.answers.lists import HALVES, near_misses, paraphrases


@contextmanager
def only_calibrated_words() -> Iterator[tuple[int, int]]:
    """Strikes out every entry that a held-out text uses and no calibrating text does: how many (English, Chinese).

    Whoever wrote the lexicons had written the lists: this is what is left without that.
    """
    calibrating, held_out = (_texts(half) for half in HALVES)
    kept = english._BY_PHRASE, english._CONCEPT, chinese._BY_PHRASE, chinese._PHRASE
    words = {phrase for phrase in kept[0] if _says(held_out, phrase) and not _says(calibrating, phrase)}
    signs = {phrase for phrase in kept[2] if phrase in held_out and phrase not in calibrating}
    english._BY_PHRASE = {phrase: name for phrase, name in kept[0].items() if phrase not in words}
    english._CONCEPT = re.compile(rf"(?<!\S)(?:{_any(english._BY_PHRASE)})(?!\S)")
    chinese._BY_PHRASE = {phrase: name for phrase, name in kept[2].items() if phrase not in signs}
    chinese._PHRASE = re.compile(_any(chinese._BY_PHRASE))
    try:
        yield len(words), len(signs)
    finally:
        english._BY_PHRASE, english._CONCEPT, chinese._BY_PHRASE, chinese._PHRASE = kept


def _texts(half: str) -> str:
    asked = [text for group in paraphrases(half) for text in group.asked]
    asked += [text for row in near_misses(half) for text in (row.known, row.asked)]
    read = [" ".join(lemma(word) for word in re.findall(r"[a-z0-9]+", text.lower())) for text in asked]
    return f" {' '.join(asked + read)} "


def _says(texts: str, phrase: str) -> bool:
    return f" {phrase} " in texts


def _any(phrases: dict[str, str]) -> str:
    return "|".join(re.escape(phrase) for phrase in sorted(phrases, key=len, reverse=True))
