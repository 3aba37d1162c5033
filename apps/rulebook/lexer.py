"""The words of a CEL expression with their places: enough to refuse, to point and to find literals. Pure.

The grammar itself is the CEL library's; whatever is not a token here is left to it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""(?P<string>[rRbB]{0,2}(?:\"{3}[\s\S]*?\"{3}|'{3}[\s\S]*?'{3}|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'))
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<number>\d[\w.]*)
    |(?P<comment>//[^\n]*)
    |(?P<mark>&&|\|\||[=!<>]=|\S)""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Token:
    kind: str  # string | name | number | mark
    text: str
    at: int  # character offset


def tokens_of(source: str) -> list[Token]:
    """The tokens of an expression, comments left out."""
    return [
        Token(match.lastgroup or "", match[0], match.start())
        for match in _TOKEN.finditer(source)
        if match.lastgroup != "comment"
    ]


def place(source: str, at: int) -> str:
    """Where an offset is, for a reader: "line 2, character 5"; one-line expressions need no line."""
    line = source.count("\n", 0, at) + 1
    character = at - source.rfind("\n", 0, at)
    return f"line {line}, character {character}" if "\n" in source else f"character {character}"


def calls(tokens: Sequence[Token]) -> list[tuple[Token, Sequence[Token]]]:
    """(name, what stands between its brackets) of every call, outer ones first."""
    found = []
    for at, token in enumerate(tokens[:-1]):
        if token.kind == "name" and tokens[at + 1].text == "(":
            found.append((token, tokens[at + 2 : _closing(tokens, at + 1)]))
    return found


def split(tokens: Sequence[Token], mark: str) -> list[Sequence[Token]]:
    """The parts between the marks that stand in no bracket."""
    parts: list[Sequence[Token]] = []
    depth = start = 0
    for at, token in enumerate(tokens):
        depth += _step(token)
        if depth == 0 and token.kind == "mark" and token.text == mark:
            parts.append(tokens[start:at])
            start = at + 1
    return [*parts, tokens[start:]]


def without_brackets(tokens: Sequence[Token]) -> Sequence[Token]:
    """The tokens inside a pair of round brackets that holds all of them, however often."""
    while tokens and tokens[0].text == "(" and _closing(tokens, 0) == len(tokens) - 1:
        tokens = tokens[1:-1]
    return tokens


def _closing(tokens: Sequence[Token], opening: int) -> int:
    depth = 0
    for at in range(opening, len(tokens)):
        depth += _step(tokens[at])
        if depth == 0:
            return at
    return len(tokens)


def _step(token: Token) -> int:
    if token.kind != "mark":
        return 0
    return (token.text in "([{") - (token.text in ")]}")
