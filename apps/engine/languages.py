"""The two languages the product itself speaks, and how a locale or a question tells which one to use. Pure."""

from __future__ import annotations

import re
from enum import StrEnum

_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
# Two in a row: an order number may begin with a letter.
_LETTERS = re.compile(r"[^\W\d_]{2}")


class Language(StrEnum):
    """By the first part of its locale."""

    ENGLISH = "en"
    CHINESE = "zh"


def language_of(locale: str) -> Language:
    """The language of a locale such as `zh-Hans-CN`; English for every other."""
    return Language.CHINESE if locale.lower().startswith(Language.CHINESE) else Language.ENGLISH


def has_han(text: str) -> bool:
    """Whether the text has a Chinese character."""
    return _HAN.search(text) is not None


def asked_in(question: str, locale: str) -> Language:
    """The language of a question: by its script, or by the page's locale where it has no words ("1042?")."""
    if has_han(question):
        return Language.CHINESE
    return Language.ENGLISH if _LETTERS.search(question) else language_of(locale)
