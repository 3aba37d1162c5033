"""How well the demo's articles are found, with the real model. The bounds are below what was measured."""

from __future__ import annotations

import pytest

from apps.knowledge.ranking import Corpus
from tests.support.lantern import Question, corpus, first_passage, questions, tally


@pytest.fixture(scope="module")
def lantern() -> Corpus:
    return corpus()  # raises KeyError when an article has changed: run `manage.py embed_demo_articles`


@pytest.mark.parametrize(
    ("text", "locale"),
    [("Can I return worn boots?", "en"), ("穿过的靴子能退吗", "zh"), ("穿过的靴子能退吗", "en")],
)
def test_worn_boots_are_answered_from_their_article(lantern: Corpus, text: str, locale: str) -> None:
    passage = first_passage(lantern, Question(text, locale, frozenset()))
    assert passage is not None
    assert (passage.url, passage.answerable) == ("worn-boots", True)
    assert passage.title == ("穿过的靴子" if "靴" in text else "Boots you have worn")


@pytest.mark.parametrize("text", ["Do you sell kayaks?", "Are you hiring?", "你们招人吗", "你们卖皮划艇吗"])
def test_what_no_article_says_is_not_answered(lantern: Corpus, text: str) -> None:
    passage = first_passage(lantern, Question(text, "en", frozenset()))
    assert passage is None or not passage.answerable


@pytest.mark.parametrize("locale", ["en", "zh"])
def test_of_the_questions_that_set_the_constants_none_is_answered_wrongly(
    lantern: Corpus, locale: str
) -> None:
    found = tally(lantern, list(questions("lantern_questions", locale)))
    assert found.answered_wrong == ()
    assert found.ranked_right == found.answerable
    assert found.recall >= 0.9


@pytest.mark.parametrize("locale", ["en", "zh"])
def test_questions_never_seen_before_are_seldom_answered_wrongly(lantern: Corpus, locale: str) -> None:
    found = tally(lantern, list(questions("lantern_questions_unseen", locale)))
    assert len(found.answered_wrong) <= 2
    assert found.ranked_right >= 0.85 * found.answerable
    assert found.recall >= 0.65
