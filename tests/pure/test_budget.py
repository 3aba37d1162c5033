"""The tokens that may be spent ahead of questions."""

from __future__ import annotations

from apps.engine.budget import TokenBudget


def test_a_minutes_tokens_are_there_at_once_and_come_back_evenly() -> None:
    budget = TokenBudget(600)
    assert budget.take(600, 100.0)
    assert not budget.take(1, 100.0)
    assert not budget.take(101, 110.0)
    assert budget.take(100, 110.0)
    assert not budget.take(601, 9_999.0)
    assert budget.take(600, 9_999.0)


def test_what_was_not_spent_can_be_taken_again_but_no_more() -> None:
    budget = TokenBudget(600)
    assert budget.take(500, 1.0)
    budget.give_back(900)
    assert not budget.take(601, 1.0)
    assert budget.take(600, 1.0)


def test_what_was_spent_beyond_what_was_taken_is_owed() -> None:
    budget = TokenBudget(600)
    assert budget.take(500, 1.0)
    budget.give_back(500 - 700)
    assert not budget.take(1, 11.0)
    assert not budget.take(1, 11.05)
    assert budget.take(100, 21.0)
