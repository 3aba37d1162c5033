"""Owns the web process: opens the line, loads the residents, holds every task, drains on SIGTERM."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from apps.accounts.resident import SiteResident
from apps.conversations.commands import Appended
from apps.conversations.log import Log
from apps.customers.facts import FactSources
from apps.inbox.presence import Presence
from apps.knowledge.resident import KnowledgeResident
from apps.llm.line import Line
from apps.rulebook.resident import RuleResident
from apps.stores.database import in_database
from apps.stores.ids import new_id
from apps.stores.redis import connect
from apps.turns import leases
from apps.turns.attendance import Attendance
from apps.turns.buffer import StreamBuffer
from apps.turns.contexts import Contexts
from apps.turns.feed import Feed
from apps.turns.office import Office
from apps.turns.preload import Preloader
from apps.turns.residents import Residents
from apps.turns.runtime import Runtime
from apps.turns.supervisor import Supervisor
from apps.turns.switchboard import Switchboard

logger = logging.getLogger(__name__)


class ProcessOwner:
    """One TaskGroup holds every task of the process; a task that fails is logged and takes none with it."""

    office: Office

    def __init__(self) -> None:
        self._group: asyncio.TaskGroup | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._stop = asyncio.Event()
        self._holder: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Everything is open and loaded when this returns; only then may a port listen."""
        await self._open_group()
        redis, process = connect(), new_id()
        self._redis = redis
        switchboard, buffer = Switchboard(process), StreamBuffer(redis, process)
        self._log = Log(self._committed)
        runtime = Runtime(
            process=process,
            spawn=self.spawn,
            redis=redis,
            log=self._log,
            buffer=buffer,
            switchboard=switchboard,
            presence=Presence(redis),
            sites=SiteResident(),
            rules=RuleResident(),
            knowledge=KnowledgeResident(),
            facts=FactSources(redis),
            line=Line(),
            contexts=Contexts(),
        )
        residents = Residents((runtime.sites, runtime.line), (runtime.rules,), (runtime.knowledge,))
        feed = Feed(switchboard, runtime.presence, runtime.sites)
        self.office = Office(
            runtime=runtime,
            supervisor=Supervisor(runtime, feed, residents),
            attendance=Attendance(switchboard, buffer),
            feed=feed,
            residents=residents,
            preloader=Preloader(self.spawn),
        )
        self._log.open()
        await asyncio.gather(in_database(leases.renew, process), runtime.facts.open(), residents.load())
        # After the residents, so that their endpoints are warm before the port listens.
        await runtime.line.open()
        self._spawn_services()

    def _spawn_services(self) -> None:
        office = self.office
        for name, task in office.runtime.switchboard.tasks():
            self.spawn(task(), name)
        self.spawn(office.residents.watch(), "residents")
        self.spawn(office.feed.run(), "feed")
        self.spawn(office.feed.watch_presence(), "presence")
        self.spawn(office.feed.watch_queue(), "queue")
        self.spawn(office.attendance.renew(), "attendance")
        self.spawn(office.supervisor.keep_lease(), "process lease")
        self.spawn(office.supervisor.sweep(), "sweep")

    def spawn(self, coroutine: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Starts a task that ends with the process at the latest. Raises `RuntimeError` before `start`."""
        if self._group is None:
            raise RuntimeError("the owner has not started")
        task = self._group.create_task(_guarded(coroutine, name), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def drain(self, grace_s: float) -> None:
        """Lets running turns finish, leaves the rest to be adopted, then closes everything."""
        office = self.office
        await office.supervisor.drain(grace_s)
        await self._log.close()
        await in_database(leases.release, office.runtime.process)
        await office.runtime.line.close()
        await office.runtime.facts.close()
        office.preloader.close()
        self._stop.set()
        if self._holder is not None:
            await self._holder
        await self._redis.aclose()

    def _committed(self, appended: Appended) -> None:
        self.office.supervisor.committed(appended)

    async def _open_group(self) -> None:
        ready = asyncio.Event()
        self._holder = asyncio.get_running_loop().create_task(self._hold(ready))
        await ready.wait()

    async def _hold(self, ready: asyncio.Event) -> None:
        async with asyncio.TaskGroup() as group:
            self._group = group
            ready.set()
            await self._stop.wait()
            for task in self._tasks:
                task.cancel()


async def _guarded(coroutine: Coroutine[Any, Any, None], name: str) -> None:
    # The boundary of a task: a raising child would cancel the whole group.
    try:
        await coroutine
    except Exception:
        logger.exception("task %s failed", name)


def build_owner() -> ProcessOwner:
    return ProcessOwner()
