"""Carries frames to sockets: directly to those of this process, over the channel layer to the others.

Publish/subscribe may drop. Nothing durable depends on it: receivers see a hole and fetch.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from enum import StrEnum
from typing import Any

from channels.layers import get_channel_layer

from apps.stores.ids import new_id
from apps.stores.redis import Unreachable, layer_connections
from apps.telemetry import instruments
from apps.turns.between.announcements import PROCESSES, Announcement, NewsLost, Told, from_message, to_message
from apps.turns.between.publisher import PUBLISH_DEADLINE_S, Publisher
from apps.wire.publish import CONVERSATION, Audience, Encoded, Outgoing, Relayed, Sink, group_name
from apps.wire.server_frames import InboxChanged, ServerFrame

logger = logging.getLogger(__name__)

CONFIRM_DEADLINE_S = 0.25
PROBE_DEADLINE_S = 1.0
PROBE_INTERVAL_S = 2.0
# A round of probing that fails in every part takes half of this.
STALE_S = 12.0
# One after the other, a thousand would take minutes at a slow Redis.
SUBSCRIBED_AT_ONCE = 50


class Hearing(StrEnum):
    """Whether what this process publishes comes back to it, as it comes to the other processes."""

    HEARS = "hears"
    DEAF = "deaf"  # Redis takes what is published, and nothing comes back
    CUT_OFF = "cut off"  # Redis takes nothing


Key = tuple[Audience, str]
Numbered = tuple[str, int]  # a conversation, and how far a row brings those who hear of it


class Switchboard:
    """The sockets of this process by what they listen to, and the process's one channel to the others."""

    def __init__(self, process: str) -> None:
        self.process = process
        self._sinks: dict[Key, set[Sink]] = defaultdict(set)
        self._wanted: dict[str, set[Key]] = defaultdict(set)  # group -> those of its keys that have sinks
        self._subscribed: set[str] = set()  # groups
        self._layer: Any = get_channel_layer()
        self._channel = ""
        self._patience: asyncio.Timeout | None = None  # with the channel, while something is received over it
        # Set once Redis has answered: a join before that is heard abroad only when it heals.
        self.opened = asyncio.Event()
        self._confirmations: dict[str, asyncio.Event] = {}
        self._publisher = Publisher(self._layer, process)
        self._probed, self._probed_at = Hearing.CUT_OFF, time.monotonic()
        self._on_announcement: Callable[[Announcement], None] = lambda _: None
        # Set after anything that other processes said may not have arrived, and for as long as nothing does.
        self.missed = asyncio.Event()
        # How far sockets here were brought with each conversation's row in the inbox. Whoever reads it prunes it.
        self.rows_heard: dict[str, int] = {}

    def on_announcement(self, listener: Callable[[Announcement], None]) -> None:
        """Takes the one listener for what other processes announce. Called on the loop; must not wait."""
        self._on_announcement = listener

    def tasks(self) -> Iterable[tuple[str, Callable[[], Coroutine[Any, Any, None]]]]:
        """What the owner must run for as long as the process lives."""
        return (("receive", self._receive), ("publish", self._publisher.run), ("heal", self._heal))

    async def join(self, audience: Audience, key: str, sink: Sink) -> None:
        """From the return on, the sink hears every frame of this audience, those of other processes as well.

        Without Redis only this process's frames arrive until the subscription heals.
        """
        group = group_name(audience, key)
        self._sinks[audience, key].add(sink)
        self._wanted[group].add((audience, key))
        instruments.audiences.set(len(self._sinks))
        if group not in self._subscribed:
            await self._subscribe(group)

    async def leave(self, audience: Audience, key: str, sink: Sink) -> None:
        """The last sink to leave ends the subscription."""
        sinks = self._sinks.get((audience, key), set())
        sinks.discard(sink)
        if sinks:
            return
        self._sinks.pop((audience, key), None)
        instruments.audiences.set(len(self._sinks))
        group = group_name(audience, key)
        self._wanted[group].discard((audience, key))
        if self._wanted[group]:
            return
        del self._wanted[group]
        await self._unsubscribe(group)

    def listening(self, audience: Audience) -> list[str]:
        """The keys that sockets of this process listen to."""
        return [key for (kind, key), sinks in self._sinks.items() if kind is audience and sinks]

    def has(self, audience: Audience, key: str) -> bool:
        """Whether a socket of this process listens."""
        return bool(self._sinks.get((audience, key)))

    @property
    def hearing(self) -> Hearing:
        """As the last probe found it, a few seconds ago; deaf where none has ended for long."""
        if time.monotonic() - self._probed_at > STALE_S:
            return Hearing.DEAF
        return self._probed

    def send(self, audience: Audience, key: str, frame: ServerFrame, *, abroad: bool = True) -> None:
        """To this process's sockets now; to other processes soon, unless `abroad` is false. Drops when swamped."""
        self._send((audience,), key, frame, abroad=abroad)

    def send_all(self, conversation: str, frame: ServerFrame, *, abroad: bool = True) -> None:
        """To customers and watchers alike: encoded once, published once."""
        self._send(CONVERSATION, conversation, frame, abroad=abroad)

    def relay(self, audience: Audience, key: str, frame: Encoded) -> None:
        """To other processes alone, soon. Drops when swamped."""
        self._publisher.put(group_name(audience, key), _message((audience,), key, frame, None))

    def _send(self, audiences: Sequence[Audience], key: str, frame: ServerFrame, *, abroad: bool) -> None:
        outgoing = Outgoing(frame)
        numbered = _numbered(frame)
        for audience in audiences:
            self._deliver((audience, key), outgoing, numbered)
        if abroad:
            self._publisher.put(group_name(audiences[0], key), _message(audiences, key, outgoing, numbered))

    def announce(self, announcement: Told) -> None:
        """Tells every other process. May be lost: each listener has a slower way to learn the same."""
        self._publisher.put(PROCESSES, to_message(announcement, self.process))

    def _deliver(self, key: Key, frame: Encoded, numbered: Numbered | None) -> None:
        sinks = tuple(self._sinks.get(key, ()))
        for sink in sinks:
            sink.deliver(frame)
        if sinks and numbered is not None:
            conversation, seq = numbered
            self.rows_heard[conversation] = max(seq, self.rows_heard.get(conversation, 0))

    async def _receive(self) -> None:
        """Ends when the channel was given up; its owner begins again, with another one."""
        await self._open_channel()
        with suppress(TimeoutError):
            # Without a time: a cancelled receive drops the channel for good, which `_give_up` means to.
            async with asyncio.timeout(None) as self._patience:
                while True:
                    self._heard(await self._layer.receive(self._channel))

    def _heard(self, message: dict[str, Any]) -> None:
        own = message.get("origin") == self.process
        for one in message["messages"] if message["type"] == "several" else (message,):
            if own and one["type"] != "confirm":
                continue
            try:
                self._dispatch(one)
            except Exception:
                # Other processes may be newer: what they say must not make this one deaf.
                logger.exception("a message between processes could not be read")

    async def _open_channel(self) -> None:
        while True:
            try:
                async with asyncio.timeout(PROBE_DEADLINE_S):
                    channel = await self._layer.new_channel()
                    await self._layer.group_add(PROCESSES, channel)
            except Unreachable:
                instruments.redis_failures.labels("subscribe").inc()
                await self._flush()
                await asyncio.sleep(PROBE_INTERVAL_S)
            else:
                self._channel = channel
                self.opened.set()
                self._subscribed.clear()
                return

    async def begin_anew(self) -> None:
        """Leaves all connections to Redis for new ones; what was said elsewhere meanwhile is looked for."""
        if self._channel:
            await self._give_up()
        self.missed.set()

    async def _give_up(self) -> None:
        """A connection that has died without a word keeps its subscriptions for ever, and one that Redis has never
        answered is waited for as long: all of them are left, and the channel with them.
        """
        self._channel = ""
        await self._flush()
        if self._patience is not None:
            self._patience.reschedule(asyncio.get_running_loop().time())
            self._patience = None

    async def _flush(self) -> None:
        try:
            async with asyncio.timeout(PROBE_DEADLINE_S):
                await self._layer.flush()
        except Unreachable:
            instruments.redis_failures.labels("flush").inc()

    def _dispatch(self, message: dict[str, Any]) -> None:
        match message["type"]:
            case "frame":
                frame, numbered = Relayed(message["text"], message["binary"]), message.get("numbered")
                for audience in message["audiences"]:
                    self._deliver((Audience(audience), message["key"]), frame, numbered)
            case "announcement":
                self._announced(from_message(message))
            case "confirm":
                if event := self._confirmations.get(message["nonce"]):
                    event.set()
            case unknown:
                # A newer process may speak of things this one does not know.
                logger.warning("unknown message between processes: %s", unknown)

    def _announced(self, announcement: Told) -> None:
        if isinstance(announcement, NewsLost):
            self.missed.set()
        else:
            self._on_announcement(announcement)

    async def _heal(self) -> None:
        """Looks every 2 s whether this process still hears what it should, and says when it may not have."""
        made = layer_connections.made
        with suppress(TimeoutError):  # it is opened once Redis answers
            async with asyncio.timeout(PROBE_INTERVAL_S):
                await self.opened.wait()
        was = Hearing.HEARS  # at the start there is nothing to tell unless it does not
        while True:
            before, made = made, layer_connections.made
            now = await self._probe()
            if now is not was:
                logger.warning("between processes: %s, was %s", now, was)
                was = now
            self._probed, self._probed_at = now, time.monotonic()
            instruments.hears_processes.set(now is Hearing.HEARS)
            late = now is Hearing.HEARS and await self._subscribe_again()
            if now is not Hearing.HEARS or made != before or late:
                self.missed.set()
            await asyncio.sleep(PROBE_INTERVAL_S)

    async def _probe(self) -> Hearing:
        """Whether what is said to all processes comes back, the way frames go. Subscribes anew where it does not."""
        if not self._channel:
            return Hearing.CUT_OFF
        if await self._comes_back():
            return Hearing.HEARS
        instruments.probes_lost.inc()
        self.missed.set()
        self._subscribed.clear()
        await self._discard(PROCESSES)
        if await self._joined(PROCESSES, PROBE_DEADLINE_S):
            return Hearing.HEARS
        if not self._channel or not await self._may_publish():
            return Hearing.CUT_OFF
        await self._give_up()
        return Hearing.DEAF

    async def _comes_back(self) -> bool:
        nonce = new_id()
        confirmed = self._confirmations[nonce] = asyncio.Event()
        self._publisher.put(PROCESSES, {"type": "confirm", "nonce": nonce})
        try:
            async with asyncio.timeout(PROBE_DEADLINE_S):
                await confirmed.wait()
        except TimeoutError:
            return False
        finally:
            del self._confirmations[nonce]
        return True

    async def _may_publish(self) -> bool:
        """Whether Redis takes a message at all; nobody waits for this one."""
        try:
            async with asyncio.timeout(PUBLISH_DEADLINE_S):
                await self._layer.group_send(
                    PROCESSES, {"type": "confirm", "nonce": "", "origin": self.process}
                )
        except Unreachable:
            return False
        return True

    async def _subscribe_again(self) -> bool:
        """Whether something was wanted and not listened to. What is lost already is looked for at once; the caller has
        it looked for again, for what was said until the last subscription stood.
        """
        missing = [group for group in self._wanted if group not in self._subscribed]
        if missing:
            self.missed.set()
        for start in range(0, len(missing), SUBSCRIBED_AT_ONCE):
            some = missing[start : start + SUBSCRIBED_AT_ONCE]
            await asyncio.gather(*map(self._subscribe_anew, some))
        return bool(missing)

    async def _subscribe_anew(self, group: str) -> None:
        await self._subscribe(group)
        if group not in self._subscribed:
            # The layer may believe in a subscription that was cut while it was being ended.
            await self._discard(group)
            await self._subscribe(group)

    async def _subscribe(self, group: str) -> None:
        if await self._joined(group, CONFIRM_DEADLINE_S):
            self._subscribed.add(group)
        if group not in self._wanted:
            await self._unsubscribe(group)  # whoever wanted it has left meanwhile

    async def _joined(self, group: str, deadline_s: float) -> bool:
        """The layer returns before Redis has subscribed; hearing ourselves proves it."""
        if not self._channel:
            return False  # left, or not yet opened: healing subscribes later
        nonce = new_id()
        confirmed = self._confirmations[nonce] = asyncio.Event()
        try:
            async with asyncio.timeout(deadline_s):
                await self._layer.group_add(group, self._channel)
                await self._layer.group_send(
                    group, {"type": "confirm", "nonce": nonce, "origin": self.process}
                )
                await confirmed.wait()
        except Unreachable:
            instruments.redis_failures.labels("subscribe").inc()
            return False
        finally:
            del self._confirmations[nonce]
        return True

    async def _unsubscribe(self, group: str) -> None:
        self._subscribed.discard(group)
        await self._discard(group)

    async def _discard(self, group: str) -> None:
        if not self._channel:
            return
        try:
            async with asyncio.timeout(PUBLISH_DEADLINE_S):
                await self._layer.group_discard(group, self._channel)
        except Unreachable:
            instruments.redis_failures.labels("unsubscribe").inc()


def _numbered(frame: ServerFrame) -> Numbered | None:
    return (frame.row.conversation, frame.row.seq) if isinstance(frame, InboxChanged) else None


def _message(
    audiences: Sequence[Audience], key: str, frame: Encoded, numbered: Numbered | None
) -> dict[str, Any]:
    return {
        "type": "frame",
        "audiences": [audience.value for audience in audiences],
        "key": key,
        "text": frame.text,
        "binary": frame.binary,
        "numbered": numbered,
    }
