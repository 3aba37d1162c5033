"""The scheduler of `celery beat`: nothing is added to a queue that nobody works off."""

from __future__ import annotations

import logging
from typing import Any

from celery.beat import PersistentScheduler

from apps.stores.redis import Unreachable
from apps.stores.tasks import TaskQueue

logger = logging.getLogger(__name__)


class Scheduler(PersistentScheduler):  # type: ignore[misc]  # celery has no types
    """Every task of the schedule is a sweep, or comes again: one that is left out is not missed."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._queue = TaskQueue()

    def apply_async(self, entry: Any, producer: Any = None, advance: bool = True, **kwargs: Any) -> Any:
        """Sends the entry's task, unless the queue is full."""
        if self._full():
            logger.warning("%s is left out: the queue of tasks is full, is there a worker?", entry.name)
            return None
        return super().apply_async(entry, producer=producer, advance=advance, **kwargs)

    def _full(self) -> bool:
        try:
            return self._queue.full()
        except Unreachable:
            return False  # sending it finds out, and says so
