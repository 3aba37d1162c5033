"""How long measurements are kept."""

from __future__ import annotations

from datetime import timedelta

from celery import shared_task
from django.utils import timezone

from apps.turns.models import Turn

KEEP_DAYS = 30
BATCH_ROWS = 100  # on SQLite a longer transaction would hold up the writer of messages


@shared_task(soft_time_limit=50, time_limit=55, expires=600)
def prune_turns() -> int:
    """Deletes the records of turns older than 30 days, in short transactions. Repeatable; gives how many."""
    until = timezone.now() - timedelta(days=KEEP_DAYS)
    deleted = 0
    while batch := list(Turn.objects.filter(created_at__lt=until).values_list("pk", flat=True)[:BATCH_ROWS]):
        deleted += Turn.objects.filter(pk__in=batch).delete()[0]
    return deleted
