"""Owns the web process: opens the line, loads the residents, holds every task, drains on SIGTERM."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from apps.accounts.resident import SiteResident
from apps.conversations.commands import Appended
from apps.conversations.log import Log
from apps.customers.facts import FactSources
from apps.gateway.connections import Connections
from apps.gateway.http import HttpLines
from apps.gateway.relay import Relay
from apps.gateway.streams import Lines
from apps.inbox.presence import Presence
from apps.knowledge.resident import KnowledgeResident
from apps.llm.line import Line
from apps.rulebook.resident import RuleResident
from apps.stores.ids import new_id
from apps.stores.redis import connect
from apps.turns.ahead.drafts import Drafts
from apps.turns.ahead.foresight import Foresight
from apps.turns.ahead.learned import LearnedResident
from apps.turns.ahead.preload import Preloader
from apps.turns.ahead.warmups import Warmups
from apps.turns.between.attendance import Attendance
from apps.turns.between.buffer import StreamBuffer
from apps.turns.between.failover import Failover
from apps.turns.between.switchboard import Switchboard
from apps.turns.feed import Feed
from apps.turns.job import Limits
from apps.turns.kept.answers import Answers
from apps.turns.kept.context_copies import ContextCopies
from apps.turns.kept.contexts import Contexts
from apps.turns.ledger import Ledger
from apps.turns.office import Office
from apps.turns.rescue.care import Care
from apps.turns.rescue.lifeline import Lifeline
from apps.turns.rescue.resync import Resync
from apps.turns.residents import Residents
from apps.turns.runtime import Runtime
from apps.turns.supervisor import Supervisor
from apps.wire.protocol import CloseCode

logger = logging.getLogger(__name__)

SERVICE_AGAIN_S = 1.0
# A cancellation can be lost in the code below (`asyncio.wait_for` before Python 3.12): it is repeated until it works.
CANCEL_AGAIN_S = 0.25
CANCEL_FOR_S = 5.0


class ProcessOwner:
    """One TaskGroup holds every task of the process; a task that fails is logged and takes none with it."""

    office: Office
    connections: Connections
    http_lines: HttpLines

    def __init__(self, limits: Limits | None = None, room: int = 10_000) -> None:
        """`room` is for how many connections of clients there is."""
        self._limits = limits or Limits()
        self._room = room
        self._group: asyncio.TaskGroup | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._stop = asyncio.Event()
        self._holder: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Everything is open and loaded when this returns; only then may a port listen."""
        await self._open_group()
        redis, process = connect(), new_id()
        sites, rules, knowledge = SiteResident(), RuleResident(), KnowledgeResident()
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
            sites=sites,
            rules=rules,
            knowledge=knowledge,
            facts=FactSources(redis),
            line=Line(),
            contexts=Contexts(self.spawn, copies=ContextCopies(redis)),
            answers=Answers(redis, self.spawn, sites=sites, rules=rules, knowledge=knowledge),
            ledger=Ledger(switchboard),
        )
        learned = LearnedResident()
        warmups = Warmups(runtime)
        residents = Residents(
            (runtime.sites, runtime.line, warmups), (runtime.rules,), (runtime.knowledge,), (learned,)
        )
        feed = Feed(switchboard, runtime.presence, runtime.sites)
        foresight = Foresight(learned, runtime.facts, self.spawn)
        supervisor = Supervisor(
            runtime, feed, residents, foresight=foresight, warmups=warmups, limits=self._limits
        )
        self._lifeline = Lifeline(process)
        self.office = Office(
            runtime=runtime,
            supervisor=supervisor,
            care=Care(runtime, supervisor, self._lifeline),
            attendance=Attendance(switchboard, buffer),
            feed=feed,
            residents=residents,
            preloader=Preloader(self.spawn),
            resync=Resync(switchboard, supervisor),
            drafts=Drafts(runtime, warmups),
        )
        self.connections = Connections(self.office, self._room)
        self._lines = Lines(self.connections)
        self._relay = Relay(self._lines)
        self.http_lines = HttpLines(self._lines, self._relay)
        self._log.open()
        await asyncio.gather(self.office.care.renew(), runtime.facts.open(), residents.load())
        # After the residents, so that their endpoints are warm before the port listens.
        await runtime.line.open()
        warmups.open()
        self._spawn_services()
        self.spawn(self._relay.listen(), "relay")

    def _spawn_services(self) -> None:
        office = self.office
        for name, service in (
            *office.runtime.switchboard.tasks(),
            ("failover", Failover(self._redis, office.runtime.switchboard).run),
            ("residents", office.residents.watch),
            ("feed", office.feed.run),
            ("presence", office.feed.watch_presence),
            ("queue", office.feed.watch_queue),
            ("attendance", office.attendance.renew),
            ("records", office.runtime.ledger.run),
            ("process lease", office.care.keep_lease),
            ("lifeline", self._lifeline.run),
            ("sweep", office.care.sweep),
            ("context window", office.runtime.contexts.keep_sized),
            ("resync", office.resync.run),
            ("passes", self.connections.passes.watch),
            ("rates", self.connections.rates.share),
            ("connections", self.connections.sweep),
        ):
            self.spawn(_kept_up(service, name), name)

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
        self._lines.hang_up(CloseCode.RESTARTING, "restarting")
        await office.supervisor.drain(grace_s)
        await self._log.close()
        await office.runtime.ledger.write()
        await office.care.release()
        await office.runtime.line.close()
        await office.runtime.facts.close()
        office.preloader.close()
        office.runtime.contexts.close()
        self._stop.set()
        if self._holder is not None:
            await asyncio.wait([self._holder], timeout=CANCEL_FOR_S)
        await self._lifeline.close()
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
            await self._end_tasks()

    async def _end_tasks(self) -> None:
        while self._tasks:
            for task in self._tasks:
                task.cancel()
            await asyncio.wait(self._tasks, timeout=CANCEL_AGAIN_S)


async def _kept_up(service: Callable[[], Coroutine[Any, Any, None]], name: str) -> None:
    """Runs what must run as long as the process does; one that fails is logged and begins again."""
    while True:
        try:
            await service()
        except Exception:
            logger.exception("%s failed and is started again", name)
        await asyncio.sleep(SERVICE_AGAIN_S)


async def _guarded(coroutine: Coroutine[Any, Any, None], name: str) -> None:
    # The boundary of a task: a raising child would cancel the whole group.
    try:
        await coroutine
    except Exception:
        logger.exception("task %s failed", name)
