"""When a conversation opens: Celery fetches the customer's data, checks the rules, and says which versions hold.

Nothing waits for it. The web process only enqueues, off the loop, and goes on when the broker is away.
"""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor

from kombu.exceptions import OperationalError

from apps.stores.redis import Unreachable
from apps.stores.tasks import TaskQueue
from apps.telemetry import instruments
from apps.turns.spawn import Spawn
from apps.turns.tasks import preload

logger = logging.getLogger(__name__)

WAITING = 500


class Preloader:
    """Enqueues one preload at a time. When the broker is so slow that 500 wait, or the workers so that 1,000 tasks
    do, further ones are dropped: their turns fetch what they need.
    """

    def __init__(self, spawn: Spawn) -> None:
        self._spawn = spawn
        self._waiting = 0
        self._queue = TaskQueue()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="enqueue")

    def conversation_opened(self, conversation: str, customer: str, site: str) -> None:
        """Has the worker fetch what the customer's turns may need. Returns at once; drops and counts when 500 wait."""
        if self._waiting >= WAITING:
            instruments.dropped.labels("preload").inc()
            return
        self._waiting += 1
        self._spawn(self._enqueue(conversation, customer, site), "preload")

    async def _enqueue(self, conversation: str, customer: str, site: str) -> None:
        try:
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(self._thread, self._send, conversation, customer, site)
        except (OperationalError, *Unreachable):
            instruments.redis_failures.labels("enqueue").inc()
            logger.warning("the preload of conversation %s could not be enqueued", conversation)
        finally:
            self._waiting -= 1

    def _send(self, conversation: str, customer: str, site: str) -> None:
        if self._queue.full():
            instruments.dropped.labels("preload").inc()
        else:
            preload.delay(conversation, customer, site)

    def close(self) -> None:
        """Drops what was not enqueued yet."""
        self._thread.shutdown(wait=False, cancel_futures=True)
