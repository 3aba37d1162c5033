"""How often a line is asked to show that it lives, and when it may sleep."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from apps.gateway.heartbeat import (
    ANSWER_S,
    DEFAULT_S,
    HIDDEN_TIMER_S,
    LONGEST_S,
    PAUSE_S,
    QUIET_S,
    SITES,
    Heartbeat,
    Rhythms,
    next_interval_s,
    patience_s,
    quiet_interval_s,
)
from apps.gateway.sleep import IDLE_S, Idleness

gaps = st.floats(0, 2 * PAUSE_S, allow_nan=False)


def test_nothing_known_is_half_a_minute() -> None:
    assert quiet_interval_s(Rhythms().mean_s("shop")) == DEFAULT_S == 30


def test_a_quiet_line_beats_at_one_and_a_half_times_the_mean() -> None:
    assert [quiet_interval_s(mean) for mean in (2.0, 12.0, 24.0, 40.0, 500.0)] == [15, 18, 36, 60, 60]


@given(st.lists(gaps, min_size=1, max_size=100))
def test_the_interval_stays_in_its_bounds_and_the_mean_among_what_was_seen(seen: list[float]) -> None:
    rhythms = Rhythms()
    for gap in seen:
        rhythms.observe("shop", gap)
    counted = [gap for gap in seen if gap <= PAUSE_S]
    mean = rhythms.mean_s("shop")
    assert QUIET_S[0] <= quiet_interval_s(mean) <= QUIET_S[1]
    if not counted:
        assert mean is None
    else:
        assert mean is not None
        assert min(counted) - 1e-6 <= mean <= max(counted) + 1e-6


@given(st.floats(0, 1000, allow_nan=False), st.floats(0, 1000, allow_nan=False))
def test_whoever_asks_more_rarely_beats_no_oftener(one: float, other: float) -> None:
    assert quiet_interval_s(min(one, other)) <= quiet_interval_s(max(one, other))


def test_a_sites_traffic_moves_its_own_interval_alone() -> None:
    rhythms = Rhythms()
    for _ in range(200):
        rhythms.observe("busy", 4.0)
    for _ in range(200):
        rhythms.observe("slow", 35.0)
    assert (quiet_interval_s(rhythms.mean_s("busy")), quiet_interval_s(rhythms.mean_s("slow"))) == (15, 52)
    for _ in range(200):
        rhythms.observe("busy", 30.0)
    assert quiet_interval_s(rhythms.mean_s("busy")) == 45
    for n in range(SITES):
        rhythms.observe(f"site {n}", 1.0)
    assert rhythms.mean_s("busy") is None  # memory is bounded


@given(st.lists(st.tuples(st.booleans(), st.integers(*QUIET_S)), max_size=50))
def test_traffic_stretches_the_interval_and_quiet_takes_it_back(beats: list[tuple[bool, int]]) -> None:
    heartbeat = Heartbeat()
    heartbeat.begin(30)
    told = now = 30
    for proven, quiet_s in beats:
        if proven:
            heartbeat.proven()
        before = heartbeat.interval_s
        now = heartbeat.ping(quiet_s) or told
        assert now == heartbeat.interval_s  # what the client knows is what the server goes by
        assert now <= LONGEST_S
        assert now == (min(LONGEST_S, max(quiet_s, 2 * before)) if proven else quiet_s)
        told = now


def test_two_minutes_at_most_and_only_while_it_is_proven() -> None:
    interval, seen = 20, []
    for proven in (True, True, True, True, False):
        interval = next_interval_s(20, interval, proven=proven)
        seen.append(interval)
    assert seen == [40, 80, 120, 120, 20]


@given(st.integers(QUIET_S[0], LONGEST_S), st.floats(0, ANSWER_S, exclude_max=True))
def test_a_hidden_page_whose_timers_run_once_a_minute_is_never_thrown_out(
    interval_s: int, late_s: float
) -> None:
    # Its timer is due every `interval_s` and runs at the next full minute, or somewhat later.
    between_s = HIDDEN_TIMER_S * -(-interval_s // HIDDEN_TIMER_S) + late_s
    assert between_s < patience_s(interval_s)
    assert patience_s(interval_s) >= 3 * interval_s


def test_a_page_sleeps_ten_minutes_after_it_was_hidden_and_nothing_went_on() -> None:
    idleness = Idleness(0.0)
    idleness.seen(hidden=True, now=100.0)
    assert not idleness.long_enough(100.0 + IDLE_S - 1)
    assert idleness.long_enough(100.0 + IDLE_S)
    idleness.busy(600.0)
    assert not idleness.long_enough(100.0 + IDLE_S)
    assert idleness.long_enough(600.0 + IDLE_S)


def test_a_look_at_the_page_begins_the_time_anew() -> None:
    idleness = Idleness(0.0)
    idleness.seen(hidden=True, now=0.0)
    idleness.seen(hidden=True, now=500.0)
    idleness.seen(hidden=False, now=599.0)
    assert not idleness.long_enough(5000.0)
    idleness.seen(hidden=True, now=5000.0)
    assert not idleness.long_enough(5599.0)
    assert idleness.long_enough(5600.0)
