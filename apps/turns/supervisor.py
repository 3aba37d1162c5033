"""Starts, ends and adopts the turns of this process: at most one runner a conversation."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Set
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import assert_never

from apps.conversations import commands as c
from apps.conversations import selectors
from apps.stores.database import in_database
from apps.stores.ids import new_id
from apps.stores.redis import Unreachable
from apps.telemetry.waterfall import Waterfall
from apps.turns.ahead.early import EarlyAnswers
from apps.turns.ahead.foresight import Answered, Foresight
from apps.turns.ahead.warmups import Warmups
from apps.turns.between.announcements import (
    Announcement,
    OwnerMoved,
    PaintReported,
    ResidentsMoved,
    StopPressed,
)
from apps.turns.between.buffer import Buffered
from apps.turns.feed import Feed
from apps.turns.job import Ahead, Job, Limits, Said, job_for
from apps.turns.questions import Question, open_question
from apps.turns.residents import Residents
from apps.turns.retrieval import StartedRetrieval
from apps.turns.runner import Runner
from apps.turns.runtime import Runtime
from apps.wire.protocol import EventKind, LiveTurn, OwnerKind

logger = logging.getLogger(__name__)

ABANDON_S = 2.0


class Supervisor:
    """Holds the runners. What it does for a conversation is decided by the writer, never by what it remembers."""

    def __init__(
        self,
        runtime: Runtime,
        feed: Feed,
        residents: Residents,
        *,
        foresight: Foresight,
        warmups: Warmups,
        limits: Limits,
    ) -> None:
        self._runtime = runtime
        self._feed = feed
        self._residents = residents
        self._foresight = foresight
        self._warmups = warmups
        self._early = EarlyAnswers(runtime)
        self._runners: dict[str, Runner] = {}
        self._running: dict[asyncio.Task[None], Runner] = {}
        self._storing: set[asyncio.Future[None]] = (
            set()
        )  # one for each message whose turn may be about to begin
        self._limits = limits
        self._draining = False
        self._left: dict[str, str] = {}  # what turns that could not be stored have shown
        runtime.switchboard.on_announcement(self._announced)

    async def customer_message(self, said: Said) -> c.Appended:
        """Stores the message, then starts or restarts the turn. Raises `Refusal`, `LogUnavailable`.

        A turn that has shown nothing yet gives way to the newer message; one that has shown text finishes first.
        The turn starts with the commit, whatever has become of the caller.
        """
        runtime = self._runtime
        self._warmups.end(said.conversation)
        site = runtime.sites.current(said.site)
        retrieval = said.drafted or self._search(said)
        stored = asyncio.get_running_loop().create_future()
        live = self._runners.get(said.conversation)
        superseding = live if live is not None and live.hold() else None
        ahead = said.ahead
        if ahead is None and live is None and not self._draining:
            ahead = self._early.ask(site, said, retrieval)

        def begin(appended: c.Appended) -> None:
            started = False
            try:
                if site is not None and appended.opened is not None:
                    self._early.stored(said)
                    job = job_for(said, site, appended, retrieval, said.received, ahead=ahead)
                    self._start(job, appended.opened)
                    started = True
            finally:
                if not started:
                    drop()
                release()

        def let_go() -> None:
            drop()
            release()

        def drop() -> None:
            retrieval.cancel()
            _end(ahead)

        def release() -> None:
            self._storing.discard(stored)
            stored.set_result(None)
            if superseding is not None:
                superseding.release()

        command = c.CustomerMessage(
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
        self._storing.add(stored)
        with said.received.stage("receive"):
            # It may be stored after its caller is gone, and until then the older turn must show nothing.
            return await runtime.log.append(command, begin, let_go)

    async def stop(self, conversation: str, turn: str, painted: int) -> bool:
        """Ends the live turn, wherever it runs; false when it has ended already or cannot be reached."""
        stop = StopPressed(conversation, turn, painted)
        if self._stop_here(stop):
            self._runtime.spawn(self._keep(stop), "keep stop")
            return True
        told = await self._runtime.buffer.tell_stop(conversation, turn, painted)
        if told:
            self._runtime.switchboard.announce(stop)
        return told

    async def _keep(self, stop: StopPressed) -> None:
        """For whoever adopts the turn, should the database not take its end from here."""
        await self._runtime.buffer.tell_stop(stop.conversation, stop.turn, stop.painted)

    def painted(self, conversation: str, handle: int, ms: float) -> None:
        """A client shows the first text of a turn, which may run elsewhere. Touches nothing but what is measured."""
        if not self._painted_here(paint := PaintReported(conversation, handle, ms)):
            self._runtime.switchboard.announce(paint)

    async def live(self, snapshot: selectors.Snapshot) -> LiveTurn | None:
        """The turn in progress with its text so far, as the buffer or this process knows it."""
        if not snapshot.turn:
            return None
        runner = self._runners.get(snapshot.id)
        if runner is not None:
            return runner.view()
        buffered = await self._buffered(snapshot.id)
        text = buffered.text if buffered is not None and buffered.fence == snapshot.fence else ""
        return LiveTurn(
            turn=snapshot.turn,
            part=snapshot.turn_part,
            handle=snapshot.fence,
            place=snapshot.turn_place,
            text=text,
        )

    async def _buffered(self, conversation: str) -> Buffered | None:
        """The live text in Redis; None where there is none or Redis does not answer."""
        try:
            return await self._runtime.buffer.read(conversation)
        except Unreachable:
            return None

    def committed(self, appended: c.Appended) -> None:
        """Publishes the events of a commit of this process and reacts to a change of owner. Runs on the loop."""
        standing, switchboard = appended.standing, self._runtime.switchboard
        self._runtime.contexts.committed(appended)
        for event in appended.events:
            switchboard.send_all(standing.conversation, event)
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
                runtime.spawn(self.answer_pending(standing.conversation), "answer pending")
            return
        self._cut_older(standing.conversation, standing.owner.version)
        runtime.switchboard.announce(OwnerMoved(standing.conversation, standing.owner.version))

    def _cut_older(self, conversation: str, owner_version: int) -> None:
        """Ends a turn that was opened under an earlier owner. One opened since is not meant: news may be late."""
        runner = self._runners.get(conversation)
        if runner is not None and runner.job.owner_version < owner_version:
            runner.take_over()

    def _announced(self, announcement: Announcement) -> None:
        match announcement:
            case ResidentsMoved():
                self._residents.hurry()
            case OwnerMoved():
                self._runtime.contexts.owner_moved(announcement.conversation)
                self._cut_older(announcement.conversation, announcement.version)
            case StopPressed():
                self._stop_here(announcement)
            case PaintReported():
                self._painted_here(announcement)
            case _:
                assert_never(announcement)

    def _stop_here(self, stop: StopPressed) -> bool:
        runner = self._runners.get(stop.conversation)
        if runner is None or runner.opened.turn != stop.turn:
            return False
        runner.stop(stop.painted)
        return True

    def _painted_here(self, paint: PaintReported) -> bool:
        runner = self._runners.get(paint.conversation)
        if runner is not None and runner.painted(paint.handle, paint.ms):
            return True
        return self._runtime.ledger.painted(paint.conversation, paint.handle, paint.ms)

    def _start(self, job: Job, opened: c.OpenedTurn) -> None:
        self._left.pop(job.conversation, None)
        self._warmups.end(job.conversation)
        if (older := self._runners.get(job.conversation)) is not None:
            older.supersede()
        runner = Runner(self._runtime, job, opened, self._limits)
        self._runners[job.conversation] = runner
        task = self._runtime.spawn(self._run(runner), f"turn {opened.turn}")
        self._running[task] = runner
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.pop(task, None)

    async def _run(self, runner: Runner) -> None:
        conversation = runner.job.conversation
        try:
            await runner.run()
        finally:
            runner.job.retrieval.asked()
            runner.job.retrieval.cancel()
            _end(runner.job.ahead)
            self._forget(runner)
        if runner.answered and runner.job.site.prefetch:
            self._foresight.answered(_answered(runner.job))
        if runner.answered:
            self._warmups.answered(runner.job, runner.usage, goes_on=not runner.handed_over)
        if conversation not in self._runners and not runner.undisturbed:
            await self.answer_pending(conversation)

    def _forget(self, runner: Runner) -> None:
        conversation = runner.job.conversation
        if self._runners.get(conversation) is not runner:
            return
        del self._runners[conversation]
        if runner.left_live and not self._draining:
            self._left[conversation] = runner.view().text

    async def answer_pending(self, conversation: str) -> None:
        """Opens a turn where the newest message is a customer's that no turn has taken up. Raises `LogUnavailable`."""
        if self._draining:
            return
        question = await in_database(open_question, conversation)
        if question is None or (site := self._runtime.sites.current(question.site)) is None:
            return
        if not site.assistant_enabled:
            return
        command = c.OpenTurn(
            conversation=conversation,
            turn=new_id(),
            process=self._runtime.process,
            question=question.place,
            at=datetime.now(UTC),
        )
        with suppress(c.Refusal):
            await self._runtime.log.append(command, partial(self.begin, question))

    def begin(self, question: Question, appended: c.Appended) -> None:
        """Runs the turn that this commit has opened, if it has."""
        site = self._runtime.sites.current(question.site)
        if appended.opened is None or site is None:
            return
        job = job_for(question, site, appended, self._search(question), Waterfall())
        # More may have been asked between the reading of the question and this commit.
        self._start(replace(job, opened_seq=0), appended.opened)

    def _search(self, asked: Said | Question) -> StartedRetrieval:
        runtime = self._runtime
        return StartedRetrieval(
            runtime.spawn, runtime.knowledge, site=asked.site, text=asked.text, locale=asked.locale
        )

    @property
    def draining(self) -> bool:
        """Whether the process is about to end and takes up no further turn."""
        return self._draining

    def runs(self, conversation: str) -> bool:
        """Whether a turn of this process is live there."""
        return conversation in self._runners

    def shown(self, conversation: str) -> str | None:
        """What a turn of this process that has not been stored had shown, for whoever adopts it; None without one."""
        return self._left.get(conversation)

    def forget_shown(self, *, but: Set[str]) -> None:
        """Drops what was shown by turns that others have taken up."""
        self._left = {conversation: text for conversation, text in self._left.items() if conversation in but}

    def let_go_of_hanging(self) -> None:
        """Turns that should long have ended are given up: still live in the database, they are adopted next."""
        for task, runner in tuple(self._running.items()):
            if not runner.overdue():
                continue
            logger.error("turn %s hangs; it is let go of", runner.opened.turn)
            runner.give_up()
            self._forget(runner)
            task.cancel()

    async def drain(self, grace_s: float) -> None:
        """Opens no further turn, waits for the running ones, then leaves the rest for another process to adopt."""
        self._draining = True
        await self._wait_for_turns(grace_s)
        for runner in self._running.values():
            runner.abandon()
        await self._wait_for_turns(ABANDON_S)

    async def _wait_for_turns(self, seconds: float) -> None:
        """Those of messages that came in meanwhile, or are just being stored, too."""
        until = time.monotonic() + seconds
        while (awaited := {*self._running, *self._storing}) and (left_s := until - time.monotonic()) > 0:
            await asyncio.wait(awaited, timeout=left_s)


def _end(ahead: Ahead | None) -> None:
    """No turn has needed it."""
    if ahead is not None:
        ahead.end("unneeded")


def _answered(job: Job) -> Answered:
    return Answered(
        site=job.site.id,
        conversation=job.conversation,
        asker=job.asker,
        question=job.question,
        processing_s=job.waterfall.elapsed_ms() / 1000,
    )
