"""How fast the answers of each site were, over the last hours. One query."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.db.models import QuerySet
from django.utils import timezone

from apps.insights.quantiles import Quantiles, of_gaps, of_values, summed
from apps.turns.models import Turn

WINDOW_HOURS = 24
LONGEST_WINDOW_HOURS = 24 * 30
# The newest of a longer list stand for all of it.
ROWS = 10_000

_Row = tuple[str, str, float | None, float | None, float | None, list[int]]


@dataclass(frozen=True, slots=True)
class SiteLatency:
    """Of one site: what customers saw, what the model took to its first token, what we added, and between tokens."""

    site: str
    name: str
    turns: int
    painted: Quantiles | None
    ttft: Quantiles | None
    added: Quantiles | None
    inter_token: Quantiles | None


def latency(turns: QuerySet[Turn], hours: int = WINDOW_HOURS) -> list[SiteLatency]:
    """Of these turns by site, the busiest first. Turns that said nothing are left out."""
    since = timezone.now() - timedelta(hours=hours)
    rows = turns.filter(created_at__gte=since, ttft_ms__isnull=False).order_by("-created_at")
    fields = (
        "conversation__site_id",
        "conversation__site__name",
        "ttft_ms",
        "painted_ms",
        "added_ms",
        "gaps",
    )
    by_site: defaultdict[str, list[_Row]] = defaultdict(list)
    for row in rows.values_list(*fields)[:ROWS]:
        by_site[row[0]].append(row)
    return sorted((_of_site(rows) for rows in by_site.values()), key=lambda one: -one.turns)


def _of_site(rows: Sequence[_Row]) -> SiteLatency:
    site, name = rows[0][:2]
    return SiteLatency(
        site=site,
        name=name,
        turns=len(rows),
        ttft=of_values(row[2] for row in rows if row[2] is not None),
        painted=of_values(row[3] for row in rows if row[3] is not None),
        added=of_values(row[4] for row in rows if row[4] is not None),
        inter_token=of_gaps(summed(row[5] for row in rows)),
    )
