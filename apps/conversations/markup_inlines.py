"""The text of one block, read by the rules of static/js/wire/markdown-inlines.js on top of markdown-it's parser.

CommonMark's rules, except: emphasis needs no space beside Chinese, Japanese and Korean; an address is a link without
brackets; only what `safe_href` opens is a link; entities and raw HTML are text. Time is linear in the length.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import MutableMapping
from typing import Any, Final

from markdown_it import MarkdownIt
from markdown_it.parser_inline import ParserInline
from markdown_it.rules_inline import StateInline
from markdown_it.rules_inline.state_inline import Delimiter, Scanned
from markdown_it.token import Token

# A block longer than this is shown as it was written.
MAX_LENGTH: Final = 8_192

_SCRIPTS: Final = "\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7ff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef"
_CJK: Final = re.compile(f"[{_SCRIPTS}\U00020000-\U0003ffff]")
_PLAIN: Final = re.compile(r"(?:(?!https?://)[^\\`*_~[\]<\n])+", re.IGNORECASE)
_AUTOLINK: Final = re.compile(r"<((?:https?://|mailto:)[^\s<>]+)>", re.IGNORECASE)
_MAILBOX: Final = re.compile(r"<([^\s<>@:]+@[^\s<>@]+)>")
_ADDRESS: Final = re.compile(rf"https?://[^\s<>\"'`[\]\\{_SCRIPTS}]+", re.IGNORECASE)
_STEP: Final = r"(?:\\[!-/:-@[-`{-~]|\\(?![!-/:-@[-`{-~])|[^\s()<>\\])"
_TARGET: Final = re.compile(
    rf"\(\s*(?:<([^<>\n]*)>|((?:{_STEP}|\({_STEP}*\))*))(?:\s+(?:\"[^\"]*\"|'[^']*'))?\s*\)"
)
_ESCAPED: Final = re.compile(r"\\([!-/:-@[-`{-~])")
_OPENED: Final = re.compile(
    r"(?=https?://[^/?#\\|^%(){}[\]]+(?:[/?#]|$)|mailto:.)[^\s<>\"`\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]+",
    re.IGNORECASE,
)


def safe_href(address: str) -> str | None:
    """The address where it is one we open: https, http or mail, without characters that hide where it leads."""
    return address if _OPENED.fullmatch(address) else None


class _State(StateInline):
    def scanDelims(self, start: int, canSplitWord: bool) -> Scanned:
        """CommonMark's rule, but emphasis needs no space beside Chinese, Japanese and Korean."""
        end = start
        while end < self.posMax and self.src[end] == self.src[start]:
            end += 1
        before = self.src[start - 1] if start > 0 else " "
        after = self.src[end] if end < self.posMax else " "
        left, right = _is_inside(after, before), _is_inside(before, after)
        if canSplitWord:
            return Scanned(left, right, end - start)
        opens = left and (not right or _is_punctuation(before))
        return Scanned(opens, right and (not left or _is_punctuation(after)), end - start)


class Inline(ParserInline):
    """Reads the text of a block by these rules; the remaining ones are markdown-it's."""

    def __init__(self, known: ParserInline) -> None:
        self.ruler, self.ruler2 = known.ruler, known.ruler2
        self.ruler.at("text", _text)
        self.ruler.at("strikethrough", _tildes)
        self.ruler.at("autolink", _autolink)
        self.ruler.after("text", "opening", _opening_bracket)
        self.ruler.after("opening", "closing", _closing_bracket)
        self.ruler.after("closing", "address", _address)

    def parse(
        self, src: str, md: MarkdownIt, env: MutableMapping[str, Any], tokens: list[Token]
    ) -> list[Token]:
        state = _State(src, md, env, tokens)
        # Where a label may have begun: its token, and how many delimiters stood before it.
        env["brackets"] = []
        if len(src) > MAX_LENGTH:
            _as_written(state)
        else:
            self.tokenize(state)
        for rule in self.ruler2.getRules(""):
            rule(state)
        return state.tokens


def _as_written(state: StateInline) -> None:
    first, *lines = state.src.split("\n")
    state.push("text", "", 0).content = first
    for line in lines:
        state.push("hardbreak", "br", 0)
        state.push("text", "", 0).content = line


def _text(state: StateInline, silent: bool) -> bool:
    found = _PLAIN.match(state.src, state.pos, state.posMax)
    if found:
        state.pending += found[0]
        state.pos = found.end()
    return found is not None


def _tildes(state: StateInline, silent: bool) -> bool:
    """Two tildes strike; any other number of them is text."""
    if state.src[state.pos] != "~":
        return False
    opens, closes, length = state.scanDelims(state.pos, True)
    state.push("text", "", 0).content = "~" * length
    state.pos += length
    if length == 2:
        at = len(state.tokens) - 1
        # A length of 0 leaves CommonMark's rule of three out.
        state.delimiters.append(Delimiter(ord("~"), 0, at, -1, opens, closes))
    return True


def _opening_bracket(state: StateInline, silent: bool) -> bool:
    if state.src[state.pos] != "[":
        return False
    state.push("text", "", 0).content = "["
    state.env["brackets"].append((len(state.tokens) - 1, len(state.delimiters)))
    state.pos += 1
    return True


def _closing_bracket(state: StateInline, silent: bool) -> bool:
    """Ends a label and makes a link of it: no label is searched twice, as markdown-it's own rule would."""
    if state.src[state.pos] != "]" or not state.env["brackets"]:
        return False
    at, outside = state.env["brackets"].pop()
    target = _TARGET.match(state.src, state.pos + 1, state.posMax)
    href = safe_href(_ESCAPED.sub(r"\1", target[1] or target[2] or "")) if target else None
    if target is None or href is None:
        return False
    # A link holds no other link: an address in its label is text, and an outer bracket stays one.
    for token in state.tokens[at + 1 :]:
        if token.tag == "a":
            token.type, token.tag, token.nesting = "text", "", 0
    _become_link(state.tokens[at], href)
    state.tokens_meta.append({"delimiters": state.delimiters[outside:]})
    del state.delimiters[outside:]
    state.env["brackets"].clear()
    state.push("text", "", 0)
    _become_link(state.tokens[-1], None)
    state.pos = target.end()
    return True


def _become_link(token: Token, href: str | None) -> None:
    """Without an address it is the end of one."""
    token.tag, token.content = "a", ""
    token.type, token.nesting = ("link_open", 1) if href else ("link_close", -1)
    if href:
        token.attrs = {"href": href}


def _autolink(state: StateInline, silent: bool) -> bool:
    if state.src[state.pos] != "<":
        return False
    if found := _AUTOLINK.match(state.src, state.pos, state.posMax):
        href = safe_href(found[1])
    elif found := _MAILBOX.match(state.src, state.pos, state.posMax):
        href = safe_href(f"mailto:{found[1]}")
    else:
        return False
    if href is None:
        state.pending += found[0]
    else:
        _push_link(state, href, found[1])
    state.pos = found.end()
    return True


def _address(state: StateInline, silent: bool) -> bool:
    before = state.src[state.pos - 1] if state.pos > 0 else " "
    inside_word = unicodedata.category(before)[0] in "LN" and not _CJK.match(before)
    found = None if inside_word else _ADDRESS.match(state.src, state.pos, state.posMax)
    href = safe_href(_without_end(found[0])) if found else None
    if href is None:
        return False
    _push_link(state, href, href)
    state.pos += len(href)
    return True


def _without_end(found: str) -> str:
    """Marks, full stops and closing brackets at the end of an address belong to the sentence."""
    spare = found.count(")") - found.count("(")
    end = len(found)
    while end > 0 and found[end - 1] in ".,;:!?*_~|]})":
        if found[end - 1] == ")":
            spare -= 1
            if spare < 0:
                break
        end -= 1
    return found[:end]


def _push_link(state: StateInline, href: str, text: str) -> None:
    state.push("text", "", 0)
    _become_link(state.tokens[-1], href)
    state.push("text", "", 0).content = text
    state.push("text", "", 0)
    _become_link(state.tokens[-1], None)


def _is_inside(inner: str, outer: str) -> bool:
    """Whether `inner` can be what is emphasized, with `outer` on the other side of the run."""
    if inner.isspace():
        return False
    return (
        not _is_punctuation(inner)
        or outer.isspace()
        or _is_punctuation(outer)
        or bool(_CJK.match(outer))
        or bool(_CJK.match(inner))
    )


def _is_punctuation(character: str) -> bool:
    return unicodedata.category(character)[0] in "PS"
