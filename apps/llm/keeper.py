"""What the line does beside the answers: keeps endpoints warm, and brings its notes to the database."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Set
from contextlib import suppress

from apps.llm.journal import Journal
from apps.llm.pool import Pool
from apps.llm.spec import EndpointSpec

# Endpoints no site wants any more are looked after at least this often.
TEND_EVERY_S = 30.0
# Spend of so long is written together.
SPEND_EVERY_S = 2.0
# After a database that refused, notes are tried again.
WRITE_EVERY_S = 5.0
CLOSE_WAITS_S = 3.0


class Keeper:
    """Two tasks on the loop, from `open` to `close`. Asks `wanted` which endpoints to hold."""

    def __init__(
        self,
        pool: Pool,
        journal: Journal,
        wanted: Callable[[], Set[EndpointSpec]],
        on_spend: Callable[[str, bool], None],
    ) -> None:
        self._pool = pool
        self._journal = journal
        self._wanted = wanted
        self._on_spend = on_spend
        self._loop: asyncio.AbstractEventLoop | None = None
        self._changed = asyncio.Event()
        self._noted = asyncio.Event()
        self._closing = False
        self._pressing = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def open(self, wait_s: float) -> None:
        """Starts, and waits up to `wait_s` for the first round of warm-ups."""
        self._loop = asyncio.get_running_loop()
        warmed = asyncio.Event()
        self._tasks = [
            self._loop.create_task(self._keep_warm(warmed), name="line-warm"),
            self._loop.create_task(self._keep_notes(), name="line-notes"),
        ]
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await warmed.wait()

    async def close(self) -> None:
        """Stops warming at once and writes what is left to note. Bounded."""
        self._closing = True
        self._pressing.set()
        self._noted.set()
        for task in self._tasks[:1]:
            task.cancel()
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=CLOSE_WAITS_S)
            for task in late:
                task.cancel()
        self._loop = None

    def endpoints_changed(self) -> None:
        """From any thread: `wanted` gives another answer."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._changed.set)

    def noted(self) -> None:
        """On the loop: the journal has something to write."""
        self._noted.set()
        if self._journal.pressing:
            self._pressing.set()

    async def _keep_warm(self, warmed: asyncio.Event) -> None:
        while True:
            self._changed.clear()
            await self._pool.tend(self._wanted())
            warmed.set()
            due = self._pool.next_due()
            latest = asyncio.get_running_loop().time() + TEND_EVERY_S
            with suppress(TimeoutError):
                async with asyncio.timeout_at(latest if due is None else min(due, latest)):
                    await self._changed.wait()

    async def _keep_notes(self) -> None:
        while True:
            self._noted.clear()
            if not self._closing:
                self._pressing.clear()
            for site_id, capped in (await self._journal.write()).items():
                self._on_spend(site_id, capped)
            if self._closing and self._journal.empty:
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(None if self._journal.empty else WRITE_EVERY_S):
                    await self._noted.wait()
            with suppress(TimeoutError):
                async with asyncio.timeout(SPEND_EVERY_S):
                    await self._pressing.wait()
