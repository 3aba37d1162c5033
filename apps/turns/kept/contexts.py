"""The contexts of the conversations this process answers: resident, fed by its own commits, rebuilt when in doubt."""

from __future__ import annotations

import asyncio
import logging
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from django.db import DatabaseError

from apps.conversations import selectors
from apps.conversations.commands import Appended
from apps.engine.context import Context, Marks, window_turns
from apps.engine.digest.lines import utf8_size
from apps.engine.types import Speaker
from apps.stores.database import in_database
from apps.telemetry import instruments
from apps.turns.kept.context_copies import ContextCopies, written
from apps.turns.spawn import Spawn
from apps.wire.protocol import MessageState, OwnerKind
from apps.wire.server_frames import Event

LIFETIME_S = 600.0
# A conversation of 200 turns takes about 150 KB here.
CAPACITY_BYTES = 64 * 1024 * 1024
# So far above the high mark that not even one prompt may be so long: a conversation read anew waits for its digest.
PROMPT_MARKS = 2
# More contexts than that do not wait to be copied; their next turn elsewhere reads the log.
COPIES_WAITING = 1_000
SIZED_EVERY_S = 600.0
# A conversation that was quiet for so long counts as whole.
QUIET_FOR = timedelta(hours=1)

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Resident:
    context: Context
    epoch: str
    owner: OwnerKind  # as this process last heard
    used_at: float
    size: int


class Contexts:
    """Bounded by bytes; what is pushed out is read back from the database by the next turn.

    A context above the high mark is shortened after the turn, in a thread, while the old one still serves. With
    `copies` other processes continue where this one stopped, with the same prefix.
    """

    def __init__(self, spawn: Spawn, marks: Marks | None = None, copies: ContextCopies | None = None) -> None:
        self._spawn = spawn
        self._marks = marks or Marks()
        self._copies = copies
        self._changed: dict[str, bool] = {}  # contexts being copied, and whether they changed meanwhile
        self._resident: dict[str, _Resident] = {}
        self._bytes = 0
        self._shortening: set[str] = set()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="digest")

    async def of(self, conversation: str, upto: int) -> Context:
        """The conversation's context with every event up to `upto`. No query while this process made them all."""
        found = self._resident.get(conversation)
        if found is not None and found.context.seq >= upto:
            instruments.contexts.labels("resident").inc()
            found.used_at = time.monotonic()
            return found.context
        context, since = await self._newest_known(conversation, found)
        if context.tokens > PROMPT_MARKS * self._marks.high_tokens:
            await self._shorten(context)
        self._keep(conversation, context, since.epoch, since.owner)
        self._watch(conversation, context)
        return context

    def awaiting(self, conversation: str) -> Context | None:
        """The resident context, if the next message would be the assistant's, as far as this process knows."""
        found = self._resident.get(conversation)
        if found is None or found.owner is not OwnerKind.ASSISTANT or not found.context.awaits_customer:
            return None
        return found.context

    def owner_moved(self, conversation: str) -> None:
        """Another process has given it to a person."""
        found = self._resident.get(conversation)
        if found is not None:
            found.owner = OwnerKind.AGENT

    def committed(self, appended: Appended) -> None:
        """Takes up the events of a commit of this process. After a gap the next turn reads what is missing."""
        found = self._resident.get(appended.standing.conversation)
        if found is None or not appended.events or appended.events[0].seq != found.context.seq + 1:
            return
        for event in appended.events:
            _apply(found.context, event)
        self._keep(appended.standing.conversation, found.context, found.epoch, appended.standing.owner.kind)
        self._watch(appended.standing.conversation, found.context)
        if any(event.message is not None and event.message.turn for event in appended.events):
            self._share(appended.standing.conversation)

    def close(self) -> None:
        """Drops the digests that have not begun."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _newest_known(
        self, conversation: str, found: _Resident | None
    ) -> tuple[Context, selectors.SaidSince]:
        """The context with all that the log has, from what is here or in Redis, whichever knows more."""
        context = found.context if found is not None else Context()
        copy = await self._copies.get(conversation) if self._copies else None
        if copy is not None and copy.context.seq > context.seq:
            since = await in_database(selectors.said_after, conversation, copy.context.seq)
            if since.epoch == copy.epoch and since.newest >= copy.context.seq:
                instruments.contexts.labels("copied").inc()
                return _take_up(copy.context, since), since
            instruments.context_copies.labels("stale").inc()
        since = await in_database(selectors.said_after, conversation, context.seq)
        instruments.contexts.labels("read").inc()
        return _take_up(context, since), since

    def _share(self, conversation: str) -> None:
        """Has the context copied to Redis, beside everything else; of many changes the last."""
        if self._copies is None:
            return
        if conversation in self._changed:
            self._changed[conversation] = True
        elif len(self._changed) >= COPIES_WAITING:
            instruments.dropped.labels("context copies").inc()
        else:
            self._changed[conversation] = True
            self._spawn(self._copy(conversation, self._copies), "context copy")

    async def _copy(self, conversation: str, copies: ContextCopies) -> None:
        try:
            while self._changed[conversation] and (found := self._resident.get(conversation)) is not None:
                self._changed[conversation] = False
                await copies.put(conversation, written(found.epoch, found.context))
        finally:
            del self._changed[conversation]

    def _keep(self, conversation: str, context: Context, epoch: str, owner: OwnerKind) -> None:
        self._drop(conversation)
        size = 200 + 2 * utf8_size(context.earlier) + sum(2 * len(said.text) + 300 for said in context.said)
        self._resident[conversation] = _Resident(context, epoch, owner, time.monotonic(), size)
        self._bytes += size
        if self._bytes > CAPACITY_BYTES:
            self._evict(but=conversation)

    def _watch(self, conversation: str, context: Context) -> None:
        """Has a context that has grown above the high mark shortened, beside everything else."""
        if context.tokens > self._marks.high_tokens and conversation not in self._shortening:
            self._shortening.add(conversation)
            self._spawn(self._shorten_beside(conversation, context), "digest")

    async def _shorten_beside(self, conversation: str, context: Context) -> None:
        try:
            await self._shorten(context)
        finally:
            self._shortening.discard(conversation)
        found = self._resident.get(conversation)
        if found is not None and found.context is context:
            self._keep(conversation, context, found.epoch, found.owner)
            self._share(conversation)

    async def _shorten(self, context: Context) -> None:
        outgrown = context.outgrown(self._marks)
        if outgrown is None:
            return
        started, before = time.perf_counter(), context.tokens
        kept = await asyncio.get_running_loop().run_in_executor(self._thread, outgrown.shortened)
        done = context.shorten(outgrown, kept)
        instruments.context_digests.labels("shortened" if done else "overtaken").inc()
        instruments.context_digest_seconds.observe(time.perf_counter() - started)
        if done:
            instruments.context_digest_tokens.labels("before").inc(before)
            instruments.context_digest_tokens.labels("after").inc(context.tokens)

    def _evict(self, but: str) -> None:
        """Lets go first what is small, cheap to rebuild and long unused: size x cost to rebuild / age."""
        now = time.monotonic()

        def weight(conversation: str) -> float:
            one = self._resident[conversation]
            return one.size * (1 + len(one.context.said)) / (now - one.used_at + 1)

        for conversation in sorted(self._resident.keys() - {but}, key=weight):
            if self._bytes <= CAPACITY_BYTES * 0.9:
                return
            self._drop(conversation)

    async def keep_sized(self) -> None:
        """Sets from live data how many turns stay as they were said, for ever."""
        while True:
            if self._marks.sized:
                await self._size()
            instruments.context_window_turns.set(self._marks.window_turns)
            await asyncio.sleep(SIZED_EVERY_S)

    async def _size(self) -> None:
        try:
            average = await in_database(selectors.average_turns, datetime.now(UTC) - QUIET_FOR)
        except DatabaseError:
            logger.exception("the average of turns could not be read")
            return
        if average is not None:
            self._marks = replace(self._marks, window_turns=window_turns(average))

    def expire(self) -> None:
        """Forgets what was not used for ten minutes."""
        now = time.monotonic()
        for conversation in [c for c, one in self._resident.items() if now - one.used_at > LIFETIME_S]:
            self._drop(conversation)
        instruments.context_bytes.set(self._bytes)

    def _drop(self, conversation: str) -> None:
        gone = self._resident.pop(conversation, None)
        if gone is not None:
            self._bytes -= gone.size


def _take_up(context: Context, since: selectors.SaidSince) -> Context:
    for utterance in since.utterances:
        _put(context, utterance.place, utterance.speaker, utterance.text)
    context.seq = max(context.seq, since.newest)
    return context


def _apply(context: Context, event: Event) -> None:
    context.seq = event.seq
    if (message := event.message) is None or message.state is MessageState.INTERRUPTED:
        return
    removed = message.state is MessageState.REMOVED
    _put(context, message.place, Speaker(message.author), "" if removed else message.text)


def _put(context: Context, place: int, speaker: Speaker, text: str) -> None:
    if text:
        context.add(place, speaker, text)
    else:
        context.remove(place)
