"""Sockets coming to and leaving a conversation, in this process and as others see it."""

from __future__ import annotations

import asyncio
import time

from apps.turns.between.buffer import INTEREST_TTL_S, StreamBuffer
from apps.turns.between.switchboard import Switchboard
from apps.wire.publish import CONVERSATION, Audience, Sink

RENEW_INTERVAL_S = 20.0
LOOK_INTERVAL_S = 2.0


class Attendance:
    """Joins a socket to a conversation twice: to the switchboard for frames, in Redis so that deltas are sent here."""

    def __init__(self, switchboard: Switchboard, buffer: StreamBuffer) -> None:
        self._switchboard = switchboard
        self._buffer = buffer
        self._told = True  # whether Redis has taken all that it was told

    async def join(self, audience: Audience, conversation: str, sink: Sink) -> None:
        """From the return on the sink hears the conversation, deltas of other processes included."""
        _, told = await asyncio.gather(
            self._switchboard.join(audience, conversation, sink),
            self._buffer.show_interest(conversation, audience.value, time.time() + INTEREST_TTL_S),
        )
        self._told = self._told and told

    async def leave(self, audience: Audience, conversation: str, sink: Sink) -> None:
        """The last socket of this process to leave takes the interest in Redis along."""
        await self._switchboard.leave(audience, conversation, sink)
        if not self._switchboard.has(audience, conversation):
            await self._buffer.lose_interest(conversation, audience.value)

    async def renew(self) -> None:
        """Keeps the interest of this process's sockets alive, for ever; where Redis has lost it, within seconds."""
        renewed_at = -RENEW_INTERVAL_S
        while True:
            fresh = time.monotonic() - renewed_at < RENEW_INTERVAL_S
            if not (fresh and self._told and await self._buffer.finds_mark()):
                renewed_at = time.monotonic()
                await self._tell()
            await asyncio.sleep(LOOK_INTERVAL_S)

    async def _tell(self) -> None:
        self._told, until = True, time.time() + INTEREST_TTL_S
        for audience in CONVERSATION:
            for conversation in self._switchboard.listening(audience):
                if not await self._buffer.show_interest(conversation, audience.value, until):
                    self._told = False
                    return
        await self._buffer.leave_mark()
