"""Finds a dead process at once: each holds a lock that the system lets go of when it dies.

The lock is a session's of PostgreSQL, or an open file's beside an SQLite database. A lock that was seen held and then
free ends its process's lease early; where no lock can be seen (a dead host, a cut network) the lease runs out as ever.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from django.db import DatabaseError, connection

from apps.telemetry import instruments
from apps.turns.rescue import leases

logger = logging.getLogger(__name__)

LOOK_INTERVAL_S = 0.2
# A living process whose session was cut finds that out at its own next look, and takes its lock again at once.
LOOKS_IN_A_ROW = 3
CLOSE_DEADLINE_S = 1.0


class Lifeline:
    """One a web process; `run` as long as it lives, then `close`. `lost` is set whenever a process was found gone."""

    def __init__(self, process: str) -> None:
        self.lost = asyncio.Event()
        self._process = process
        self._lock: Lock = SessionLock() if connection.vendor == "postgresql" else FileLock()
        self._watch = Watch()
        # All of a session's statements must come over one connection, and a thread has its own.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="lifeline")
        self._held = self._blind = False

    async def run(self) -> None:
        """Holds the lock and looks at the others', for ever."""
        while True:
            await self.look()
            await asyncio.sleep(LOOK_INTERVAL_S)

    async def look(self) -> None:
        """One look. What cannot be looked at is left to the leases."""
        try:
            found = await asyncio.get_running_loop().run_in_executor(self._thread, self._look)
        except (DatabaseError, OSError) as error:
            if not self._blind:
                logger.warning("the locks of the processes cannot be seen: %s", error)
            self._blind = True
            return
        self._blind = False
        if found:
            self.lost.set()

    async def close(self) -> None:
        """Lets go of the lock, after the lease was released."""
        letting_go = asyncio.get_running_loop().run_in_executor(self._thread, self._let_go)
        self._thread.shutdown(wait=False)
        with suppress(TimeoutError, DatabaseError, OSError):
            async with asyncio.timeout(CLOSE_DEADLINE_S):
                await letting_go

    def _look(self) -> bool:
        try:
            if not self._held:
                self._take()
            others = leases.others(self._process)
            gone, left = self._watch.saw(others, self._lock.held(others) if others else ())
            for process in gone:
                logger.warning("process %s is gone: its lock is free", process)
                leases.release(process)
                self._lock.bury(process)
                instruments.leases_ended.inc()
        except (DatabaseError, OSError):
            # What was held by a session ended with it, perhaps everybody's: nothing seen before counts any more.
            self._watch = Watch()
            was_held = self._held
            self._let_go()
            if was_held:
                # Not at the next look: where only this session was cut, the others have begun to count.
                self._take()
            raise
        return bool(gone or left)

    def _take(self) -> None:
        self._lock.take(self._process)
        self._held = True

    def _let_go(self) -> None:
        self._held = False
        try:
            self._lock.let_go(self._process)
        finally:
            connection.close()


class Watch:
    """What has been seen of other processes' locks, without a gap between the looks."""

    def __init__(self) -> None:
        self._free_looks: dict[str, int] = {}  # of processes whose lock was held once

    def saw(self, processes: Collection[str], held: Collection[str]) -> tuple[list[str], list[str]]:
        """The processes with a lease, and whose lock is held. Returns who died now, and who has left orderly."""
        left = [process for process in self._free_looks if process not in processes]
        for process in left:
            del self._free_looks[process]
        gone = []
        for process in processes:
            if process in held:
                self._free_looks[process] = 0
            elif process in self._free_looks:
                self._free_looks[process] += 1
                if self._free_looks[process] >= LOOKS_IN_A_ROW:
                    del self._free_looks[process]
                    gone.append(process)
        return gone, left


class Lock(Protocol):
    """A process's lock, and how others see it. Every call blocks; raises `DatabaseError`, `OSError`."""

    def take(self, process: str) -> None: ...

    def held(self, processes: Sequence[str]) -> set[str]:
        """Those whose lock somebody holds."""

    def let_go(self, process: str) -> None: ...

    def bury(self, process: str) -> None:
        """Removes what a dead process's lock has left."""


class SessionLock:
    """An advisory lock of this thread's session. The server frees it when the connection ends."""

    # The seed of the hash keeps it apart from other uses of advisory locks.
    _TAKE = "SELECT pg_advisory_lock(hashtextextended(%s, 6021406172727910))"
    # Shared and for this statement only, so that looks do not meet each other.
    _LOOK = (
        "SELECT process, pg_try_advisory_xact_lock_shared(hashtextextended(process, 6021406172727910))"
        " FROM unnest(%s::text[]) AS process"
    )

    def take(self, process: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute(self._TAKE, [process])

    def held(self, processes: Sequence[str]) -> set[str]:
        with connection.cursor() as cursor:
            cursor.execute(self._LOOK, [list(processes)])
            return {process for process, is_free in cursor.fetchall() if not is_free}

    def let_go(self, process: str) -> None:
        """The caller closes the connection; a pool would keep it, and the lock with it."""
        if connection.connection is None or not connection.is_usable():
            return
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock_all()")

    def bury(self, process: str) -> None:
        return None


class FileLock:
    """A locked file beside the database. The system unlocks it when the process ends."""

    def __init__(self) -> None:
        self._folder = Path(f"{connection.settings_dict['NAME']}.processes")
        self._file: int | None = None

    def take(self, process: str) -> None:
        self._folder.mkdir(exist_ok=True)
        # Locked before it has its name: whoever finds it finds it held.
        fresh = self._folder / f"{process}.new"
        self._file = os.open(fresh, os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(self._file, fcntl.LOCK_EX)
        fresh.rename(self._folder / process)

    def held(self, processes: Sequence[str]) -> set[str]:
        return {process for process in processes if self._is_held(process)}

    def _is_held(self, process: str) -> bool:
        try:
            file = os.open(self._folder / process, os.O_RDONLY)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(file)
        return False

    def let_go(self, process: str) -> None:
        if self._file is not None:
            self.bury(process)
            os.close(self._file)
            self._file = None

    def bury(self, process: str) -> None:
        (self._folder / process).unlink(missing_ok=True)
