"""What goes from this process to the others: queued, bounded, and published together by group.

What is lost on the way is owned up to, so that whoever listens looks for it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any, Final

from apps.stores.redis import Unreachable
from apps.telemetry import instruments
from apps.turns.between.announcements import PROCESSES, NewsLost, to_message

logger = logging.getLogger(__name__)

WAITING: Final = 2_000
PUBLISHED_AT_ONCE: Final = 100
PUBLISH_DEADLINE_S: Final = 1.0
# What has waited this long to be published is no news: whoever missed it has fetched, or is about to.
NEWS_S: Final = 5.0


class Publisher:
    """One a process; `run` as long as it lives."""

    def __init__(self, layer: Any, process: str) -> None:
        self._layer = layer
        self._process = process
        self._waiting: asyncio.Queue[tuple[float, str, dict[str, Any]]] = asyncio.Queue(WAITING)
        self._untold = False  # whether something of ours could not be published

    def put(self, group: str, message: dict[str, Any]) -> None:
        """Published soon. Never waits; drops when swamped."""
        try:
            self._waiting.put_nowait((time.monotonic(), group, message))
        except asyncio.QueueFull:
            self._drop()

    def _drop(self) -> None:
        instruments.dropped.labels("publish").inc()
        self._untold = True

    async def run(self) -> None:
        """Publishes what is put, for ever."""
        while True:
            for group, messages in (await self._next()).items():
                await self._publish(group, messages)

    async def _next(self) -> dict[str, list[dict[str, Any]]]:
        """What waits now, or is put next, by group and in its order."""
        waiting = [await self._waiting.get()]
        while not self._waiting.empty() and len(waiting) < PUBLISHED_AT_ONCE:
            waiting.append(self._waiting.get_nowait())
        by_group: dict[str, list[dict[str, Any]]] = {}
        for since, group, message in waiting:
            if time.monotonic() - since > NEWS_S:
                self._drop()
            else:
                by_group.setdefault(group, []).append(message)
        return by_group

    async def _publish(self, group: str, messages: list[dict[str, Any]]) -> None:
        together = {"type": "several", "origin": self._process, "messages": messages}
        try:
            async with asyncio.timeout(PUBLISH_DEADLINE_S):
                await self._layer.group_send(group, together)
        except Unreachable:
            instruments.redis_failures.labels("publish").inc()
            self._untold = True
        except Exception:
            # One message that cannot be written must not silence the process for good, nor take others with it.
            if len(messages) == 1:
                logger.exception("a message to %s could not be published", group)
            else:
                for message in messages:
                    await self._publish(group, [message])
        else:
            self._own_up()

    def _own_up(self) -> None:
        if self._untold:
            self._untold = False
            self.put(PROCESSES, to_message(NewsLost(), self._process))
