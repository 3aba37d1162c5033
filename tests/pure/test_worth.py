"""A look-up that does not pay is switched off, and on again only when it pays well."""

from __future__ import annotations

from apps.engine.worth import ENOUGH, PROBE_EVERY, Worth


def looked(worth: Worth, times: int, *, cost_ms: float, hit_every: int) -> None:
    for at in range(1, times + 1):
        worth.looked(cost_ms, hit=at % hit_every == 0)


def test_it_stays_on_while_hits_bring_more_than_looks_cost() -> None:
    worth = Worth()
    worth.answered(500)
    looked(worth, 5 * ENOUGH, cost_ms=1, hit_every=10)
    assert worth.on


def test_it_goes_off_when_looks_cost_more_than_hits_bring() -> None:
    worth = Worth()
    worth.answered(2)
    looked(worth, ENOUGH, cost_ms=1, hit_every=10)
    assert not worth.on


def test_nothing_is_judged_before_enough_was_seen() -> None:
    worth = Worth()
    worth.answered(2)
    looked(worth, ENOUGH - 1, cost_ms=1, hit_every=10)
    assert worth.on


def test_without_a_model_to_compare_with_it_stays_on() -> None:
    worth = Worth()
    looked(worth, 5 * ENOUGH, cost_ms=1, hit_every=1000)
    assert worth.on


def test_while_off_one_question_in_some_is_looked_up() -> None:
    worth = Worth(on=False)
    assert [worth.wants_look() for _ in range(2 * PROBE_EVERY)].count(True) == 2
    assert all(Worth().wants_look() for _ in range(3))


def test_between_the_two_bounds_it_stays_what_it_is() -> None:
    # A hit in ten saves 15 ms, a look costs 1 ms: it pays 1.5 times.
    for before in (True, False):
        worth = Worth(on=before)
        worth.answered(15)
        looked(worth, 3 * ENOUGH, cost_ms=1, hit_every=10)
        assert worth.on is before


def test_it_comes_on_again_when_it_pays_well() -> None:
    worth = Worth(on=False)
    worth.answered(500)
    looked(worth, ENOUGH, cost_ms=1, hit_every=10)
    assert worth.on
