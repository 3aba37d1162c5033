"""Everybody who is connected to this process: how many there may be, and who is gone without a word.

Each connection has one owner, its transport, which enters it and takes it out. One that its owner has lost sight of
dies all the same: of three missed heartbeats, and of a last word that it does not read.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict
from enum import StrEnum
from typing import Protocol

from apps.gateway.heartbeat import Rhythms
from apps.gateway.passes import Passes
from apps.gateway.rates import Rates
from apps.stores.addresses import public_neighbourhood
from apps.telemetry import instruments
from apps.turns.office import Office
from apps.wire.protocol import CloseCode

# Those that have not been let in yet, of one neighbourhood and of all: each has five seconds.
WAITING_AN_ADDRESS = 100
WAITING = 2_000
# Whose first state is read at the same time, in the order in which they came. Thousands come together when a process
# beside this one has died: read for all at once it would be ready for nobody until it is for everybody.
GREETED_AT_ONCE = 50
# Whoever waited longer comes again. A client gives a silent line up after 15 s, and the database has 10 of them.
GREETING_WAIT_S = 4.0
# Of one visitor or agent: the tabs of several devices. The one that came first makes room.
LINES_A_PERSON = 20
SWEEP_INTERVAL_S = 5.0
SWEPT_AT_ONCE = 500  # then others may run
# What a client has to take its last word.
FAREWELL_S = 10.0
GOING_AWAY = 1001


class Full(StrEnum):
    """Why nobody more may come in."""

    ADDRESS = "address"
    WAITING = "waiting"
    FILES = "files"
    GREETING = "greeting"


class Connection(Protocol):
    """One client, whatever carries it."""

    address: str
    heard_at: float  # monotonic
    told_to_go_at: float | None  # monotonic

    @property
    def patience_s(self) -> float:
        """How long it may be silent."""

    def hang_up(self, code: int, reason: str) -> None:
        """Closes once everything queued before was sent."""

    def cut_off(self, code: int, reason: str) -> None:
        """Closes ahead of everything that waits."""


class Connections:
    """Counts them, and looks after them. `room` is how many the limit of open files leaves."""

    def __init__(self, office: Office, room: int) -> None:
        self.office = office
        self.passes = Passes(office)
        self.rates = Rates(office.runtime.redis)
        self.rhythms = Rhythms()
        self._room = room
        self._all: set[Connection] = set()
        self._waiting: dict[Connection, str] = {}  # the neighbourhood of each that was not let in yet
        self._from: Counter[str] = Counter()
        self._persons: dict[str, list[Connection]] = defaultdict(list)
        self._greeting = asyncio.Semaphore(GREETED_AT_ONCE)

    def enter(self, connection: Connection) -> Full | None:
        """Counts one that came; or says why it cannot stay, and counts nothing."""
        here = public_neighbourhood(connection.address)
        full = self._full(here)
        if full is not None:
            instruments.connections_refused.labels(full.value).inc()
            return full
        self._all.add(connection)
        self._waiting[connection] = here
        self._from[here] += 1
        self._count()
        return None

    def _full(self, here: str) -> Full | None:
        if len(self._all) >= self._room:
            return Full.FILES
        if len(self._waiting) >= WAITING:
            return Full.WAITING
        if here and self._from[here] >= WAITING_AN_ADDRESS:
            return Full.ADDRESS
        return None

    async def may_greet(self) -> bool:
        """Waits until the first state of one more may be read, which ends with `has_greeted`; false after 4 s."""
        instruments.greeting.inc()
        try:
            async with asyncio.timeout(GREETING_WAIT_S):
                return await self._greeting.acquire()
        except TimeoutError:
            instruments.connections_refused.labels(Full.GREETING.value).inc()
            return False
        finally:
            instruments.greeting.dec()

    def has_greeted(self) -> None:
        """One of those was told its first state, or was not let in."""
        self._greeting.release()

    def let_in(self, connection: Connection, person: str) -> None:
        """Its credentials are good, and are this person's."""
        self._waits_no_more(connection)
        lines = self._persons[person]
        lines.append(connection)
        if len(lines) > LINES_A_PERSON:
            lines[0].hang_up(CloseCode.REPLACED, "replaced")
            del lines[0]

    def leave(self, connection: Connection, person: str) -> None:
        """Its transport is gone. May be called again, and for one that did not stay."""
        self._all.discard(connection)
        self._waits_no_more(connection)
        if person in self._persons:
            self._persons[person] = [one for one in self._persons[person] if one is not connection]
            if not self._persons[person]:
                del self._persons[person]

    def _waits_no_more(self, connection: Connection) -> None:
        here = self._waiting.pop(connection, None)
        if here is not None:
            self._from[here] -= 1
            if not self._from[here]:
                del self._from[here]
        self._count()

    def _count(self) -> None:
        instruments.connections.labels("waiting").set(len(self._waiting))
        instruments.connections.labels("let in").set(len(self._all) - len(self._waiting))

    async def sweep(self) -> None:
        """Lets go of whoever is silent for too long, or does not read that it should go. For ever."""
        while True:
            await asyncio.sleep(SWEEP_INTERVAL_S)
            everybody = tuple(self._all)
            for at in range(0, len(everybody), SWEPT_AT_ONCE):
                for connection in everybody[at : at + SWEPT_AT_ONCE]:
                    self._look_at(connection, time.monotonic())
                await asyncio.sleep(0)

    def _look_at(self, connection: Connection, now: float) -> None:
        if connection not in self._all:
            return
        if connection.told_to_go_at is not None:
            if now - connection.told_to_go_at > FAREWELL_S:
                connection.cut_off(GOING_AWAY, "gone")
        elif now - connection.heard_at > connection.patience_s:
            connection.hang_up(GOING_AWAY, "silent")
