"""What pieces of a text are worth keeping, and what was said before."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

# Longer pieces are never put together from known ones, and of names only the newest are looked for in other text:
# both bound the work on text that is no language.
LONGEST_KNOWN = 24
NAMES_LOOKED_FOR = 300


class Worth(IntEnum):
    """How long a piece stays when the room gets less."""

    REPEATED = 1
    REPEATED_FACT = 2
    TOPIC = 3  # what is talked about
    SAID = 4  # what is said of it
    FACT = 5  # numbers, names, times, what turns a statement round


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a text worth keeping; what lies between two of them is filler."""

    start: int
    end: int
    worth: Worth


class Known:
    """The pieces of all that was read so far."""

    def __init__(self) -> None:
        self._pieces: set[str] = set()
        self._longest = 0
        self._names: list[str] = []

    def learn(self, text: str, worth: Worth, *, spaced: bool) -> Worth:
        """The worth of a piece, which is less when it was said before. `spaced` where its language parts words."""
        piece = text.lower()
        if piece in self._pieces or (not spaced and self.composes(piece)):
            return Worth.REPEATED_FACT if worth is Worth.FACT else Worth.REPEATED
        self._pieces.add(piece)
        if not spaced and len(piece) <= LONGEST_KNOWN:
            self._longest = max(self._longest, len(piece))
            if worth is Worth.FACT and len(piece) >= 4:
                self._names = [text, *self._names[: NAMES_LOOKED_FOR - 1]]
        return worth

    def composes(self, run: str, joints: str = "") -> bool:
        """Whether a run without spaces is nothing but known pieces and characters of `joints`."""
        reached = [True] + [False] * len(run)
        for end in range(1, len(run) + 1):
            reached[end] = (reached[end - 1] and run[end - 1] in joints) or any(
                reached[start] and run[start:end] in self._pieces
                for start in range(max(0, end - self._longest), end)
            )
        return reached[-1]

    def names_in(self, run: str) -> Iterator[tuple[int, int]]:
        """Where known names stand in a longer run."""
        for name in self._names:
            if len(name) < len(run) and (at := run.find(name)) >= 0:
                yield at, at + len(name)
