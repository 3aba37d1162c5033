"""Paraphrase: whether two questions ask the same, so that one answer serves both. Pure; English and Chinese."""

from __future__ import annotations

from apps.engine.paraphrase import chinese, english
from apps.engine.paraphrase.meaning import Meaning


def meaning_of(plain: str, language: str) -> Meaning:
    """Takes a question in its normal form apart. At most 0.3 ms."""
    return chinese.read(plain) if language == "zh" else english.read(plain)
