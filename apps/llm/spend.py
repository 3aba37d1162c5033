"""What answers cost: counted a site and UTC day, compared with the site's cap. Synchronous ORM."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

from django.db import connection
from django.utils import timezone

from apps.accounts.models import Site
from apps.engine.types import Usage
from apps.llm.models import DailySpend, ModelEndpoint

PER_PRICE = Decimal(1_000_000)

# The ORM's upsert can only overwrite; several processes add to the same row, so the sum is the database's.
_UPSERT = """
    INSERT INTO llm_dailyspend AS old (site_id, day, prompt_tokens, completion_tokens, cost)
    VALUES (%s, %s, %s, %s, %s)
    ON CONFLICT (site_id, day) DO UPDATE SET
        prompt_tokens = old.prompt_tokens + excluded.prompt_tokens,
        completion_tokens = old.completion_tokens + excluded.completion_tokens,
        cost = old.cost + excluded.cost
"""


def today() -> dt.date:
    """The day spend is booked on: UTC, so that every process agrees."""
    return timezone.now().astimezone(dt.UTC).date()


def add_usage(site_id: str, endpoint_id: str, usage: Usage) -> None:
    """Books one answer on today's row. One upsert, after one query for the endpoint's prices.

    The endpoint of the settings has no price: its tokens are counted, its cost is nought.
    """
    prices = ModelEndpoint.objects.filter(pk=endpoint_id).values_list("price_in", "price_out").first()
    price_in, price_out = prices or (Decimal(0), Decimal(0))
    cost = (usage.prompt_tokens * price_in + usage.completion_tokens * price_out) / PER_PRICE
    day = connection.ops.adapt_datefield_value(today())
    with connection.cursor() as cursor:
        cursor.execute(_UPSERT, [site_id, day, usage.prompt_tokens, usage.completion_tokens, cost])


def cap_reached(site_id: str) -> bool:
    """Whether today's cost has reached the site's daily cap. Sites without a cap never do. Two queries."""
    cap = Site.objects.filter(pk=site_id).values_list("daily_spend_cap", flat=True).first()
    if cap is None:
        return False
    spent = DailySpend.objects.filter(site_id=site_id, day=today()).values_list("cost", flat=True).first()
    return (spent or Decimal(0)) >= cap
