"""Messages as safe HTML, for mail and transcripts: what static/js/wire/markdown*.js shows, made on the server.

tests/js/markdown.json fixes what both show. Nothing here reads or writes a conversation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from html import unescape
from typing import Any, Final

import nh3
from django.utils.html import escape, strip_tags
from django.utils.safestring import SafeString
from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.token import Token

from apps.conversations.markup_inlines import Inline

BlockRule = Callable[[StateBlock, int, int, bool], bool]

MAX_CONTAINERS: Final = 8
MAX_EMPHASIS: Final = 16

_TAGS: Final = frozenset(
    "a blockquote br code div em h3 h4 h5 h6 hr li ol p pre s strong table tbody td th thead tr ul".split()  # noqa: SIM905 - reads better
)
# Where one line ends, so that its last word does not join the next one's first.
_EDGE: Final = re.compile(r"<(?:[bh]r|/(?:p|h\d|li|pre|t[dh]))>")
_ALIGNMENTS: Final = {"left": "align-start", "center": "align-center", "right": "align-end"}


def to_html(source: str) -> SafeString:
    """HTML of allowed elements and links only, whatever the Markdown holds. About 1 ms for a long answer."""
    tokens = _MARKDOWN.parse(source)
    for token in tokens:
        _style(token)
    html = _MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {})
    return SafeString(
        nh3.clean(
            html,
            tags=set(_TAGS),
            attributes={"*": set(), "a": {"href"}, "ol": {"start"}},
            allowed_classes={
                "div": {"table"},
                "th": set(_ALIGNMENTS.values()),
                "td": set(_ALIGNMENTS.values()),
            },
            url_schemes={"https", "http", "mailto"},
            link_rel="noopener noreferrer nofollow",
            set_tag_attribute_values={"a": {"target": "_blank"}},
        )
    )


def to_text(source: str) -> str:
    """The words of a message in one line, without its marks."""
    return " ".join(unescape(strip_tags(_EDGE.sub(" ", to_html(source)))).split())


def _style(token: Token) -> None:
    # No line breaks between blocks: what is written is what a browser builds.
    token.block = False
    if token.tag in {"h1", "h2", "h3", "h4", "h5", "h6"}:
        # A message is never its reader's outline: its headings start low.
        token.tag = f"h{min(6, int(token.tag[1]) + 2)}"
    if alignment := str(token.attrs.pop("style", "")).rpartition(":")[2]:
        token.attrs["class"] = _ALIGNMENTS[alignment]
    if token.children:
        _flatten(token.children)


def _flatten(tokens: Sequence[Token]) -> None:
    """Makes text of emphasis that is nested too deep."""
    depth = 0
    for token in tokens:
        if token.tag not in {"em", "strong", "s"}:
            continue
        depth += token.nesting
        if depth + (token.nesting < 0) > MAX_EMPHASIS:
            token.type, token.tag, token.nesting, token.content = "text", "", 0, token.markup


def _shallow(rule: BlockRule) -> BlockRule:
    """A quote or list too deep inside others is text, so that depth never costs more than length."""

    def limited(state: StateBlock, start: int, end: int, silent: bool) -> bool:
        depth = state.env.get("depth", 0)
        if depth >= MAX_CONTAINERS:
            return False
        state.env["depth"] = depth + 1
        try:
            return rule(state, start, end, silent)
        finally:
            state.env["depth"] = depth

    return limited


def _render_break(renderer: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    return "<br>"


def _render_fence(renderer: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    return f"<pre><code>{escape(tokens[index].content.removesuffix(chr(10)))}</code></pre>"


def _render_table(renderer: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    return '<div class="table"><table>' if tokens[index].nesting == 1 else "</table></div>"


def _markdown() -> MarkdownIt:
    markdown = MarkdownIt("commonmark", {"html": False, "breaks": True, "xhtmlOut": False, "maxNesting": 100})
    markdown.enable(["table", "strikethrough"])
    markdown.disable(
        ["image", "reference", "html_block", "html_inline", "lheading", "code", "entity", "link"]
    )
    for rule in markdown.block.ruler.__rules__:
        if rule.name in {"blockquote", "list"}:
            rule.fn = _shallow(rule.fn)
    markdown.inline = Inline(markdown.inline)
    for name, render in (
        ("softbreak", _render_break),
        ("hardbreak", _render_break),
        ("fence", _render_fence),
        ("table_open", _render_table),
        ("table_close", _render_table),
    ):
        markdown.add_render_rule(name, render)
    return markdown


_MARKDOWN: Final = _markdown()
