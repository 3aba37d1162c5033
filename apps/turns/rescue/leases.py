"""Which web processes are alive, as the database sees it: its clock decides, and it is there when Redis is not."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import QuerySet
from django.db.models.functions import Now

from apps.turns.models import ProcessLease

# Three missed renewals; a process that comes back later finds its fences old.
LEASE = timedelta(seconds=6)
RENEW_INTERVAL_S = 2.0
# Rows of processes long gone are only clutter.
KEPT = timedelta(hours=1)


def renew(process: str) -> None:
    """Says that the process lives. One or two queries."""
    if not ProcessLease.objects.filter(process=process).update(seen_at=Now()):
        ProcessLease.objects.create(process=process, seen_at=Now())
        ProcessLease.objects.filter(seen_at__lt=Now() - KEPT).delete()


def release(process: str) -> None:
    """The process ends: others may adopt its turns at once. One query."""
    ProcessLease.objects.filter(process=process).delete()


def others(process: str) -> list[str]:
    """The other processes that have a lease, run out or not. One query."""
    return list(ProcessLease.objects.exclude(process=process).values_list("process", flat=True))


def alive(process: str) -> bool:
    """Whether the process has renewed its lease lately. One query."""
    return _living().filter(process=process).exists()


def living() -> set[str]:
    """Every process that has. One query."""
    return set(_living().values_list("process", flat=True))


def _living() -> QuerySet[ProcessLease]:
    return ProcessLease.objects.filter(seen_at__gte=Now() - LEASE)
