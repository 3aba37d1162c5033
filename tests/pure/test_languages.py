"""Which of the two languages a locale or a question is in."""

from __future__ import annotations

import pytest

from apps.engine.languages import asked_in, language_of


@pytest.mark.parametrize(
    ("locale", "language"),
    [
        ("en", "en"),
        ("en-GB", "en"),
        ("zh", "zh"),
        ("ZH-Hans", "zh"),
        ("zh_CN", "zh"),
        ("fr", "en"),
        ("", "en"),
    ],
)
def test_a_locale_is_chinese_or_else_english(locale: str, language: str) -> None:
    assert language_of(locale) == language


@pytest.mark.parametrize(
    ("question", "locale", "language"),
    [
        ("1042?", "zh-hans", "zh"),
        ("1042?", "en", "en"),
        ("A-1042?", "zh-hans", "zh"),
        ("PayPal?", "zh", "en"),
        ("能用 PayPal 吗", "en", "zh"),
    ],
)
def test_the_script_of_a_question_says_its_language(question: str, locale: str, language: str) -> None:
    assert asked_in(question, locale) == language
