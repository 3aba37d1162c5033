"""How fast one socket may speak."""

from __future__ import annotations

import pytest

from apps.gateway.pace import BURST_FRAMES, FRAMES_A_SECOND, PATIENCE_FRAMES, Pace


def test_a_burst_passes_and_then_one_frame_an_interval() -> None:
    pace = Pace(0.0)
    assert [pace.wait_s(0.0) for _ in range(BURST_FRAMES)] == [0.0] * BURST_FRAMES
    assert pace.wait_s(0.0) == pytest.approx(1 / FRAMES_A_SECOND)
    assert pace.wait_s(1 / FRAMES_A_SECOND) == 0.0
    assert pace.wait_s(1 / FRAMES_A_SECOND) > 0.0


def test_a_pause_fills_the_bucket_and_not_more() -> None:
    pace = Pace(0.0)
    for _ in range(BURST_FRAMES):
        pace.wait_s(0.0)
    assert [pace.wait_s(3600.0) for _ in range(BURST_FRAMES)] == [0.0] * BURST_FRAMES
    assert pace.wait_s(3600.0) > 0.0


def test_patience_ends_with_refusals_in_a_row() -> None:
    pace = Pace(0.0)
    for _ in range(BURST_FRAMES + PATIENCE_FRAMES - 1):
        pace.wait_s(0.0)
    assert not pace.lost_patience
    pace.wait_s(0.0)
    assert pace.lost_patience
    pace.wait_s(1.0)
    assert not pace.lost_patience
