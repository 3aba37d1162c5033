"""Cuts an article's Markdown into passages. Pure: no Django, no I/O.

A passage never crosses a heading, so that it can be quoted alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from apps.engine.tokens import BYTES_A_TOKEN, estimated_tokens

MAX_TOKENS = 220  # a section of a help article; E5 reads 512 of its own tokens at most

_HEADING = re.compile(r"^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$")
_FENCE = re.compile(r"^ {0,3}(```|~~~)")
# An end of a sentence: Latin stops want a space behind them (3.5, e.g. file.txt), CJK ones do not.
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？；])|\n")


@dataclass(frozen=True, slots=True)
class Section:
    """A piece of an article: the headings above it, joined, and its Markdown."""

    heading: str
    text: str


def chunk(markdown: str, max_tokens: int = MAX_TOKENS) -> tuple[Section, ...]:
    """Passages of at most `max_tokens`, in reading order.

    Every character that is not white space and not in a heading is in exactly one passage.
    """
    return tuple(
        Section(heading, text)
        for heading, blocks in _sections(markdown)
        for text in _packed(list(_small_blocks(blocks, max_tokens)), max_tokens)
    )


def _sections(markdown: str) -> Iterator[tuple[str, list[str]]]:
    """(headings above, blocks) for each stretch between headings. A single first `#` is the title: not kept."""
    path: list[tuple[int, str]] = []
    lines: list[str] = []
    fence = ""
    for line in markdown.splitlines():
        fence, inside = _fence_after(line, fence)
        heading = None if inside else _HEADING.match(line)
        if heading is None:
            lines.append(line)
            continue
        yield _joined(path), _blocks(lines)
        lines = []
        level = len(heading[1])
        path = [*(step for step in path if step[0] < level), (level, heading[2])]
    yield _joined(path), _blocks(lines)


def _fence_after(line: str, fence: str) -> tuple[str, bool]:
    """The open fence after this line, and whether the line belongs to a fenced block."""
    mark = _FENCE.match(line)
    if not mark:
        return fence, bool(fence)
    if not fence:
        return mark[1], True
    return ("", True) if mark[1] == fence else (fence, True)


def _joined(path: list[tuple[int, str]]) -> str:
    return " › ".join(text for level, text in path if level > 1)


def _blocks(lines: list[str]) -> list[str]:
    """Paragraphs, lists and tables: what blank lines part. A fenced block keeps its blank lines."""
    blocks: list[list[str]] = [[]]
    fence = ""
    for line in lines:
        fence, inside = _fence_after(line, fence)
        if line.strip() or inside:
            blocks[-1].append(line)
        elif blocks[-1]:
            blocks.append([])
    return [text for text in ("\n".join(block).strip("\n") for block in blocks) if text.strip()]


def _small_blocks(blocks: list[str], max_tokens: int) -> Iterator[str]:
    for block in blocks:
        if estimated_tokens(block) <= max_tokens:
            yield block
        else:
            yield from _split(block, max_tokens)


def _split(block: str, max_tokens: int) -> Iterator[str]:
    """Cuts a long block at sentences, a long sentence at spaces or, failing those, anywhere."""
    held = ""
    for sentence in _SENTENCE_END.split(block):
        for piece in _cut(sentence, max_tokens):
            joined = f"{held} {piece}" if held and not _wide_end(held) else held + piece
            if estimated_tokens(joined) > max_tokens:
                yield held
                held = piece
            else:
                held = joined
    if held.strip():
        yield held


def _cut(sentence: str, max_tokens: int) -> Iterator[str]:
    rest = sentence.strip()
    while estimated_tokens(rest) > max_tokens:
        end = _longest_prefix(rest, max_tokens)
        space = rest.rfind(" ", 1, end)
        end = space if space > 0 else end
        yield rest[:end].rstrip()
        rest = rest[end:].lstrip()
    if rest:
        yield rest


def _longest_prefix(text: str, max_tokens: int) -> int:
    """Characters of `text` that fit, at least one."""
    budget_bytes = int(max_tokens * BYTES_A_TOKEN)
    return max(1, len(text.encode("utf-8", "replace")[:budget_bytes].decode("utf-8", "ignore")))


def _wide_end(text: str) -> bool:
    return ord(text[-1]) > 0x2E7F


def _packed(blocks: list[str], max_tokens: int) -> Iterator[str]:
    """Joins neighbouring blocks of one section while they fit."""
    held = ""
    for block in blocks:
        joined = f"{held}\n\n{block}" if held else block
        if held and estimated_tokens(joined) > max_tokens:
            yield held
            held = block
        else:
            held = joined
    if held:
        yield held
