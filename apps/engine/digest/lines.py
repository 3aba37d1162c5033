"""The digest itself: lines weighed, and as many of their pieces kept as fit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from apps.engine.digest import chinese, english
from apps.engine.digest.worth import Known, Piece, Worth
from apps.engine.languages import has_han
from apps.engine.types import Speaker

_MARK = {Speaker.CUSTOMER: "C", Speaker.ASSISTANT: "A", Speaker.AGENT: "H"}


@dataclass(frozen=True, slots=True)
class Line:
    """What is kept of the message at a place of the conversation."""

    place: int
    speaker: Speaker
    text: str


def digest(lines: Sequence[Line], budget_bytes: int) -> tuple[Line, ...]:
    """The lines shortened until they are at most `budget_bytes` as `rendered`; those without a rest are left out.

    Nothing is put into other words: pieces stay as they were written, in their order. Fillers go whatever the budget;
    then what was said before, then what tells least. Some 4 ms of CPU a kilobyte.
    """
    pieces = list(_weighed(lines))
    ranked = sorted(range(len(pieces)), key=lambda at: _rank(*pieces[at]))
    low, high = 0, len(ranked)
    while low < high:
        middle = (low + high + 1) // 2
        fits = utf8_size(_written(lines, [pieces[at] for at in sorted(ranked[:middle])])) <= budget_bytes
        low, high = (middle, high) if fits else (low, middle - 1)
    return _written(lines, [pieces[at] for at in sorted(ranked[:low])])


def rendered(lines: Sequence[Line]) -> str:
    """A line each: C for the customer, A for the assistant, H for a human colleague."""
    return "\n".join(f"{_MARK[line.speaker]}:{line.text}" for line in lines)


def utf8_size(lines: Sequence[Line]) -> int:
    """Bytes of the lines as `rendered`."""
    return sum(len(line.text.encode("utf-8", "replace")) + 3 for line in lines) - bool(lines)


def _weighed(lines: Sequence[Line]) -> Iterator[tuple[int, Line, Piece]]:
    known = Known()
    for at, line in enumerate(lines):
        for start, stop in _sentences(line.text):
            sentence = line.text[start:stop]
            spaced = not has_han(sentence)
            for found in english.pieces(sentence) if spaced else chinese.pieces(sentence, known):
                worth = known.learn(sentence[found.start : found.end], found.worth, spaced=spaced)
                yield at, line, Piece(start + found.start, start + found.end, worth)


# A full stop ends a sentence before a blank or a capital; not after an initial or a title ("Dr. E. Pollock", "4.5").
_SENTENCE_END = re.compile(
    r"[!?。！？；\n]+|(?<!\b[A-Za-z])(?<!\b[DM]rs)(?<!\b[DMS][rst])\.(?=\s|$)|(?<=[a-z])\.(?=[A-Z][a-z])"
)


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for end in _SENTENCE_END.finditer(text):
        yield start, end.start()
        start = end.end()
    yield start, len(text)


def _rank(_: int, line: Line, piece: Piece) -> tuple[float, int]:
    """Best first. Of equal worth, what the shop told stays before what the customer told, who knows it; of topics the
    customer's, which were asked for. Then the short before the long: more of it fits.
    """
    preferred = (line.speaker is Speaker.CUSTOMER) == (piece.worth is Worth.TOPIC)
    return -piece.worth - 0.5 * preferred, piece.end - piece.start


def _written(lines: Sequence[Line], pieces: Sequence[tuple[int, Line, Piece]]) -> tuple[Line, ...]:
    texts: dict[int, str] = {}
    reached = 0
    for at, line, piece in pieces:
        kept = line.text[piece.start : piece.end]
        joint = "" if at not in texts else " " if piece.start > reached else ""
        texts[at] = texts.get(at, "") + joint + kept
        reached = piece.end
    return tuple(Line(lines[at].place, lines[at].speaker, text) for at, text in texts.items())
