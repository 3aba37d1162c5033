"""How many connections a load asks for."""

from __future__ import annotations

import pytest

from apps.llm.demand import Demand


def asked(per_s: float, duration_s: float, *, begins: float = 1_000.0, seconds: int = 60) -> Demand:
    demand = Demand()
    for number in range(int(per_s * seconds)):
        demand.began(begins + number / per_s)
        demand.ended(duration_s)
    return demand


@pytest.mark.parametrize(
    ("per_s", "duration_s", "connections"),
    [(2.0, 10.0, 26), (0.5, 4.0, 3), (0.1, 1.0, 1), (50.0, 20.0, 100)],
    ids=["rate x duration x 1.3", "rounded up", "at least one", "at most the bound"],
)
def test_the_pool_is_rate_times_duration_with_room(per_s: float, duration_s: float, connections: int) -> None:
    assert asked(per_s, duration_s).connections(1_060.0, 100) == connections


def test_one_connection_carries_many_streams_over_http2() -> None:
    assert asked(10.0, 20.0).connections(1_060.0, 500, streams=100) == 3


def test_the_longest_of_a_hundred_answers_is_left_out_and_the_next_counts() -> None:
    demand = Demand()
    for duration_s in [1.0] * 198 + [5.0, 60.0]:
        demand.ended(duration_s)
    assert demand.long_s() == 5.0


def test_a_burst_counts_by_ten_seconds_and_for_ten_minutes() -> None:
    demand = Demand()
    for _ in range(40):
        demand.began(1_000.0)
    demand.ended(10.0)
    assert demand.connections(1_001.0, 100) == 52
    assert demand.connections(1_590.0, 100) == 52
    assert demand.connections(1_700.0, 100) == 1


def test_nothing_asked_yet_keeps_one() -> None:
    assert Demand().connections(0.0, 100) == 1
