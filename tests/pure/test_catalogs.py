"""The Chinese catalog is whole: every text of code and templates is in it, translated, every placeholder kept."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import polib
import pytest
from django.utils.translation.template import templatize

from chatsvc.environment import BASE_DIR

ENTRIES = list(polib.pofile(str(BASE_DIR / "locale/zh_Hans/LC_MESSAGES/django.po")))
MARKS = {"_", "gettext", "gettext_lazy", "gettext_noop", "ngettext", "ngettext_lazy"}
# What `templatize` makes of the tags: calls between remains that are no Python.
TEMPLATE_MARK = re.compile(r"""\b(?:_|n?gettext)\((?P<text>u?"(?:[^"\\]|\\.)*"|u?'(?:[^'\\]|\\.)*')""")
PLACEHOLDER = re.compile(r"%\(\w+\)[sd]|%[sd]|\{\w+\}")


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.msgid[:40])
def test_an_entry_is_translated_with_its_placeholders(entry: polib.POEntry) -> None:
    texts = list(entry.msgstr_plural.values()) or [entry.msgstr]
    assert all(texts)
    assert not entry.fuzzy
    for text in texts:
        assert sorted(PLACEHOLDER.findall(text)) == sorted(PLACEHOLDER.findall(entry.msgid))


def test_every_marked_text_is_in_the_catalog() -> None:
    known = {entry.msgid for entry in ENTRIES}
    marked = {text: place for place, text in (*marked_in_code(), *marked_in_templates())}
    assert len(marked) > 300
    assert {text: place for text, place in marked.items() if text not in known} == {}


def marked_in_code() -> Iterator[tuple[str, str]]:
    """Place and text of every call that marks a literal."""
    for package in ("apps", "chatsvc"):
        for path in (BASE_DIR / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                match node:
                    case ast.Call(func=ast.Name(name), args=[ast.Constant(str(text)), *_]) if name in MARKS:
                        yield f"{path.relative_to(BASE_DIR)}:{node.lineno}", text


def marked_in_templates() -> Iterator[tuple[str, str]]:
    """The same of tags."""
    for path in (BASE_DIR / "templates").rglob("*.html"):
        for mark in TEMPLATE_MARK.finditer(templatize(path.read_text(encoding="utf-8"))):
            yield str(path.relative_to(BASE_DIR)), ast.literal_eval(mark["text"])
