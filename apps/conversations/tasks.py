"""The worker's side of conversations."""

from __future__ import annotations

from celery import shared_task

from apps.conversations import outbox


@shared_task(soft_time_limit=50, time_limit=55, expires=10)
def sweep_outbox() -> None:
    """Delivers what is due. Repeatable; an item is claimed before it is delivered."""
    while outbox.sweep():
        pass
