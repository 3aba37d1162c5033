"""What a Celery worker watches about itself: whether it still takes tasks. One that does not ends, to be started again.

A worker can stop consuming and seem well: connected, idle, answering pings. It is known after resets of Redis.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from celery.signals import task_received, worker_ready
from celery.worker import state
from django.conf import settings

from apps.stores.redis import Unreachable
from apps.stores.tasks import TaskQueue

logger = logging.getLogger(__name__)

LOOK_INTERVAL_S: Final = 2.0
STUCK_S: Final = 15.0
# The longest time limit of a task is 120 s. Pools of threads have none: what hangs there holds its slot for ever.
HANGING_S: Final = 300.0
STUCK_CODE: Final = 70  # EX_SOFTWARE


@dataclass(frozen=True, slots=True)
class Look:
    """What was seen at one time. `waiting` tasks are in the queue; None: the broker did not say."""

    at_s: float  # monotonic
    waiting: int | None
    received: int  # tasks since the start
    held: frozenset[str] = frozenset()  # tasks that were taken and have not ended


@dataclass(slots=True)
class Watch:
    """Judges by looks. Stuck is who stands idle beside a queue that does not shrink, or holds a task for ever."""

    _idle_since: Look | None = None
    _held_since: dict[str, float] = field(default_factory=dict)
    _last_s: float = 0.0

    def stuck(self, look: Look) -> str:
        """Why this worker will do nothing more; empty where it may."""
        slept, self._last_s = look.at_s - self._last_s > 3 * LOOK_INTERVAL_S, look.at_s
        if slept:
            # Whoever was stopped, or had no processor, is given his time anew.
            self._idle_since, self._held_since = None, {}
        self._held_since = {task: self._held_since.get(task, look.at_s) for task in look.held}
        held_s = look.at_s - min(self._held_since.values(), default=look.at_s)
        if held_s > HANGING_S:
            return f"a task has run for {held_s:.0f} s"
        return self._idle_beside_work(look)

    def _idle_beside_work(self, look: Look) -> str:
        since = self._idle_since
        if not look.waiting or look.held:
            self._idle_since = None
        elif since is None or look.received != since.received or look.waiting < (since.waiting or 0):
            self._idle_since = look
        elif look.at_s - since.at_s >= STUCK_S:
            return f"{look.waiting} tasks wait, and it takes none"
        return ""


def watch_over_workers() -> None:
    """From the moment the worker is ready. Every 2 s its file is touched, for whoever looks from outside."""
    received = [0]

    def count(**_: Any) -> None:
        received[0] += 1

    def begin(sender: Any, **_: Any) -> None:
        sign = settings.SIGNS_DIR / sender.hostname
        threading.Thread(target=_watch, args=(sign, received), name="watch", daemon=True).start()

    task_received.connect(count, weak=False)
    worker_ready.connect(begin, weak=False)


def _watch(sign: Path, received: list[int]) -> None:
    watch, queue = Watch(), TaskQueue()
    while True:
        try:
            sign.parent.mkdir(parents=True, exist_ok=True)
            sign.touch()
            held = frozenset(tuple(state.requests))  # at one stroke: the main thread changes it meanwhile
            why = watch.stuck(Look(time.monotonic(), _waiting(queue), received[0], held))
        except Exception:
            # The thread's boundary: a look that fails must not be the last.
            logger.exception("the worker could not be looked at")
            why = ""
        if why:
            logger.critical("the worker is stuck: %s; it ends, to be started again", why)
            logging.shutdown()
            os._exit(STUCK_CODE)  # the main thread may never come to an orderly end
        time.sleep(LOOK_INTERVAL_S)


def _waiting(queue: TaskQueue) -> int | None:
    try:
        return queue.waiting()
    except Unreachable:
        return None
