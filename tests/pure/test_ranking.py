"""Words of two languages, and the order of passages."""

from __future__ import annotations

import numpy as np
import pytest

from apps.knowledge.ranking import Corpus, Entry
from apps.knowledge.words import asked_words, stem, words


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("Can I return worn boots?", ["return", "worn", "boot"]),
        ("Do you sell kayaks?", ["sell", "kayak"]),
        ("What's my order #1042's status?", ["order", "1042", "status"]),
        ("穿过的靴子能退吗", ["穿", "靴子", "退"]),
        ("你们招人吗", ["招人"]),
        ("我的订单1042到哪了", ["订单", "1042"]),
        ("请问 Fell 靴子有宽楦吗？", ["fell", "靴子", "宽楦"]),
        ("???", []),
    ],
)
def test_a_question_is_about_its_content_words(question: str, asked: list[str]) -> None:
    assert asked_words(question) == asked


@pytest.mark.parametrize(
    "forms",
    [
        ["return", "returns", "returned", "returning"],
        ["battery", "batteries"],
        ["ship", "ships", "shipped", "shipping"],
        ["charge", "charges", "charged", "charging"],
        ["box", "boxes"],
        ["glass", "glasses"],
    ],
)
def test_forms_of_a_word_share_a_stem(forms: list[str]) -> None:
    assert len({stem(form) for form in forms}) == 1


def test_chinese_text_is_found_by_characters_and_by_pairs() -> None:
    assert set(words("退靴子")) == {"退", "靴", "子", "退靴", "靴子"}


def corpus(*rows: tuple[str, str, str], vectors: list[list[float]] | None = None) -> Corpus:
    """(slug, locale, text) rows."""
    entries = [Entry(slug, locale, slug, "", text, url=slug) for slug, locale, text in rows]
    return Corpus(entries, np.array(vectors or [[0.0, 0.0]] * len(rows), np.float32).reshape(-1, 2))


def found(
    searched: Corpus, question: str, vector: list[float] | None = None, locale: str = "en"
) -> list[str]:
    asked = None if vector is None else np.array(vector, np.float32)
    return [passage.text for passage in searched.passages(question, asked, locale, limit=4)]


def test_a_rare_word_counts_more_than_a_common_one() -> None:
    searched = corpus(
        ("a", "en", "boots boots"),
        ("b", "en", "boots for rain"),
        ("c", "en", "gaiters and boots"),
        ("d", "en", "boots"),
    )
    assert found(searched, "boots gaiters")[0] == "gaiters and boots"


def test_without_words_in_common_nothing_is_found_by_words() -> None:
    assert found(corpus(("a", "en", "boots")), "kayak") == []


def test_the_same_thing_said_otherwise_is_found_by_its_vector() -> None:
    searched = corpus(("a", "en", "boots"), ("b", "en", "tents"), vectors=[[1, 0], [0, 1]])
    assert found(searched, "footwear", [0.9, 0.1]) == ["boots", "tents"]


def test_of_a_translated_article_the_questions_language_is_taken() -> None:
    searched = corpus(
        ("returns", "en", "boots"), ("returns", "zh", "靴子"), ("care", "en", "wax"),
        vectors=[[1, 0], [0.8, 0.2], [0.6, 0.1]],
    )  # fmt: skip
    assert found(searched, "靴子怎么退", [1, 0], locale="en") == ["靴子", "wax"]
    assert found(searched, "how to return boots", [1, 0], locale="zh") == ["boots", "wax"]


def test_at_most_two_passages_of_an_article_are_given() -> None:
    searched = corpus(
        *[("one", "en", f"boots {n}") for n in range(5)], ("two", "en", "boots and more of them here")
    )
    assert len(found(searched, "boots")) == 3


def test_by_words_alone_a_passage_answers_only_with_nearly_all_of_the_question() -> None:
    searched = corpus(("a", "en", "wash the tent by hand"), ("b", "en", "tent poles"))
    whole, half = (
        searched.passages(question, None, "en", 1)[0] for question in ("wash the tent", "rent a tent")
    )
    assert (whole.answerable, half.answerable) == (True, False)


def test_an_empty_corpus_finds_nothing() -> None:
    assert found(corpus(), "boots", [1, 0]) == []


def test_of_an_article_its_opening_is_one_of_two_where_it_is_as_good() -> None:
    def given(*cosines: tuple[str, float]) -> list[str]:
        entries = [
            Entry("warranty", "en", "Warranty", heading, heading or "Five years.") for heading, _ in cosines
        ]
        vectors = np.array([[cosine, (1 - cosine**2) ** 0.5] for _, cosine in cosines], np.float32)
        return [
            one.text for one in Corpus(entries, vectors).passages("?", np.array([1, 0], np.float32), "en", 4)
        ]

    assert given(("Covered", 0.90), ("After it", 0.895), ("", 0.891)) == ["Covered", "Five years."]
    assert given(("Covered", 0.90), ("After it", 0.895), ("", 0.889)) == ["Covered", "After it"]
    assert given(("", 0.90), ("Covered", 0.895), ("", 0.891)) == ["Five years.", "Covered"]
