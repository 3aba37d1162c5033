"""When humans are there."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from apps.accounts.hours import availability

WEEK = ["09:00-17:30"] * 5 + ["10:00-12:00", ""]
SHANGHAI = ZoneInfo("Asia/Shanghai")


def at(text: str, zone: ZoneInfo = SHANGHAI) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=zone)


@pytest.mark.parametrize(
    ("now", "opens_at"),
    [
        ("2026-11-30T09:00:00", None),  # a Monday
        ("2026-11-30T17:29:59", None),
        ("2026-11-30T08:59:59", "2026-11-30T09:00:00"),
        ("2026-11-30T17:30:00", "2026-12-01T09:00:00"),
        ("2026-12-05T12:00:00", "2026-12-07T09:00:00"),  # Saturday noon: Sunday is closed
        ("2026-12-06T23:59:00", "2026-12-07T09:00:00"),
    ],
)
def test_open_now_or_the_next_opening(now: str, opens_at: str | None) -> None:
    expected = (True, None) if opens_at is None else (False, at(opens_at).astimezone(UTC))
    assert availability(WEEK, "Asia/Shanghai", at(now)) == expected


def test_the_wall_clock_decides_across_a_clock_change() -> None:
    # Berlin leaves summer time on 2026-10-25: nine o'clock is 07:00 UTC before and 08:00 UTC after.
    sunday = at("2026-10-25T12:00:00", ZoneInfo("Europe/Berlin"))
    assert availability(WEEK, "Europe/Berlin", sunday) == (False, datetime(2026, 10, 26, 8, 0, tzinfo=UTC))


def test_the_day_is_the_workspaces_not_the_callers() -> None:
    # Monday 01:30 UTC is 09:30 in Shanghai.
    assert availability(WEEK, "Asia/Shanghai", datetime(2026, 11, 30, 1, 30, tzinfo=UTC)) == (True, None)


def test_a_week_with_one_day_opens_in_seven_days() -> None:
    only_monday = ["09:00-17:30", "", "", "", "", "", ""]
    assert availability(only_monday, "UTC", datetime(2026, 11, 30, 18, tzinfo=UTC)) == (
        False,
        datetime(2026, 12, 7, 9, tzinfo=UTC),
    )


def test_never_open_has_no_next_opening() -> None:
    assert availability([""] * 7, "UTC", datetime(2026, 11, 30, 12, tzinfo=UTC)) == (False, None)
