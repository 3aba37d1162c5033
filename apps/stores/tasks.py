"""The queue of tasks in Redis: how long it is, and when nothing more is put into it."""

from __future__ import annotations

from typing import Any, Final

from django.conf import settings

from apps.stores.redis import connect_blocking

# Without a worker a sweep every few seconds alone fills a small Redis within days, and chat with it.
QUEUE_TASKS: Final = 1_000


class TaskQueue:
    """Blocks for up to a second. One a thread. Its methods raise `Unreachable` errors."""

    def __init__(self) -> None:
        self._redis = connect_blocking()

    def waiting(self) -> int:
        """How many tasks no worker has taken yet."""
        length: Any = self._redis.llen(settings.CELERY_TASK_DEFAULT_QUEUE)
        return int(length)

    def full(self) -> bool:
        """Whether what can be left out should be: no worker comes to it soon."""
        return self.waiting() >= QUEUE_TASKS
