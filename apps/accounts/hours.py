"""When a workspace's humans are there. Pure: the caller gives the hour."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

DAYS_AHEAD = 8  # today, and every weekday once more


def availability(hours: Sequence[str], timezone: str, now: datetime) -> tuple[bool, datetime | None]:
    """Whether it is open at `now` (aware), and if not, when it next opens (UTC; None when never).

    `hours` has seven entries from Monday in the workspace's wall time, "09:00-17:30" or "" for a closed day.
    The closing minute itself is closed. Raises `ZoneInfoNotFoundError` for an unknown zone.
    """
    for opens, closes in _spans(hours, now.astimezone(ZoneInfo(timezone))):
        if opens <= now < closes:
            return True, None
        if opens > now:
            return False, opens
    return False, None


def _spans(hours: Sequence[str], local: datetime) -> Iterator[tuple[datetime, datetime]]:
    """Opening spans in UTC from the local day on: a span keeps its wall times over a clock change."""
    for ahead in range(DAYS_AHEAD):
        day = local.date() + timedelta(days=ahead)
        entry = hours[day.weekday()]
        if not entry:
            continue
        opens, closes = (time.fromisoformat(part) for part in entry.split("-"))
        yield (
            datetime.combine(day, opens, local.tzinfo).astimezone(UTC),
            datetime.combine(day, closes, local.tzinfo).astimezone(UTC),
        )
