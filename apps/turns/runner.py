"""Runs one turn from its opening to its stored end. Cancelled only by `stop`, a takeover, or the drain."""

from __future__ import annotations

import asyncio
import logging
import time
from datetime import UTC, datetime

from django.db import DatabaseError

from apps.conversations import commands as c
from apps.customers.facts import CustomerFacts
from apps.engine import turn as engine
from apps.engine.context import Context
from apps.engine.events import Acting, Delta, Failed, Finished, HandoffRequested, TurnEvent
from apps.engine.types import Usage
from apps.stores.database import in_database
from apps.telemetry import instruments
from apps.turns.fanout import Fanout, Reactions
from apps.turns.job import Job, Limits, SiteModel
from apps.turns.kept.answers import TurnAnswers
from apps.turns.questions import open_question
from apps.turns.records import Record, keep_record, spent
from apps.turns.runtime import Runtime
from apps.turns.sentences import NO_MODEL, sentence
from apps.wire.protocol import LiveTurn, MessageState, TurnEnd
from apps.wire.texts import utf16_length, utf16_prefix

logger = logging.getLogger(__name__)

MAX_PARTS = 3
# A cancellation can be lost in the code below (`asyncio.wait_for` before Python 3.12): it is repeated until it works.
CANCEL_AGAIN_S = 0.25
DEADLINE = "deadline"

_STATE = {
    TurnEnd.FINISHED: MessageState.COMPLETE,
    TurnEnd.FAILED: MessageState.COMPLETE,
    TurnEnd.STOPPED: MessageState.STOPPED,
    TurnEnd.TAKEN_OVER: MessageState.TAKEN_OVER,
    TurnEnd.INTERRUPTED: MessageState.INTERRUPTED,
}


class Runner:
    """One turn in this process, over all its parts. The supervisor holds it; sockets never do."""

    def __init__(self, runtime: Runtime, job: Job, opened: c.OpenedTurn, limits: Limits) -> None:
        self._runtime = runtime
        self.job = job
        self.opened = opened
        self._limits = limits
        self._fanout = self._new_fanout()
        self._thinking: asyncio.Task[None] | None = None
        self._cut: TurnEnd | None = None
        self._cut_next: TurnEnd | None = None  # came between two parts
        self._painted: int | None = None
        self._closing = False
        self.answered = False  # whether the turn has ended as it should
        self.undisturbed = False  # whether nothing was stored between the turn's opening and its end
        self.left_live = True  # whether the turn is not yet ended in the database
        self._stage_ends = 0.0  # monotonic
        self._begin_stage(limits.part_s)
        self._handoff: c.Handoff | None = None
        self._finished: Finished | None = None
        self._failed: Failed | None = None
        self._context: Context | None = None
        self._answers: TurnAnswers | None = None

    def view(self) -> LiveTurn:
        """The turn as somebody who joins now must see it."""
        return self._fanout.view()

    @property
    def usage(self) -> Usage | None:
        """What the model told of its tokens, once the turn has ended; None where it was not asked, or did not tell."""
        return self._finished.usage if self._finished is not None else None

    @property
    def handed_over(self) -> bool:
        """Whether the answer has asked for a person."""
        return self._handoff is not None

    def hold(self) -> bool:
        """Holds back the first text while a newer message is being stored; false when some was shown."""
        return not self._closing and self._fanout.hold()

    def release(self) -> None:
        """The newer message was not stored: the turn goes on."""
        self._fanout.release()

    def stop(self, painted: int) -> None:
        """The customer pressed stop: no delta follows, the upstream request closes, the text painted is kept."""
        if self._cut is None and not self._closing:
            self._painted = painted
        self._end_early(TurnEnd.STOPPED)

    def painted(self, handle: int, ms: float) -> bool:
        """The client shows the first text of this turn; false when the handle is another's."""
        if handle != self.opened.fence:
            return False
        if self.job.waterfall.paint(ms):
            instruments.painted_seconds.observe((self.job.waterfall.painted_ms or 0.0) / 1000)
        return True

    def take_over(self) -> None:
        """A human owns the conversation now."""
        self._end_early(TurnEnd.TAKEN_OVER)

    def supersede(self) -> None:
        """A newer turn has the fence: this one leaves nothing."""
        self._end_early(TurnEnd.SUPERSEDED)

    def abandon(self) -> None:
        """The process goes down: the turn stays live, for another process to adopt with what is buffered."""
        self._end_early(TurnEnd.INTERRUPTED)

    def overdue(self) -> bool:
        """Whether something hangs that should have ended by itself."""
        return time.monotonic() > self._stage_ends + 5 * CANCEL_AGAIN_S

    def give_up(self) -> None:
        """The supervisor lets go of a turn that hangs: its fence makes whatever still runs of it harmless."""
        self._fanout.end(TurnEnd.INTERRUPTED)

    def _end_early(self, end: TurnEnd) -> None:
        if self._cut is not None:
            return
        if self._closing:
            self._cut_next = self._cut_next or end
            return
        self._cut = end
        kept = utf16_length(self._kept_text())
        self._fanout.end(end, 0 if end is TurnEnd.SUPERSEDED else kept)
        if self._thinking is not None:
            self._thinking.cancel()

    async def run(self) -> None:
        """Ends with the turn's text stored, or with the turn left live for whoever adopts it. Never raises."""
        instruments.turns_live.inc()
        try:
            while await self._attempt():
                self._fanout = self._new_fanout()
        except Exception:
            # The turn's outer boundary: it is still live in the database, and the sweep takes it up.
            logger.exception("turn %s broke off", self.opened.turn)
            self._fanout.end(TurnEnd.INTERRUPTED)
        finally:
            instruments.turns_live.dec()

    async def _attempt(self) -> bool:
        """One part. True when another part must be tried."""
        await self._stream()
        self._closing = True
        self._begin_stage(self._limits.store_s)
        if self._cut is None and self._failed is not None and self._fanout.sent_text:
            return await self._next_part()
        await self._store()
        return False

    async def _stream(self) -> None:
        if self._cut is not None:
            return
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._fanout.start())
            tasks.create_task(self._fanout.tick())
            self._thinking = tasks.create_task(self._think())
            await self._thought(self._thinking)
            self._fanout.settle()
        await self._fanout.finish()

    async def _thought(self, thinking: asyncio.Task[None]) -> None:
        """Waits for the model. When the turn is cut or late, it is cancelled until it has ended."""
        while not thinking.done():
            if self._cut is None and self._failed is None and time.monotonic() >= self._stage_ends:
                logger.error("turn %s was still running at its deadline", self.opened.turn)
                self._failed = Failed(DEADLINE)
            if self._cut is not None or self._failed is not None:
                thinking.cancel()
            await asyncio.wait([thinking], timeout=CANCEL_AGAIN_S)

    def _begin_stage(self, seconds: float) -> None:
        self._stage_ends = time.monotonic() + seconds

    async def _think(self) -> None:
        runtime, job, waterfall = self._runtime, self.job, self.job.waterfall
        try:
            with waterfall.stage("context"):
                async with asyncio.timeout(self._limits.history_s):
                    context = self._context = await runtime.contexts.of(job.conversation, self.opened.place)
                    capped = await spent(job.site)
            self._answers = runtime.answers.turn(job.site, job.question, job.locale, job.retrieval)
            ports = engine.Ports(
                model=SiteModel(runtime, job, capped=capped),
                facts=CustomerFacts(runtime.facts, job.asker),
                retrieval=job.retrieval,
                rules=runtime.rules.current(job.site.id),
                answers=self._answers,
            )
            await engine.run(job.turn_input(context), ports, self._emit, waterfall)
        except Exception as error:
            # The turn's boundary: whatever broke, the customer gets an honest sentence and the log the trace.
            logger.exception("turn %s failed", self.opened.turn)
            self._failed = Failed(type(error).__name__)

    async def _emit(self, event: TurnEvent) -> None:
        match event:
            case Acting():
                self._fanout.act(event.activity, event.subject)
            case Delta():
                await self._say(event.text)
            case HandoffRequested():
                self._handoff = c.Handoff(reason=event.reason, team=self.job.site.team_id(event.team))
            case Finished():
                self._finished = event
                if self._context is not None and event.endpoint:
                    self._context.endpoint = event.endpoint
            case Failed():
                self._failed = event

    async def _say(self, text: str) -> None:
        waterfall = self.job.waterfall
        gap_s = waterfall.token()
        if gap_s is not None:
            instruments.inter_token_seconds.observe(gap_s)
            await self._fanout.say(text)
            return
        with waterfall.stage("first_frame"):
            await self._fanout.say(text)
        if not waterfall.part_ms:  # what goes on from a part that broke off is not the first
            instruments.ttft_seconds.observe(waterfall.elapsed_ms() / 1000)

    async def _next_part(self) -> bool:
        """The model broke off: what was said stays as it is, and a new part tries again, or else a newer turn."""
        late = self._failed is not None and self._failed.error == DEADLINE
        waits = await self._newer_question_waits()
        try:
            adopted = await self._stored(
                c.AdoptTurn(
                    conversation=self.job.conversation,
                    turn=self.opened.turn,
                    fence=self.opened.fence,
                    text=self._fanout.sent_text,
                    name=self.job.site.assistant_name,
                    process=self._runtime.process,
                    retry=self.opened.part < MAX_PARTS and not late and not waits,
                    at=datetime.now(UTC),
                    apology="" if waits else sentence(NO_MODEL, self.job.locale),
                )
            )
        except c.Refusal:
            self.left_live = False
            self._fanout.end(TurnEnd.SUPERSEDED, 0)
            return False
        self._fanout.end(TurnEnd.INTERRUPTED)
        self._record(TurnEnd.INTERRUPTED)
        if adopted is None or adopted.opened is None:
            self.left_live = adopted is None
            return False
        self.opened = adopted.opened
        self._failed, self._finished, self._closing = None, None, False
        self.job.waterfall.next_part()
        self._cut, self._cut_next = self._cut_next, None
        self._begin_stage(self._limits.part_s)
        return True

    async def _newer_question_waits(self) -> bool:
        """Whether another was asked since: it has a turn of its own, which answers what this one has left open."""
        try:
            question = await in_database(open_question, self.job.conversation)
        except DatabaseError:
            return False  # one that no turn has taken up is found once this one has ended
        return question is not None and question.place > self.opened.question

    async def _store(self) -> None:
        end = self._cut or (TurnEnd.FAILED if self._failed else TurnEnd.FINISHED)
        if end not in (TurnEnd.SUPERSEDED, TurnEnd.INTERRUPTED):
            end = await self._finish(end)
        self._fanout.end(end)
        if end is TurnEnd.INTERRUPTED:
            return  # still live: whoever adopts it needs the buffer
        self.left_live = False
        if end is TurnEnd.FINISHED and self._answers is not None and self._finished is not None:
            first_token_s = self.job.waterfall.bar("first_token").ms / 1000
            self._answers.finished(self._finished, self._fanout.sent_text, first_token_s)
        self.answered = end is TurnEnd.FINISHED
        await self._runtime.buffer.end(self.job.conversation, self.opened.fence)
        self._record(end)

    async def _finish(self, end: TurnEnd) -> TurnEnd:
        text = self._kept_text()
        if end is TurnEnd.FAILED:
            text = sentence(NO_MODEL, self.job.locale)
        try:
            stored = await self._stored(
                c.FinishTurn(
                    conversation=self.job.conversation,
                    turn=self.opened.turn,
                    fence=self.opened.fence,
                    part=self.opened.part,
                    text=text,
                    state=_STATE[end],
                    name=self.job.site.assistant_name,
                    at=datetime.now(UTC),
                    sources=self._finished.sources if self._finished else (),
                    handoff=self._handoff,
                )
            )
        except c.Refusal:
            return TurnEnd.SUPERSEDED
        if stored is None:
            return TurnEnd.INTERRUPTED
        self.undisturbed = bool(stored.events) and stored.events[0].seq == self.job.opened_seq + 1
        if stored.message is not None and stored.message.state is MessageState.TAKEN_OVER:
            return TurnEnd.TAKEN_OVER
        return end

    async def _stored(self, command: c.FinishTurn | c.AdoptTurn) -> c.Appended | None:
        """Asks until the database has taken it, since both commands may be repeated; None after the limit."""
        while True:
            try:
                return await self._runtime.log.append(command)
            except c.LogUnavailable:
                if time.monotonic() >= self._stage_ends:
                    logger.exception("the end of turn %s could not be stored", self.opened.turn)
                    return None
            await asyncio.sleep(self._limits.store_again_s)

    def _kept_text(self) -> str:
        text = self._fanout.sent_text
        return text if self._painted is None else utf16_prefix(text, self._painted)

    def _record(self, end: TurnEnd) -> None:
        instruments.turns.labels(end.value).inc()
        keep_record(self._runtime, Record(self.job, self.opened, end, self._finished))

    def _new_fanout(self) -> Fanout:
        return Fanout(
            self._runtime.switchboard,
            self._runtime.buffer,
            conversation=self.job.conversation,
            opened=self.opened,
            owner_version=self.job.owner_version,
            reactions=Reactions(lost=self.supersede, taken_over=self.take_over, stopped=self.stop),
        )
