"""The worker's side of conversations."""

from __future__ import annotations

import time
from typing import Final

from celery import shared_task

from apps.conversations import outbox

_SWEEP_S: Final = 25.0  # half of the limit: the delivery that is then under way has the other


@shared_task(soft_time_limit=50, time_limit=55, expires=10)
def sweep_outbox() -> None:
    """Delivers what is due. Repeatable; an item is claimed before it is delivered."""
    until_s = time.monotonic() + _SWEEP_S
    while time.monotonic() < until_s and outbox.sweep(until_s):
        pass


@shared_task(soft_time_limit=50, time_limit=55, expires=600)
def prune_outbox() -> int:
    """Forgets what was delivered long ago. Repeatable."""
    return outbox.prune()
