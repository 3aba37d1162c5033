"""Articles are cut at their headings, nothing is lost, nothing is too long."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.engine.tokens import estimated_tokens
from apps.knowledge.chunking import Section, chunk

PIECES = st.sampled_from(
    [
        "# Title", "## Care", "### Drying", "##no heading", "Let it dry.", "晾干以后再收起来。不要折叠！",
        "- one\n- two", "", "```\n# not a heading\n\ncode\n```", "| a | b |\n|---|---|\n| 1 | 2 |",
        "x" * 900, "字" * 700, "word " * 300,
    ]
)  # fmt: skip


def visible(text: str) -> str:
    return re.sub(r"\s", "", text)


@given(st.lists(PIECES, max_size=12))
def test_every_character_outside_headings_is_in_exactly_one_passage_in_order(pieces: list[str]) -> None:
    markdown = "\n\n".join(pieces)
    without_headings = "\n".join(piece for piece in pieces if not re.match(r"#+ ", piece))
    assert visible("".join(section.text for section in chunk(markdown))) == visible(without_headings)


@given(st.lists(PIECES, max_size=12), st.integers(min_value=5, max_value=400))
def test_no_passage_is_empty_or_longer_than_asked(pieces: list[str], max_tokens: int) -> None:
    for section in chunk("\n\n".join(pieces), max_tokens):
        assert section.text.strip()
        assert estimated_tokens(section.text) <= max_tokens


@given(st.text(max_size=400), st.integers(min_value=1, max_value=60))
def test_any_text_is_cut_without_loss(text: str, max_tokens: int) -> None:
    plain = re.sub(r"[#`~]", "", text)
    assert visible("".join(section.text for section in chunk(plain, max_tokens))) == visible(plain)


def test_a_passage_knows_the_headings_above_it_but_not_the_title() -> None:
    markdown = "# Tents\n\nIntro.\n\n## Care\n\nWash.\n\n### Drying\n\nDry.\n\n## Repair\n\nPatch."
    assert chunk(markdown) == (
        Section("", "Intro."),
        Section("Care", "Wash."),
        Section("Care › Drying", "Dry."),
        Section("Repair", "Patch."),
    )


def test_neighbouring_paragraphs_share_a_passage_while_they_fit() -> None:
    assert [section.text for section in chunk("one two\n\nthree\n\nfour", max_tokens=5)] == [
        "one two\n\nthree",
        "four",
    ]


def test_a_long_paragraph_is_cut_between_sentences() -> None:
    english = chunk("The first sentence is here. The second one follows.", max_tokens=10)
    assert [section.text for section in english] == ["The first sentence is here.", "The second one follows."]
    chinese = chunk("第一句话在这里。第二句话在后面。", max_tokens=8)
    assert [section.text for section in chinese] == ["第一句话在这里。", "第二句话在后面。"]


def test_a_fenced_block_keeps_its_blank_lines_and_number_signs() -> None:
    assert chunk("## How\n\n```\n# a\n\nb\n```") == (Section("How", "```\n# a\n\nb\n```"),)


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("abcd", 2), ("靴子", 2), ("hello world " * 10, 36)])
def test_tokens_are_estimated_by_bytes(text: str, tokens: int) -> None:
    assert estimated_tokens(text) == tokens
