"""Which drafts are searched for, and which message is one."""

from __future__ import annotations

import pytest

from apps.engine.drafts import Step, Typing, finished


def typing() -> Typing:
    return Typing(shortest_pause_s=0.2, most_characters=20)


@pytest.mark.parametrize("sent", ["Where is it?", "  Where  is\nit? ", "Where is it?\u3000"])
def test_a_message_of_the_same_words_is_the_draft_whatever_its_blanks(sent: str) -> None:
    drafts = typing()
    assert drafts.heard("Where is it?", 1, 0.0) is Step.SEARCH
    assert drafts.sent(sent)
    assert not drafts.sent(sent)


@pytest.mark.parametrize("sent", ["Where is it", "where is it?", "Where is it? Now", ""])
def test_a_message_of_other_words_is_not(sent: str) -> None:
    drafts = typing()
    drafts.heard("Where is it?", 1, 0.0)
    assert not drafts.sent(sent)
    assert not drafts.sent("Where is it?")


def test_composed_and_decomposed_characters_are_the_same() -> None:
    drafts = typing()
    drafts.heard("cafe\u0301", 1, 0.0)
    assert drafts.sent("caf\u00e9")


def test_the_newest_draft_wins_and_an_older_or_repeated_one_changes_nothing() -> None:
    drafts = typing()
    assert drafts.heard("returns", 2, 0.0) is Step.SEARCH
    assert drafts.heard("refunds", 1, 5.0) is Step.KEEP
    assert drafts.heard("returns ", 3, 5.0) is Step.KEEP
    assert drafts.heard("returned", 4, 5.0) is Step.SEARCH
    assert drafts.sent("returned")


def test_a_draft_that_comes_too_soon_is_passed_over() -> None:
    drafts = typing()
    drafts.heard("returns", 1, 0.0)
    assert drafts.heard("returned", 2, 0.19) is Step.KEEP
    assert drafts.heard("returned items", 3, 0.2) is Step.SEARCH


@pytest.mark.parametrize("text", ["", " ", "r", "r" * 21])
def test_nothing_is_searched_for_what_is_too_short_or_too_long(text: str) -> None:
    drafts = typing()
    drafts.heard("returns", 1, 0.0)
    assert drafts.heard(text, 2, 5.0) is Step.LET_GO
    assert not drafts.sent("returns")
    assert not drafts.sent(text)


def test_two_characters_of_chinese_are_a_question() -> None:
    assert typing().heard("退货", 1, 0.0) is Step.SEARCH


@pytest.mark.parametrize(
    "text", ["Do lamps dream?", "Hello. ", "能退货吗？", 'Say "yes."', "well…", "(really?)\n"]
)
def test_a_sentence_with_its_end_is_finished(text: str) -> None:
    assert finished(text)


@pytest.mark.parametrize("text", ["", "Do lamps", "v1.2", "?!a", "能退货吗", "a,", "  "])
def test_a_sentence_without_one_is_not(text: str) -> None:
    assert not finished(text)
