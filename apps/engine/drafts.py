"""What a customer is writing: which drafts are worth a search, and whether the message sent is the draft. Pure."""

from __future__ import annotations

import unicodedata
from enum import StrEnum
from typing import Final

FEWEST_CHARACTERS: Final = 2  # of Chinese that is a question
_SENTENCE_ENDS: Final = tuple(".?!…。？！")
_MAY_FOLLOW: Final = " \t\n\"'”’」』)）"


class Step(StrEnum):
    """What a draft asks for."""

    SEARCH = "search"  # in place of what was begun before
    KEEP = "keep"  # nothing new
    LET_GO = "let_go"  # there is nothing to search for any more


def normal(text: str) -> str:
    """The text by which draft and message are compared: composed characters, single blanks, none at the ends."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def finished(text: str) -> bool:
    """Whether the last sentence has its end: whoever rests there has probably said what they wanted."""
    return text.rstrip(_MAY_FOLLOW).endswith(_SENTENCE_ENDS)


class Typing:
    """The drafts of one client. Holds only the newest one that is searched for."""

    def __init__(self, *, shortest_pause_s: float, most_characters: int) -> None:
        """What comes sooner after a search was begun, or is longer, is passed over."""
        self._shortest_pause_s, self._most_characters = shortest_pause_s, most_characters
        self.text = ""  # what is searched for; "" while nothing is
        self._number = -1
        self._began_s = float("-inf")

    def heard(self, text: str, number: int, now_s: float) -> Step:
        """What to do about a draft. Of two the one with the higher number is newer; others are passed over."""
        if number <= self._number:
            return Step.KEEP
        self._number = number
        wanted = normal(text)
        if not FEWEST_CHARACTERS <= len(wanted) <= self._most_characters:
            self.text = ""
            return Step.LET_GO
        if wanted == self.text or now_s - self._began_s < self._shortest_pause_s:
            return Step.KEEP
        self.text, self._began_s = wanted, now_s
        return Step.SEARCH

    def forget(self) -> None:
        """What was searched for is of no use any more."""
        self.text = ""

    def sent(self, text: str) -> bool:
        """Whether the message is what was searched for. The next draft begins anew either way."""
        drafted, self.text = self.text, ""
        return drafted != "" and normal(text) == drafted
