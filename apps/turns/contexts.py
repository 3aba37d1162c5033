"""The contexts of the conversations this process answers: resident, fed by its own commits, rebuilt when in doubt."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from apps.conversations import selectors
from apps.conversations.commands import Appended
from apps.engine.context import Context
from apps.engine.types import Speaker
from apps.stores.database import in_database
from apps.telemetry import instruments
from apps.wire.protocol import Event, MessageState

LIFETIME_S = 600.0
# A conversation of 200 turns takes about 150 KB here.
CAPACITY_BYTES = 64 * 1024 * 1024
# Above the high mark the oldest messages go, down to the low one: one cold prefix an epoch, not one a turn.
HIGH_WATER_TOKENS = 12_000
LOW_WATER_TOKENS = 6_000


@dataclass(slots=True)
class _Resident:
    context: Context
    used_at: float
    size: int = field(default=0)


class Contexts:
    """Bounded by bytes; what is pushed out is read back from the database by the next turn."""

    def __init__(self) -> None:
        self._resident: dict[str, _Resident] = {}
        self._bytes = 0

    async def of(self, conversation: str, upto: int) -> Context:
        """The conversation's context with every event up to `upto`. No query while this process made them all."""
        found = self._resident.get(conversation)
        if found is not None and found.context.seq >= upto:
            instruments.contexts.labels("resident").inc()
            found.used_at = time.monotonic()
            return found.context
        instruments.contexts.labels("read").inc()
        context = found.context if found is not None else Context()
        newest, utterances = await in_database(selectors.said_after, conversation, context.seq)
        for utterance in utterances:
            _put(context, utterance.place, utterance.speaker, utterance.text)
        context.seq = max(context.seq, newest)
        self._keep(conversation, context)
        return context

    def committed(self, appended: Appended) -> None:
        """Takes up the events of a commit of this process. After a gap the next turn reads what is missing."""
        found = self._resident.get(appended.standing.conversation)
        if found is None or not appended.events or appended.events[0].seq != found.context.seq + 1:
            return
        for event in appended.events:
            _apply(found.context, event)
        self._keep(appended.standing.conversation, found.context)

    def _keep(self, conversation: str, context: Context) -> None:
        context.shrink(HIGH_WATER_TOKENS, LOW_WATER_TOKENS)
        self._drop(conversation)
        size = 200 + sum(2 * len(said.message.content) + 300 for said in context.said)
        self._resident[conversation] = _Resident(context, time.monotonic(), size)
        self._bytes += size
        if self._bytes > CAPACITY_BYTES:
            self._evict(but=conversation)

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
