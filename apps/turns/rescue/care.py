"""Looks after turns and questions that a process has left behind, and tells the others that this one lives."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from django.db import DatabaseError

from apps.conversations import commands as c
from apps.conversations import selectors
from apps.stores.database import in_database
from apps.stores.redis import Unreachable
from apps.telemetry import instruments
from apps.turns.questions import open_question, unanswered
from apps.turns.rescue import leases
from apps.turns.rescue.lifeline import Lifeline
from apps.turns.runner import MAX_PARTS
from apps.turns.runtime import Runtime
from apps.turns.sentences import NO_MODEL, sentence
from apps.turns.supervisor import Supervisor
from apps.wire.protocol import MessageState, TurnEnd
from apps.wire.server_frames import TurnEnded
from apps.wire.texts import utf16_length, utf16_prefix

logger = logging.getLogger(__name__)

SWEEP_INTERVAL_S = 2.0


class Care:
    """One a web process; its two services run as long as the process."""

    def __init__(self, runtime: Runtime, supervisor: Supervisor, lifeline: Lifeline) -> None:
        self._runtime = runtime
        self._supervisor = supervisor
        self._lifeline = lifeline
        self._missing: dict[str, float] = {}  # since when a live turn of ours has had no runner
        self._renewed_at = 0.0
        self._judges_from = 0.0
        self._released = False

    @property
    def stored_lately(self) -> bool:
        """Whether the database has taken the last renewals: one that only answers reads has not."""
        return time.monotonic() - self._renewed_at <= leases.LEASE.total_seconds()

    async def keep_lease(self) -> None:
        """Renews the process's lease, for ever. A database that does not answer lets others adopt its turns."""
        while not self._released:
            try:
                await self.renew()
            except DatabaseError:
                logger.exception("the lease of this process was not renewed")
            await asyncio.sleep(leases.RENEW_INTERVAL_S)

    async def renew(self) -> None:
        """One renewal. Raises `DatabaseError`."""
        await in_database(leases.renew, self._runtime.process)
        now = time.monotonic()
        if self._renewed_at and now - self._renewed_at > leases.LEASE.total_seconds():
            # The database was away, or we slept: others could not renew either and need their time to.
            self._judges_from = now + leases.LEASE.total_seconds()
        self._renewed_at = now

    async def release(self) -> None:
        """For good: what is live here may be adopted at once, or else when the lease has run out."""
        self._released = True
        try:
            await in_database(leases.release, self._runtime.process)
        except DatabaseError:
            logger.exception("the lease of this process was not released")

    async def sweep(self) -> None:
        """Adopts turns whose process is gone, and answers what no process has taken up, for ever."""
        while True:
            self._supervisor.let_go_of_hanging()
            try:
                await self._adopt(await in_database(selectors.live_turns))
                for conversation in await in_database(unanswered):
                    await self.answer_if_left(conversation)
            except DatabaseError:
                logger.exception("the sweep could not read what is live")
            self._runtime.contexts.expire()
            await self._next_sweep()

    async def _next_sweep(self) -> None:
        """After the interval, or at once when a process was found gone."""
        with suppress(TimeoutError):
            async with asyncio.timeout(SWEEP_INTERVAL_S):
                await self._lifeline.lost.wait()
        self._lifeline.lost.clear()

    async def _adopt(self, live: Sequence[tuple[str, str]]) -> None:
        ours = {conversation for conversation, process in live if process == self._runtime.process}
        self._missing = {
            conversation: since
            for conversation, since in self._missing.items()
            if conversation in ours and not self._supervisor.runs(conversation)
        }
        self._supervisor.forget_shown(but=ours)
        living = await in_database(leases.living)
        # Side by side: a process leaves all its turns at once, and each has a customer who waits.
        async with asyncio.TaskGroup() as group:
            for conversation, process in live:
                if process not in living or process == self._runtime.process:
                    group.create_task(self.adopt_if_dead(conversation, process))

    async def answer_if_left(self, conversation: str) -> None:
        """Opens a turn for a question that was stored and never taken up."""
        if not self._supervisor.runs(conversation):
            await self._guarded(self._supervisor.answer_pending(conversation), conversation)

    async def adopt_if_dead(self, conversation: str, process: str) -> None:
        """Keeps a dead process's text as one interrupted part and answers again in a new one, unless the customer has
        pressed stop, which nobody was there to hear.
        """
        if not self._supervisor.draining:
            await self._guarded(self._adopt_one(conversation, process), conversation)

    async def _guarded(self, care: Awaitable[None], conversation: str) -> None:
        """One conversation that cannot be cared for now must not keep the others waiting."""
        try:
            await care
        except (DatabaseError, c.LogUnavailable, selectors.NotFound):
            logger.exception("conversation %s could not be looked after", conversation)

    async def _adopt_one(self, conversation: str, process: str) -> None:
        if self._supervisor.runs(conversation) or not await self._dead(conversation, process):
            return
        snapshot = await in_database(selectors.unscoped, conversation)
        if not snapshot.turn or snapshot.turn_process != process:
            return
        shown = await self._shown(snapshot)
        question = await in_database(open_question, conversation)
        if shown is None or self._supervisor.runs(conversation):
            return
        site = self._runtime.sites.current(snapshot.site)
        name = site.assistant_name if site is not None else ""
        logger.warning("adopting turn %s of process %s", snapshot.turn, process)
        if shown.painted is not None:
            await self._stop(snapshot, shown.text, shown.painted, name)
            return
        command = c.AdoptTurn(
            conversation=conversation,
            turn=snapshot.turn,
            fence=snapshot.fence,
            text=shown.text,
            name=name,
            process=self._runtime.process,
            retry=question is not None and snapshot.turn_part < MAX_PARTS,
            at=datetime.now(UTC),
            apology=sentence(NO_MODEL, snapshot.locale) if question is not None else "",
            question=question.place if question is not None else 0,
        )
        begin = partial(self._supervisor.begin, question) if question is not None else None
        with suppress(c.Refusal):
            adopted = await self._runtime.log.append(command, begin)
            instruments.turns_adopted.inc()
            if adopted.opened is None:
                await self._over(snapshot, TurnEnd.INTERRUPTED, shown.text)

    async def _stop(self, snapshot: selectors.Snapshot, text: str, painted: int, name: str) -> None:
        text = utf16_prefix(text, painted)
        command = c.FinishTurn(
            conversation=snapshot.id,
            turn=snapshot.turn,
            fence=snapshot.fence,
            part=snapshot.turn_part,
            text=text,
            state=MessageState.STOPPED,
            name=name,
            at=datetime.now(UTC),
        )
        with suppress(c.Refusal):
            await self._runtime.log.append(command)
            instruments.turns_adopted.inc()
            await self._over(snapshot, TurnEnd.STOPPED, text)

    async def _over(self, snapshot: selectors.Snapshot, end: TurnEnd, text: str) -> None:
        """No runner tells it, and a turn that kept no text leaves no event."""
        ended = TurnEnded(handle=snapshot.fence, end=end, conversation=snapshot.id, length=utf16_length(text))
        self._runtime.switchboard.send_all(snapshot.id, ended)
        await self._runtime.buffer.end(snapshot.id, snapshot.fence)

    async def _dead(self, conversation: str, process: str) -> bool:
        now = time.monotonic()
        if process == self._runtime.process:
            # A turn of ours without a runner: just committed, or left behind by a store that failed.
            return now - self._missing.setdefault(conversation, now) >= SWEEP_INTERVAL_S
        if now < self._judges_from or now - self._renewed_at > leases.LEASE.total_seconds():
            return False
        return not await in_database(leases.alive, process)

    async def _shown(self, snapshot: selectors.Snapshot) -> _Shown | None:
        """None while it cannot be known."""
        ours = snapshot.turn_process == self._runtime.process
        # Redis may have been away, and know less than we.
        known = self._supervisor.shown(snapshot.id) if ours else None
        try:
            buffered = await self._runtime.buffer.read(snapshot.id)
        except Unreachable:
            return _Shown(known or "") if ours else None
        if buffered is None or buffered.fence != snapshot.fence:
            return _Shown(known or "")
        return _Shown(buffered.text if known is None else known, buffered.stop)


@dataclass(frozen=True, slots=True)
class _Shown:
    """What a turn has shown so far, and where its customer pressed stop what of it was painted (UTF-16 code units)."""

    text: str
    painted: int | None = None
