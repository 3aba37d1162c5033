"""How many tokens a text is, before a server has said so. Pure."""

from __future__ import annotations

import math

# UTF-8 bytes a token. Within 11 % of the tokenizers measured on bulk text of English and Chinese; four characters a
# token is 70 % low for Chinese.
BYTES_A_TOKEN = 4 / 1.2


def estimated_tokens(text: str) -> int:
    """What the text costs in a prompt, rounded up."""
    return tokens_of_bytes(len(text.encode("utf-8", "replace")))


def tokens_of_bytes(utf8_bytes: int) -> int:
    """The same of a text whose size is known."""
    return math.ceil(utf8_bytes / BYTES_A_TOKEN)
