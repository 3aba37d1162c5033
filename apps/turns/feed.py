"""Tells agents how a row of their inbox stands, and waiting customers how they stand in the queue."""

from __future__ import annotations

import asyncio
import logging
from itertools import islice

from django.db import DatabaseError

from apps.accounts.resident import SiteResident
from apps.conversations import selectors
from apps.inbox.presence import Presence
from apps.inbox.reach import agent_views, reach
from apps.stores.database import in_database
from apps.turns.between.switchboard import Switchboard
from apps.wire.protocol import OwnerKind
from apps.wire.publish import Audience
from apps.wire.server_frames import InboxChanged, PresenceChanged, Queue

logger = logging.getLogger(__name__)

PRESENCE_INTERVAL_S = 5.0
QUEUE_INTERVAL_S = 2.0
# Changes of so long are read together. An agent sees a row that much later, and no token waits for it.
COALESCE_S = 0.05
ROWS_AT_ONCE = 100


class Feed:
    """Coalesces: conversations that changed within a moment are read together, each once."""

    def __init__(self, switchboard: Switchboard, presence: Presence, sites: SiteResident) -> None:
        self._switchboard = switchboard
        self._presence = presence
        self._sites = sites
        self._changed: dict[str, None] = {}
        self._wake = asyncio.Event()

    def changed(self, conversation: str) -> None:
        """The row is read and told soon. Never waits."""
        self._changed[conversation] = None
        self._wake.set()

    async def run(self) -> None:
        """Publishes rows for ever. A row that cannot be read now shows with the conversation's next event."""
        while True:
            await self._wake.wait()
            await asyncio.sleep(COALESCE_S)
            self._wake.clear()
            while self._changed:
                some = tuple(islice(self._changed, ROWS_AT_ONCE))
                for conversation in some:
                    del self._changed[conversation]
                try:
                    for snapshot in await in_database(selectors.several, some):
                        await self._publish(snapshot)
                except DatabaseError:
                    logger.exception("the inbox rows of %d conversations could not be read", len(some))

    async def watch_presence(self) -> None:
        """Tells the agents of this process who is there, whenever that has changed."""
        shown: dict[str, frozenset[str]] = {}
        while True:
            await asyncio.sleep(PRESENCE_INTERVAL_S)
            for workspace in self._switchboard.listening(Audience.INBOX):
                online = await self._presence.online(workspace)
                if shown.get(workspace) == online:
                    continue
                try:
                    await self.show_presence(workspace, online)
                except DatabaseError:
                    logger.exception("the agents of %s could not be read", workspace)
                    continue
                shown[workspace] = online

    async def show_presence(self, workspace: str, online: frozenset[str]) -> None:
        """To the sockets of this process; each process watches for itself. Two queries."""
        agents = await in_database(agent_views, workspace, online)
        self._switchboard.send(Audience.INBOX, workspace, PresenceChanged(agents=agents), abroad=False)

    async def watch_queue(self) -> None:
        """Tells the waiting customers of this process their place and whether a person is there, when that changes."""
        told: dict[str, Queue] = {}
        while True:
            await asyncio.sleep(QUEUE_INTERVAL_S)
            if not self._switchboard.listening(Audience.CUSTOMERS):
                continue
            try:
                standing = await self._queue()
            except DatabaseError:
                logger.exception("the queue could not be read")
                continue
            for conversation, frame in standing.items():
                if told.get(conversation) != frame:
                    self._switchboard.send(Audience.CUSTOMERS, conversation, frame, abroad=False)
            told = standing

    async def _queue(self) -> dict[str, Queue]:
        """How those who wait at this process stand."""
        waiting = [
            one
            for one in await in_database(selectors.queue)
            if self._switchboard.has(Audience.CUSTOMERS, one.conversation)
        ]
        online = {
            workspace: await self._presence.online(workspace)
            for workspace in {one.workspace for one in waiting}
        }
        return {
            one.conversation: Queue(
                conversation=one.conversation,
                position=one.position,
                availability=reach(site, online[one.workspace]),
            )
            for one in waiting
            if (site := self._sites.current(one.site)) is not None
        }

    async def _publish(self, snapshot: selectors.Snapshot) -> None:
        self._switchboard.send(Audience.INBOX, snapshot.workspace, InboxChanged(row=snapshot.row))
        site = self._sites.current(snapshot.site)
        if snapshot.owner.kind is OwnerKind.QUEUE and snapshot.waiting_since is not None and site is not None:
            position = await in_database(selectors.queue_position, snapshot)
            online = await self._presence.online(snapshot.workspace)
            frame = Queue(conversation=snapshot.id, position=position, availability=reach(site, online))
            self._switchboard.send(Audience.CUSTOMERS, snapshot.id, frame)
