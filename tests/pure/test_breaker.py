"""When an endpoint rests and when it is tried again."""

from __future__ import annotations

import pytest

from apps.llm.breaker import Breaker
from apps.llm.errors import (
    AuthRefused,
    BrokenStream,
    ConnectFailed,
    LlmError,
    NoAnswer,
    RateLimited,
    RequestRefused,
    ServerFailed,
    Stage,
    Stalled,
)


def failed(breaker: Breaker, error: LlmError, times: int, now: float = 100.0) -> None:
    for _ in range(times):
        breaker.failed(error, now)


def test_two_failures_do_not_rest_it_and_the_third_does_for_ten_seconds() -> None:
    breaker = Breaker()
    failed(breaker, ServerFailed("x"), 2)
    assert breaker.allows(100.0)
    failed(breaker, Stalled(Stage.FIRST_DATA), 1)
    assert not breaker.allows(100.0)
    assert not breaker.allows(109.9)
    assert breaker.allows(110.0)


def test_after_a_rest_one_request_tries_and_the_others_wait_for_its_outcome() -> None:
    breaker = Breaker()
    failed(breaker, ConnectFailed("x"), 3)
    assert [breaker.allows(110.0), breaker.allows(110.0), breaker.allows(114.9)] == [True, False, False]
    assert breaker.allows(115.0)  # the trial was cancelled without an outcome
    breaker.succeeded()
    assert [breaker.allows(115.0), breaker.allows(115.0)] == [True, True]


def test_each_failed_trial_doubles_the_rest_up_to_a_minute() -> None:
    breaker, now, rests = Breaker(), 0.0, []
    failed(breaker, ServerFailed("x"), 2, now)
    for _ in range(5):
        breaker.failed(ServerFailed("x"), now)
        rests.append(next(seconds for seconds in range(1, 100) if not breaker.allows(now + seconds - 0.5)
                          and breaker.allows(now + seconds)))  # fmt: skip
        now += rests[-1]
    assert rests == [10, 20, 40, 60, 60]


def test_a_success_between_failures_begins_the_count_anew() -> None:
    breaker = Breaker()
    failed(breaker, ServerFailed("x"), 2)
    breaker.succeeded()
    failed(breaker, ServerFailed("x"), 2)
    assert breaker.allows(100.0)


@pytest.mark.parametrize(("asked_s", "rest_s"), [(7.0, 7.0), (None, 5.0), (9_999.0, 300.0)])
def test_a_rate_limit_rests_as_long_as_the_server_asked_within_bounds(
    asked_s: float | None, rest_s: float
) -> None:
    breaker = Breaker()
    breaker.failed(RateLimited("x", asked_s), 100.0)
    assert not breaker.allows(100.0 + rest_s - 0.1)
    assert breaker.allows(100.0 + rest_s)


def test_a_refused_key_rests_at_once() -> None:
    breaker = Breaker()
    breaker.failed(AuthRefused("x"), 100.0)
    assert not breaker.allows(159.9)
    assert breaker.allows(160.0)


@pytest.mark.parametrize(
    "error",
    [RequestRefused("x"), NoAnswer("x"), BrokenStream("x"), Stalled(Stage.BETWEEN_DATA), Stalled(Stage.TURN)],
)
def test_what_may_be_the_requests_own_fault_rests_nothing(error: LlmError) -> None:
    breaker = Breaker()
    failed(breaker, error, 10)
    assert breaker.allows(100.0)


def test_a_connection_made_ends_a_rest_for_want_of_one_and_no_other() -> None:
    breaker = Breaker()
    failed(breaker, ConnectFailed("x"), 3)
    breaker.reached()
    assert breaker.allows(100.0)
    failed(breaker, ServerFailed("x"), 3)
    breaker.reached()
    assert not breaker.allows(100.0)


def test_it_is_sound_until_it_rests_and_again_once_its_trial_has_succeeded() -> None:
    breaker = Breaker()
    assert breaker.sound
    failed(breaker, ConnectFailed("x"), 3)
    assert not breaker.sound
    assert breaker.allows(110.0)
    assert not breaker.sound
    breaker.succeeded()
    assert breaker.sound
