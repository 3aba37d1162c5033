"""Starts, ends and adopts the turns of this process: at most one runner a conversation."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db import DatabaseError

from apps.conversations import commands as c
from apps.conversations import selectors
from apps.customers.facts import Asker
from apps.engine.types import Passage
from apps.stores.database import in_database
from apps.stores.ids import new_id
from apps.stores.redis import Unreachable
from apps.telemetry.waterfall import Waterfall
from apps.turns import leases
from apps.turns.feed import Feed
from apps.turns.questions import Question, open_question
from apps.turns.residents import Residents
from apps.turns.runner import MAX_PARTS, Job, Runner, StartedRetrieval
from apps.turns.runtime import Runtime
from apps.wire.protocol import EventKind, LiveTurn, OwnerKind
from apps.wire.publish import Audience

logger = logging.getLogger(__name__)

SWEEP_INTERVAL_S = 2.0
ABANDON_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A customer's message as the socket received it. `received` started when its bytes arrived."""

    conversation: str
    site: str
    asker: Asker
    name: str
    client_id: str
    text: str
    locale: str
    received: Waterfall


class Supervisor:
    """Holds the runners. What it does for a conversation is decided by the writer, never by what it remembers."""

    def __init__(self, runtime: Runtime, feed: Feed, residents: Residents) -> None:
        self._runtime = runtime
        self._feed = feed
        self._residents = residents
        self._runners: dict[str, Runner] = {}
        self._running: set[asyncio.Task[None]] = set()
        self._draining = False
        self._missing: dict[str, float] = {}  # since when a live turn of ours has had no runner
        runtime.switchboard.on_announcement(self._announced)

    # ------------------------------------------------------------ customers

    async def customer_message(self, said: Said) -> c.Appended:
        """Stores the message, then starts or restarts the turn. Raises `Refusal`, `LogUnavailable`.

        A turn that has shown nothing yet gives way to the newer message; one that has shown text finishes first.
        """
        runtime = self._runtime
        site = runtime.sites.current(said.site)
        retrieval = self._search(said.site, said.text, said.locale)
        live = self._runners.get(said.conversation)
        superseding = live if live is not None and live.hold() else None
        try:
            with said.received.stage("commit"):
                appended = await runtime.log.append(
                    c.CustomerMessage(
                        conversation=said.conversation,
                        customer=said.asker.customer_id,
                        name=said.name,
                        client_id=said.client_id,
                        text=said.text,
                        at=datetime.now(UTC),
                        turn=new_id(),
                        process=runtime.process,
                        assistant=site is not None and site.assistant_enabled,
                        supersede=superseding.opened.turn if superseding is not None else "",
                    )
                )
        except BaseException:
            retrieval.cancel()
            if superseding is not None:
                superseding.release()
            raise
        if appended.opened is None or site is None:
            retrieval.cancel()
            if superseding is not None:
                superseding.release()
            return appended
        if superseding is not None:
            superseding.supersede()
        job = Job(
            conversation=said.conversation,
            site=site,
            asker=said.asker,
            locale=said.locale,
            question=said.text,
            owner_version=appended.standing.owner.version,
            retrieval=retrieval,
            waterfall=said.received,
        )
        self._start(job, appended.opened)
        return appended

    async def stop(self, conversation: str, turn: str, painted: int) -> bool:
        """Ends the live turn, wherever it runs; false when it has ended already or cannot be reached."""
        runner = self._runners.get(conversation)
        if runner is not None and runner.opened.turn == turn:
            runner.stop(painted)
            return True
        buffered = await self.buffered(conversation)
        if buffered is None or buffered.turn != turn:
            return False
        told = await self._runtime.buffer.tell_stop(conversation, painted)
        self._runtime.switchboard.announce(
            {"what": "stop", "conversation": conversation, "turn": turn, "painted": painted}
        )
        return told

    async def live(self, snapshot: selectors.Snapshot) -> LiveTurn | None:
        """The turn in progress with its text so far, as the buffer or this process knows it."""
        if not snapshot.turn:
            return None
        runner = self._runners.get(snapshot.id)
        if runner is not None:
            return runner.view()
        buffered = await self.buffered(snapshot.id)
        text = buffered.text if buffered is not None and buffered.fence == snapshot.fence else ""
        return LiveTurn(
            turn=snapshot.turn,
            part=snapshot.turn_part,
            handle=snapshot.fence,
            place=snapshot.turn_place,
            text=text,
        )

    async def buffered(self, conversation: str) -> Any:
        """The live text in Redis; None where there is none or Redis does not answer."""
        try:
            return await self._runtime.buffer.read(conversation)
        except Unreachable:
            return None

    # ------------------------------------------------------------ what was committed

    def committed(self, appended: c.Appended) -> None:
        """Publishes the events of a commit of this process and reacts to a change of owner. Runs on the loop."""
        standing, switchboard = appended.standing, self._runtime.switchboard
        self._runtime.contexts.committed(appended)
        for event in appended.events:
            switchboard.send(Audience.CUSTOMERS, standing.conversation, event)
            switchboard.send(Audience.WATCHERS, standing.conversation, event)
        if not appended.events:
            return
        self._feed.changed(standing.conversation)
        if any(event.kind is EventKind.OWNER for event in appended.events):
            self._owner_changed(standing, fresh_turn=appended.opened is not None)

    def _owner_changed(self, standing: c.Standing, *, fresh_turn: bool) -> None:
        runtime = self._runtime
        runtime.spawn(runtime.buffer.tell_owner(standing.conversation, standing.owner.version), "tell owner")
        if standing.owner.kind is OwnerKind.ASSISTANT:
            if not fresh_turn:
                runtime.spawn(self._answer_pending(standing.conversation), "answer pending")
            return
        if (runner := self._runners.get(standing.conversation)) is not None:
            runner.take_over()
        runtime.switchboard.announce({"what": "owner", "conversation": standing.conversation})

    def _announced(self, announcement: dict[str, Any]) -> None:
        """What another process told. Each has a slower way to be learnt: the flush, or the poll."""
        what = announcement.get("what")
        if what == "residents":
            self._residents.hurry()
            return
        runner = self._runners.get(announcement.get("conversation", ""))
        if runner is None:
            return
        if what == "owner":
            runner.take_over()
        elif what == "stop" and runner.opened.turn == announcement.get("turn"):
            runner.stop(int(announcement["painted"]))

    # ------------------------------------------------------------ running

    def _start(self, job: Job, opened: c.OpenedTurn) -> None:
        self._missing.pop(job.conversation, None)
        runner = Runner(self._runtime, job, opened)
        self._runners[job.conversation] = runner
        task = self._runtime.spawn(self._run(runner), f"turn {opened.turn}")
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _run(self, runner: Runner) -> None:
        conversation = runner.job.conversation
        try:
            await runner.run()
        finally:
            runner.job.retrieval.cancel()
            if self._runners.get(conversation) is runner:
                del self._runners[conversation]
        if conversation not in self._runners:
            await self._answer_pending(conversation)

    async def _answer_pending(self, conversation: str) -> None:
        """Opens a turn where the newest message is a customer's that no turn has taken up."""
        if self._draining:
            return
        question = await in_database(open_question, conversation)
        if question is None or (site := self._runtime.sites.current(question.site)) is None:
            return
        if not site.assistant_enabled:
            return
        try:
            appended = await self._runtime.log.append(
                c.OpenTurn(
                    conversation=conversation,
                    turn=new_id(),
                    process=self._runtime.process,
                    question=question.place,
                    at=datetime.now(UTC),
                )
            )
        except c.Refusal:
            return
        self._begin(question, appended)

    def _begin(self, question: Question, appended: c.Appended) -> None:
        site = self._runtime.sites.current(question.site)
        if appended.opened is None or site is None:
            return
        job = Job(
            conversation=question.conversation,
            site=site,
            asker=question.asker,
            locale=question.locale,
            question=question.text,
            owner_version=appended.standing.owner.version,
            retrieval=self._search(question.site, question.text, question.locale),
            waterfall=Waterfall(),
        )
        self._start(job, appended.opened)

    def _search(self, site: str, text: str, locale: str) -> StartedRetrieval:
        found: list[tuple[Passage, ...]] = []

        async def search() -> None:
            found.append(await self._runtime.knowledge.search(site, text, locale))

        return StartedRetrieval(self._runtime.spawn(search(), "retrieval"), found)

    # ------------------------------------------------------------ leases and sweeps

    async def keep_lease(self) -> None:
        """Renews the process's lease, for ever. A database that does not answer lets others adopt its turns."""
        while True:
            try:
                await in_database(leases.renew, self._runtime.process)
            except DatabaseError:
                logger.exception("the lease of this process was not renewed")
            await asyncio.sleep(leases.RENEW_INTERVAL_S)

    async def sweep(self) -> None:
        """Adopts turns whose process is gone, for ever."""
        while True:
            try:
                for conversation, process in await in_database(selectors.live_turns):
                    await self.adopt_if_dead(conversation, process)
                self._runtime.contexts.expire()
            except (DatabaseError, c.LogUnavailable):
                logger.exception("the sweep for abandoned turns failed")
            await asyncio.sleep(SWEEP_INTERVAL_S)

    async def adopt_if_dead(self, conversation: str, process: str) -> None:
        """Keeps a dead process's text as one interrupted part and answers again in a new one."""
        if self._draining or conversation in self._runners:
            return
        if process == self._runtime.process:
            # A turn of ours without a runner: just committed, or left behind by a store that failed.
            if not self._left_behind(conversation):
                return
        elif await in_database(leases.alive, process):
            return
        snapshot = await in_database(selectors.unscoped, conversation)
        if not snapshot.turn or snapshot.turn_process != process or conversation in self._runners:
            return
        try:
            buffered = await self._runtime.buffer.read(conversation)
        except Unreachable:
            return
        text = buffered.text if buffered is not None and buffered.fence == snapshot.fence else ""
        question = await in_database(open_question, conversation)
        site = self._runtime.sites.current(snapshot.site)
        logger.warning("adopting turn %s of process %s", snapshot.turn, process)
        try:
            adopted = await self._runtime.log.append(
                c.AdoptTurn(
                    conversation=conversation,
                    turn=snapshot.turn,
                    fence=snapshot.fence,
                    text=text,
                    name=site.assistant_name if site is not None else "",
                    process=self._runtime.process,
                    retry=question is not None and snapshot.turn_part < MAX_PARTS,
                    at=datetime.now(UTC),
                )
            )
        except c.Refusal:
            return
        if question is not None:
            self._begin(question, adopted)

    def _left_behind(self, conversation: str) -> bool:
        """Whether the conversation was without its runner an interval ago too."""
        now = asyncio.get_running_loop().time()
        return now - self._missing.setdefault(conversation, now) >= SWEEP_INTERVAL_S

    async def drain(self, grace_s: float) -> None:
        """Opens no further turn, waits for the running ones, then leaves the rest for another process to adopt."""
        self._draining = True
        if self._running:
            await asyncio.wait(set(self._running), timeout=grace_s)
        for runner in tuple(self._runners.values()):
            runner.abandon()
        if self._running:
            await asyncio.wait(set(self._running), timeout=ABANDON_S)
