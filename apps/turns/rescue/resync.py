"""Tells this process's sockets how things stand where news from other processes may have been missed.

A lost event is found by the next one's number. Where no next one comes, only this finds it: at once after a loss that
was noticed, and by a look at the numbers now and then after one that nobody noticed, such as what a process had
stored and not yet told when it was killed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from django.db import DatabaseError

from apps.conversations import selectors
from apps.stores.database import in_database
from apps.turns.between.switchboard import Switchboard
from apps.turns.supervisor import Supervisor
from apps.wire.publish import CONVERSATION, Audience
from apps.wire.server_frames import History, InboxChanged

logger = logging.getLogger(__name__)

AT_ONCE = 200
PAUSE_S = 1.0
LOOK_INTERVAL_S = 10.0


class Resync:
    """Runs as long as the process. Without Redis it is all that connects the processes, every few seconds."""

    def __init__(self, switchboard: Switchboard, supervisor: Supervisor) -> None:
        self._switchboard = switchboard
        self._supervisor = supervisor
        self._told: dict[str, tuple[int, str]] = {}  # conversation -> (last seq, live turn)

    async def run(self) -> None:
        """Tells whenever news may have been missed, for ever; at most once a second."""
        while True:
            lost = await self._loss_noticed()
            self._switchboard.missed.clear()
            try:
                await self._tell_conversations()
                await self._tell_inboxes(all_rows=lost)
            except DatabaseError:
                logger.exception("the sockets could not be told how things stand")
                if lost:
                    self._switchboard.missed.set()
            await asyncio.sleep(PAUSE_S)

    async def _loss_noticed(self) -> bool:
        try:
            async with asyncio.timeout(LOOK_INTERVAL_S):
                return await self._switchboard.missed.wait()
        except TimeoutError:
            return False

    async def _tell_conversations(self) -> None:
        """Those that stand otherwise than at the last look. One query for 200 of them while nothing changes.

        A lost end of a turn that kept no text leaves no hole in the numbers, so being told the newest is not enough.
        """
        listening = {key for audience in CONVERSATION for key in self._switchboard.listening(audience)}
        self._told = {key: told for key, told in self._told.items() if key in listening}
        for keys in _chunks(sorted(listening)):
            for conversation, stands in (await in_database(selectors.standings, keys)).items():
                if self._told.get(conversation) != stands:
                    await self._tell(conversation)
                    self._told[conversation] = stands

    async def _tell(self, conversation: str) -> None:
        """The newest event, whose number shows a hole, and the live turn, or that there is none."""
        try:
            snapshot, newest = await in_database(selectors.newest, conversation)
        except selectors.NotFound:
            return
        page = selectors.up_to_date(snapshot)
        history = History(page=page, after=page.after, live=await self._supervisor.live(snapshot))
        if newest is not None:
            self._switchboard.send_all(conversation, newest, abroad=False)
        self._switchboard.send_all(conversation, history, abroad=False)

    async def _tell_inboxes(self, *, all_rows: bool) -> None:
        """The rows that are newer than what was heard of them, or all."""
        heard = {} if all_rows else self._switchboard.rows_heard
        shown: set[str] = set()
        for workspace in self._switchboard.listening(Audience.INBOX):
            for row in await in_database(selectors.inbox, workspace):
                shown.add(row.conversation)
                if heard.get(row.conversation, 0) < row.seq:
                    self._switchboard.send(Audience.INBOX, workspace, InboxChanged(row=row), abroad=False)
        rows_heard = self._switchboard.rows_heard
        self._switchboard.rows_heard = {name: seq for name, seq in rows_heard.items() if name in shown}


def _chunks(keys: list[str]) -> Iterable[list[str]]:
    return (keys[at : at + AT_ONCE] for at in range(0, len(keys), AT_ONCE))
