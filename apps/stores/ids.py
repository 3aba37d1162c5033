"""Identifiers: 20 characters, sortable by creation time, unguessable in their second half."""

from __future__ import annotations

import secrets
import time

CHARACTERS = 20
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford base 32


def new_id() -> str:
    """48 bits of milliseconds since 1970, then 52 random bits. Sorts by time; collides never in practice."""
    value = (time.time_ns() // 1_000_000 << 52) | secrets.randbits(52)
    return "".join(_ALPHABET[value >> shift & 31] for shift in range(95, -1, -5))


def is_id(text: str) -> bool:
    """Whether the text has the form of an identifier: the only ones a database need be asked about."""
    return len(text) == CHARACTERS and set(text) <= set(_ALPHABET)


def new_secret() -> str:
    """256 random bits, URL-safe."""
    return secrets.token_urlsafe(32)
