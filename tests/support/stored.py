"""What the database holds of a conversation, for tests that start processes."""

from __future__ import annotations

import asyncio

from apps.conversations.models import Conversation, Event, Message
from tests.support.processes import wait_for


async def stored(conversation: str) -> list[tuple[int, str, str, str]]:
    """(place, author, state, text) of every message."""

    def read() -> list[tuple[int, str, str, str]]:
        rows = Message.objects.filter(conversation_id=conversation).order_by("place")
        return list(rows.values_list("place", "author", "state", "text"))

    return await asyncio.to_thread(read)


async def assert_whole(conversation: str) -> None:
    """No hole, no double, and soon nothing live: the end of a turn is told before it is stored."""
    live = Conversation.objects.filter(pk=conversation).exclude(turn="")
    await asyncio.to_thread(wait_for, lambda: not live.exists())
    row = await asyncio.to_thread(Conversation.objects.get, pk=conversation)
    events = await asyncio.to_thread(
        lambda: list(Event.objects.filter(conversation=row).order_by("seq").values_list("seq", flat=True))
    )
    assert events == list(range(1, row.last_seq + 1))
