"""Which lane a turn gets: limits of a connection, the way back to a chain, and whose chain goes first."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from apps.llm.providers.lanes import (
    CHAIN_LIVES_S,
    Lane,
    LaneTable,
    lease,
    release,
    retires_after,
    wants_another,
)


def leased(tables: list[LaneTable], key: str, now: float = 0.0) -> Lane:
    found = lease(tables, key, now)
    assert found is not None
    return found[1]


def answered(tables: list[LaneTable], key: str, now: float = 0.0) -> Lane:
    lane = leased(tables, key, now)
    release(lane, key, now, f"resp-{key}")
    return lane


def test_a_conversation_goes_back_to_the_lane_that_has_its_chain() -> None:
    tables = [LaneTable(named=True), LaneTable(named=True)]
    lanes = {key: answered(tables, key) for key in ("a", "b", "c")}
    assert len(set(lanes.values())) == 3
    assert {key: answered(tables, key) for key in ("c", "a", "b")} == lanes


def test_a_busy_lane_is_nobodys_way_back() -> None:
    tables = [LaneTable(named=True)]
    first = leased(tables, "a")
    assert leased(tables, "a") is not first


def test_sixteen_answers_at_a_time_and_no_more() -> None:
    table = LaneTable(named=True)
    lanes = [leased([table], str(number)) for number in range(16)]
    assert lease([table], "one more", 0.0) is None
    release(lanes[3], "3", 0.0)
    assert leased([table], "one more") is not lanes[3]


def test_names_run_out_at_thirty_two_and_the_quietest_chain_goes() -> None:
    table = LaneTable(named=True)
    lanes = [answered([table], str(number), now=float(number)) for number in range(32)]
    assert {lane.name for lane in lanes} == {f"lane-{number}" for number in range(1, 33)}
    answered([table], "0", now=40.0)
    assert answered([table], "new", now=41.0) is lanes[1]
    assert table.holding("1") is None


def test_a_chain_that_was_quiet_for_long_is_given_up_before_a_new_name_is_used() -> None:
    table = LaneTable(named=True)
    old = answered([table], "old", now=0.0)
    assert answered([table], "new", now=CHAIN_LIVES_S) is old


def test_a_socket_without_lanes_has_one_answer_at_a_time() -> None:
    table = LaneTable(named=False)
    lane = leased([table], "a")
    assert lane.name is None
    assert lease([table], "b", 0.0) is None
    release(lane, "a", 0.0)
    assert leased([table], "b") is lane


def test_what_may_as_well_be_left_undone_pushes_nobodys_chain_out() -> None:
    table = LaneTable(named=False)
    answered([table], "a")
    assert lease([table], "b", 0.0, evicts=False) is None
    assert lease([table], "b", CHAIN_LIVES_S, evicts=False) is not None


def test_a_closed_table_takes_nobody_not_even_its_own() -> None:
    old, new = LaneTable(named=True), LaneTable(named=True)
    lane = answered([old, new], "a")
    old.open = False
    assert leased([old, new], "a") is not lane
    assert lease([old], "a", 0.0) is None


def test_another_socket_is_wanted_when_a_newcomer_would_push_somebody_out() -> None:
    lanes, lone = LaneTable(named=True), LaneTable(named=False)
    assert not wants_another([lanes], 0.0)
    for number in range(32):
        assert not wants_another([lanes], 0.0)
        answered([lanes], str(number))
    assert wants_another([lanes], 0.0)
    assert not wants_another([lanes], CHAIN_LIVES_S)
    assert not wants_another([lone], 0.0)
    answered([lone], "a")
    assert wants_another([lone], 0.0)
    assert wants_another([], 0.0)


def test_where_a_conversation_went_on_is_the_only_place_it_goes_back_to() -> None:
    table = LaneTable(named=True)
    first, second = leased([table], "a"), leased([table], "a")
    release(second, "a", 1.0)
    release(first, "a", 2.0)
    table.disclaim("a", but=first)
    assert table.holding("a") is first
    assert table.keys == {"a"}


@pytest.mark.parametrize(("chance", "minutes"), [(0.0, 55.0), (1.0, 49.0), (0.5, 52.0)])
def test_a_socket_is_renewed_before_its_hour_and_not_with_all_others(chance: float, minutes: float) -> None:
    assert retires_after(3_600.0, chance) == pytest.approx(minutes * 60)


class Books(RuleBasedStateMachine):
    """Any order of leases and returns."""

    def __init__(self) -> None:
        super().__init__()
        self.tables = [LaneTable(named=True, in_flight=3, names=5), LaneTable(named=False)]
        self.out: list[tuple[Lane, str]] = []
        self.last: dict[str, Lane] = {}
        self.now = 0.0

    @rule(
        key=st.sampled_from(["", "a", "b", "c", "d", "e", "f", "g"]),
        waits_s=st.sampled_from([0.0, 1.0, 601.0]),
    )
    def begin(self, key: str, waits_s: float) -> None:
        self.now += waits_s
        found = lease(self.tables, key, self.now)
        if found is None:
            assert len(self.out) == 4
            return
        _, lane = found
        assert lane not in [other for other, _ in self.out]
        if key and lane.key == key:
            assert self.last[key] is lane
        self.out.append((lane, key))

    @rule(at=st.integers(0, 3), whole=st.booleans())
    def end(self, at: int, whole: bool) -> None:
        if at >= len(self.out):
            return
        lane, key = self.out.pop(at)
        release(lane, key if whole else "", self.now)
        if whole and key:
            self.last[key] = lane
            for table in self.tables:
                table.disclaim(key, but=lane)

    @invariant()
    def no_limit_is_passed(self) -> None:
        assert self.tables[0].in_flight <= 3
        assert self.tables[1].in_flight <= 1
        assert sum(table.in_flight for table in self.tables) == len(self.out)


TestBooks = Books.TestCase
