"""What text can be stored, and how long it is where JavaScript counts. Pure."""

from __future__ import annotations


def unstorable(text: str) -> bool:
    """NUL, which PostgreSQL refuses, and lone surrogates, which no encoding has."""
    return "\x00" in text or any("\ud800" <= character <= "\udfff" for character in text)


def storable(text: str) -> str:
    """The text without what no database and no encoding takes: what a model says is repaired, never refused."""
    return text.translate(_UNSTORABLE) if unstorable(text) else text


_UNSTORABLE = {0: None, **dict.fromkeys(range(0xD800, 0xE000), "\ufffd")}


def utf16_length(text: str) -> int:
    """Length in UTF-16 code units."""
    return len(text) + sum(character > "\uffff" for character in text)


def utf16_prefix(text: str, units: int) -> str:
    """The longest prefix of at most `units` UTF-16 code units that splits no character."""
    taken = 0
    for index, character in enumerate(text):
        taken += 2 if character > "\uffff" else 1
        if taken > units:
            return text[:index]
    return text
