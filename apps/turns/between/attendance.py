"""Sockets coming to and leaving a conversation, in this process and as others see it."""

from __future__ import annotations

import asyncio
import time

from apps.turns.between.buffer import INTEREST_TTL_S, StreamBuffer
from apps.turns.between.switchboard import Switchboard
from apps.wire.publish import CONVERSATION, Audience, Sink

RENEW_INTERVAL_S = 20.0


class Attendance:
    """Joins a socket to a conversation twice: to the switchboard for frames, in Redis so that deltas are sent here."""

    def __init__(self, switchboard: Switchboard, buffer: StreamBuffer) -> None:
        self._switchboard = switchboard
        self._buffer = buffer

    async def join(self, audience: Audience, conversation: str, sink: Sink) -> None:
        """From the return on the sink hears the conversation, deltas of other processes included."""
        await asyncio.gather(
            self._switchboard.join(audience, conversation, sink),
            self._buffer.show_interest(conversation, audience.value, time.time() + INTEREST_TTL_S),
        )

    async def leave(self, audience: Audience, conversation: str, sink: Sink) -> None:
        """The last socket of this process to leave takes the interest in Redis along."""
        await self._switchboard.leave(audience, conversation, sink)
        if not self._switchboard.has(audience, conversation):
            await self._buffer.lose_interest(conversation, audience.value)

    async def renew(self) -> None:
        """Keeps the interest of this process's sockets alive, for ever."""
        while True:
            await asyncio.sleep(RENEW_INTERVAL_S)
            until = time.time() + INTEREST_TTL_S
            for audience in CONVERSATION:
                for conversation in self._switchboard.listening(audience):
                    await self._buffer.show_interest(conversation, audience.value, until)
