"""How long each stage of a turn may take, in seconds, and how a deadline is judged. Optional context that is late is
left out.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Final

FACTS_COPY_S: Final = 0.05  # a preloaded copy is a round trip to Redis
FACTS_FETCH_S: Final = 1.0  # a fact the question needs
RETRIEVAL_S: Final = 0.4

# Rounds of the loop that what has come may take from the socket to who waits: a library's queue, a reader's task.
_HANDS: Final = 8


class Until:
    """`asyncio.timeout_at`, judged once all that had come by `due` (loop time) was read. Raises `TimeoutError`.

    A loop that was kept busy past a deadline finds the answer and the deadline at the same time, and asyncio's own
    time-out lets the deadline win.
    """

    def __init__(self, due: float) -> None:
        self._due = due
        self._limit = asyncio.timeout(None)

    async def __aenter__(self) -> None:
        self._loop = asyncio.get_running_loop()
        await self._limit.__aenter__()
        self._timer: asyncio.Handle = self._loop.call_at(self._due, self._late, _HANDS)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        await self._limit.__aexit__(kind, error, trace)

    def _late(self, hands: int) -> None:
        if hands:
            self._timer = self._loop.call_soon(self._late, hands - 1)
        else:
            self._limit.reschedule(self._due)


def within(seconds: float) -> Until:
    """`asyncio.timeout` in the same way."""
    return Until(asyncio.get_running_loop().time() + seconds)
