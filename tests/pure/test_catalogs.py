"""The Chinese catalog is whole: every text translated, every placeholder kept."""

from __future__ import annotations

import re

import polib
import pytest

from chatsvc.environment import BASE_DIR

ENTRIES = list(polib.pofile(str(BASE_DIR / "locale/zh_Hans/LC_MESSAGES/django.po")))
PLACEHOLDER = re.compile(r"%\(\w+\)[sd]|%[sd]|\{\w+\}")


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.msgid[:40])
def test_an_entry_is_translated_with_its_placeholders(entry: polib.POEntry) -> None:
    texts = list(entry.msgstr_plural.values()) or [entry.msgstr]
    assert all(texts)
    assert not entry.fuzzy
    for text in texts:
        assert sorted(PLACEHOLDER.findall(text)) == sorted(PLACEHOLDER.findall(entry.msgid))
