"""Delivers the outbox: each item at least once, by whichever worker claims it.

An item is written in the transaction of its cause (`log.py`); the sweep is what delivers it.
"""

from __future__ import annotations

import logging
import math
import secrets
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from celery.exceptions import SoftTimeLimitExceeded
from django.db.models import Count, F, Q

from apps.conversations.commands import EffectKind
from apps.conversations.models import OutboxItem

logger = logging.getLogger(__name__)

BATCH = 20
# A claim runs out after this: a worker that died in between is repeated, and the receiver drops the double by id.
CLAIM = timedelta(seconds=60)
ATTEMPTS = 12
LONGEST_PAUSE_S = 3600
KEEP = timedelta(days=30)
PRUNED_AT_ONCE = 100  # on SQLite a longer transaction would hold up the writer of messages

Deliver = Callable[[OutboxItem], None]

_deliverers: dict[str, Deliver] = {}


class Undeliverable(Exception):
    """This delivery failed; a later one may succeed."""


def register(kind: EffectKind, deliver: Deliver) -> None:
    """Names who delivers a kind. `deliver` raises `Undeliverable`; any other exception is a defect and is logged."""
    _deliverers[kind] = deliver


def sweep(until_s: float = math.inf) -> int:
    """Delivers what is due, up to 20 items; the number delivered. Safe to run in several workers at once.

    None is begun later than `until_s` (monotonic): a task that runs into its limit dies in the midst of one.
    """
    now = datetime.now(UTC)
    due = OutboxItem.objects.filter(done_at__isnull=True, due_at__lte=now, attempts__lt=ATTEMPTS).order_by(
        "due_at"
    )
    delivered = 0
    for item in due[:BATCH]:
        if time.monotonic() > until_s:
            break
        delivered += _deliver(item)
    return delivered


def undone() -> dict[str, int]:
    """How many items are `due` by now, and how many were `given_up`. One query over what is not done."""
    now = datetime.now(UTC)
    return OutboxItem.objects.filter(done_at__isnull=True).aggregate(
        due=Count("pk", filter=Q(attempts__lt=ATTEMPTS, due_at__lte=now)),
        given_up=Count("pk", filter=Q(attempts__gte=ATTEMPTS, due_at__lte=now)),
    )


def prune() -> int:
    """Deletes what was done more than 30 days ago, in short transactions; gives how many. Repeatable."""
    old = OutboxItem.objects.filter(done_at__lt=datetime.now(UTC) - KEEP)
    deleted = 0
    while batch := list(old.values_list("pk", flat=True)[:PRUNED_AT_ONCE]):
        deleted += OutboxItem.objects.filter(pk__in=batch).delete()[0]
    return deleted


def _deliver(item: OutboxItem) -> bool:
    if not _claimed(item):
        return False
    try:
        _deliverers[item.kind](item)
    except SoftTimeLimitExceeded as error:
        _postpone(item, error)
        raise
    except Exception as error:
        # The boundary of one delivery: its failure is kept with the item and must not stop the others.
        if not isinstance(error, Undeliverable):
            logger.exception("outbox item %s of kind %s failed", item.pk, item.kind)
        _postpone(item, error)
        return False
    OutboxItem.objects.filter(pk=item.pk).update(done_at=datetime.now(UTC), failure="")
    return True


def _claimed(item: OutboxItem) -> bool:
    now = datetime.now(UTC)
    mine = OutboxItem.objects.filter(
        pk=item.pk, done_at__isnull=True, due_at=item.due_at, attempts=item.attempts
    )
    return mine.update(due_at=now + CLAIM, attempts=F("attempts") + 1) == 1


def _postpone(item: OutboxItem, error: Exception) -> None:
    if item.attempts + 1 >= ATTEMPTS:
        logger.error("outbox item %s of kind %s is given up after %d attempts", item.pk, item.kind, ATTEMPTS)
    pause_s = min(5 * 2**item.attempts, LONGEST_PAUSE_S) + secrets.randbelow(5)
    OutboxItem.objects.filter(pk=item.pk).update(
        due_at=datetime.now(UTC) + timedelta(seconds=pause_s),
        failure=f"{type(error).__name__}: {error}"[:300],
    )
