"""The stages of a turn as they are told: always the same ones, and two figures out of them."""

from __future__ import annotations

import time

from apps.telemetry.waterfall import GAP_BOUNDS_MS, PAINT_LIMIT_MS, STAGES, Waterfall


def told(waterfall: Waterfall) -> dict[str, tuple[float, float]]:
    return {bar.name: (round(bar.start_ms), round(bar.ms)) for bar in waterfall.bars()}


def measured(**stages: tuple[float, float]) -> Waterfall:
    """A turn whose question came at 1,000 s, with these stages from and to, in ms."""
    waterfall = Waterfall(started=1_000.0)
    for name, (start_ms, end_ms) in stages.items():
        waterfall.add(name, 1_000 + start_ms / 1000, 1_000 + end_ms / 1000)
    return waterfall


def test_a_turn_tells_every_stage_in_order_and_nought_for_what_it_did_not_need() -> None:
    waterfall = measured(receive=(1, 3), rules=(5, 6), context=(6, 8))
    assert tuple(bar.name for bar in waterfall.bars()) == STAGES
    bars = told(waterfall)
    assert (bars["receive"], bars["rules"], bars["context"]) == ((1, 2), (5, 1), (6, 2))
    assert (bars["dns"], bars["tls"], bars["auth"], bars["queue"]) == ((0, 0), (0, 0), (3, 0), (8, 0))


def test_pieces_of_a_stage_are_one_bar_where_the_longest_stands() -> None:
    assert told(measured(context=(2, 3)))["context"] == (2, 1)
    waterfall = measured(context=(2, 3))
    waterfall.add("context", 1_000.010, 1_000.015)
    assert told(waterfall)["context"] == (10, 6)


def test_the_first_token_is_counted_from_the_end_of_what_came_before() -> None:
    waterfall = Waterfall(started=time.monotonic() - 1.0)
    waterfall.add("context", waterfall.started, waterfall.started + 0.4)
    assert waterfall.token() is None
    first = waterfall.bar("first_token")
    assert round(first.start_ms) == 400
    assert first.ms >= 600
    assert round(waterfall.ttft_ms() or 0, 6) == round(first.end_ms, 6)


def test_gaps_between_pieces_are_counted_by_their_class() -> None:
    waterfall = Waterfall()
    waterfall.token()
    gaps_s = [waterfall.token() for _ in range(3)]
    assert all(gap_s is not None for gap_s in gaps_s)
    assert sum(waterfall.gaps) == 3
    assert len(waterfall.gaps) == len(GAP_BOUNDS_MS) + 1


def test_what_we_add_leaves_out_the_model_and_the_wait_for_the_search_alone() -> None:
    waterfall = measured(
        receive=(0, 2), profile=(3, 5), retrieval=(3, 20), context=(20, 22), first_token=(22, 322),
        first_frame=(322, 323),
    )  # fmt: skip
    assert waterfall.added_ms() is None
    waterfall._first_token = 1_000.322
    assert round(waterfall.added_ms() or 0) == 22 - 15 + 1


def test_what_a_model_said_before_its_question_was_stored_is_kept_by_us_not_by_the_model() -> None:
    begun = time.monotonic() - 3.0
    early, waterfall = Waterfall(started=begun), Waterfall(started=begun)
    early.add("context", begun, begun + 0.4)
    waterfall.add("receive", begun, begun + 2.9)
    waterfall.add("context", begun + 2.9, begun + 3.0)
    waterfall.asked_early(early, begun + 0.5)
    waterfall.marks["asked_early_ms"] = "2600.0"
    assert waterfall.token() is None
    bars = told(waterfall)
    assert (bars["context"], bars["first_token"]) == ((0, 400), (400, 100))
    ttft_ms = waterfall.ttft_ms()
    assert ttft_ms is not None
    assert round(waterfall.added_ms() or 0, 6) == round(ttft_ms - 100, 6)
    waterfall.next_part()
    assert "asked_early_ms" not in waterfall.marks


def test_a_later_part_is_not_charged_with_the_time_of_the_parts_before() -> None:
    waterfall = Waterfall(started=time.monotonic() - 60.0)
    waterfall.token()
    waterfall.next_part()
    with waterfall.stage("context"):
        pass
    waterfall.token()
    assert 0 <= (waterfall.added_ms() or -1) <= (waterfall.ttft_ms() or -1) < 30_000


def test_a_report_of_paint_counts_once_and_within_bounds() -> None:
    for reported, kept in ((250.0, 250.0), (-5.0, 50.0), (1e12, PAINT_LIMIT_MS)):
        waterfall = measured(first_frame=(40, 50))
        waterfall._first_token = 1_000.040
        assert waterfall.paint(reported)
        assert not waterfall.paint(100.0)
        assert round(waterfall.painted_ms or 0) == kept
        assert told(waterfall)["painted"] == (50, round(kept - 50))


def test_nothing_is_painted_of_a_turn_that_has_said_nothing() -> None:
    waterfall = measured(receive=(0, 1))
    assert not waterfall.paint(100.0)
    assert waterfall.painted_ms is None


def test_a_new_part_begins_with_what_came_before_the_turn() -> None:
    waterfall = measured(receive=(0, 2), context=(3, 4))
    waterfall.token()
    waterfall.token()
    waterfall.next_part()
    bars = told(waterfall)
    assert (bars["receive"], bars["context"], bars["first_token"], bars["last_token"][1]) == (
        (0, 2),
        (2, 0),
        (2, 0),
        0,
    )
    assert (waterfall.ttft_ms(), sum(waterfall.gaps)) == (None, 0)
