"""What the answer cache holds, proposes, gives and lets go."""

from __future__ import annotations

import numpy as np
import pytest

from apps.engine.answer_store import AnswerStore
from apps.engine.cache import TTL_S, Answer, By, Look, Question, Scope, Vector, question_of
from apps.engine.paraphrase.verdict import Veto

NOW = 1_000_000.0
SITE = Scope("site", "en", 1, 1, 1)
KETTLES = (("Kettles", "https://shop.example/kettles"),)


def asked(text: str) -> Question:
    question = question_of(text, "en")
    assert question is not None
    return question


def vector(*direction: float) -> Vector:
    given = np.array(direction, np.float32)
    return given / np.float32(np.linalg.norm(given))


def answer(text: str, at_s: float = NOW, near: Vector | None = None, said: str = "Two years.") -> Answer:
    return Answer("en", asked(text).plain, said, KETTLES, near, at_s)


def filled(*answers: Answer, **options: float) -> AnswerStore:
    store = AnswerStore(**options)  # type: ignore[arg-type]  # bytes are whole, seconds are not
    for kept in answers:
        store.keep(SITE, kept)
    return store


def look(
    store: AnswerStore, text: str, near: Vector | None = None, titles: tuple[str, ...] = ("Kettles",)
) -> Look:
    return store.similar(SITE, asked(text), near, titles, NOW)


LONG = "How long is the warranty on kettles?"
ALIKE = "What is the warranty period for a kettle?"
UNLIKE = "How long is the warranty on teapots?"
HERE = vector(1, 0)


def test_the_same_words_get_the_answer() -> None:
    store = filled(answer(LONG))
    found = store.exact(SITE, asked("how long is the warranty on kettles"), NOW)
    assert found is not None
    assert (found.text, found.sources) == ("Two years.", KETTLES)
    assert store.exact(SITE, asked(UNLIKE), NOW) is None


def test_the_same_meaning_near_by_gets_the_answer() -> None:
    found = look(filled(answer(LONG, near=HERE)), ALIKE, vector(1, 0.3))
    assert (found.answer is not None, found.by) == (True, By.SIMILAR)


def test_nearness_alone_is_a_proposal_that_is_turned_down() -> None:
    assert look(filled(answer(LONG, near=HERE)), UNLIKE, HERE) == Look(vetoes=(Veto.NAME,))


def test_the_same_meaning_far_away_is_not_proposed() -> None:
    assert look(filled(answer(LONG, near=HERE)), ALIKE, vector(1, 1)) == Look()


def test_an_answer_from_articles_that_the_search_did_not_find_is_turned_down() -> None:
    store = filled(answer(LONG, near=HERE))
    assert look(store, ALIKE, HERE, titles=("Teapots",)) == Look(vetoes=(Veto.SOURCES,))


def test_a_frequent_question_is_proposed_by_its_beginning_where_nearness_is_unknown() -> None:
    store = filled(answer("Do you sell kettles"))
    longer = "Do you sell kettles really"
    assert look(store, longer) == Look()
    for _ in range(2):
        store.exact(SITE, asked("Do you sell kettles"), NOW)
    assert look(store, longer).by is By.PREFIX
    assert look(store, "Do you sell kettles in Norway") == Look(vetoes=(Veto.NAME,))


def test_an_answer_expires() -> None:
    store = filled(answer(LONG, NOW - TTL_S - 1, HERE))
    assert store.exact(SITE, asked(LONG), NOW) is None
    assert (len(store), store.bytes) == (0, 0)


@pytest.mark.parametrize(
    "other",
    [
        Scope("site", "en", 2, 1, 1),
        Scope("site", "en", 1, 2, 1),
        Scope("site", "en", 1, 1, 2),
        Scope("site", "zh", 1, 1, 1),
        Scope("other", "en", 1, 1, 1),
    ],
)
def test_another_version_site_or_language_misses(other: Scope) -> None:
    store = filled(answer(LONG, near=HERE))
    assert store.exact(other, asked(LONG), NOW) is None
    assert store.similar(other, asked(ALIKE), HERE, ("Kettles",), NOW) == Look()


def test_a_newer_version_clears_the_older_and_takes_nothing_made_from_it() -> None:
    store, newer = filled(answer(LONG)), Scope("site", "en", 1, 1, 2)
    store.exact(newer, asked(LONG), NOW)
    assert len(store) == 0
    store.keep(newer, answer(LONG, said="Three years."))
    store.keep(SITE, answer(LONG))  # a turn that began before the edit
    found = store.exact(newer, asked(LONG), NOW)
    assert found is not None
    assert found.text == "Three years."
    assert store.exact(SITE, asked(LONG), NOW) is None


def test_the_least_recently_given_goes_first_when_bytes_run_out() -> None:
    one = filled(answer("Question number one", near=HERE)).bytes
    store = filled(answer("Question alpha"), answer("Question beta"), max_bytes=2 * one)
    store.exact(SITE, asked("Question alpha"), NOW)
    store.keep(SITE, answer("Question gamma"))
    held = [text for text in ("alpha", "beta", "gamma") if store.exact(SITE, asked(f"Question {text}"), NOW)]
    assert held == ["alpha", "gamma"]
    assert store.bytes <= 2 * one


def test_replacing_keeps_the_count_and_the_nearest_right() -> None:
    store = filled(*(answer(f"Do you sell {name}?", near=vector(1, at)) for at, name in enumerate("abcdef")))
    for name in "acefcfa":
        store.keep(SITE, answer(f"Do you sell {name}?", near=vector(-1, 0)))
    assert len(store) == 6
    for name in "acef":
        assert look(store, f"Do you stock {name}?", HERE).answer is None
        assert look(store, f"Do you stock {name}?", vector(-1, 0)).answer is not None
    for at, name in enumerate("abcdef"):
        if name in "bd":
            found = look(store, f"Have you got {name}?", vector(1, at))
            assert found.answer is None or found.answer.plain == f"do you sell {name}"
            assert look(store, f"Do you stock {name}?", vector(1, at)).answer is not None
    assert store.bytes == filled(*(answer(f"Do you sell {name}?", near=HERE) for name in "abcdef")).bytes
