"""What a process does about frames that it may not have heard, over a channel layer in the test's hands."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from channels.layers import InMemoryChannelLayer, get_channel_layer

from apps.turns.between.switchboard import Switchboard
from apps.wire.publish import Audience, Encoded

DEADLINE_S = 20.0


class Layer(InMemoryChannelLayer):  # type: ignore[misc]  # channels has no types
    """Says when a group is joined, before it is."""

    on_join: Callable[[], None] = staticmethod(lambda: None)

    async def group_add(self, group: str, channel: str) -> None:
        self.on_join()
        await super().group_add(group, channel)


class Nobody:
    def deliver(self, frame: Encoded) -> None:
        raise AssertionError("nothing was said")


async def test_what_was_missed_is_looked_for_before_a_subscription_that_comes_late(settings: Any) -> None:
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": f"{__name__}.Layer"}}
    layer, switchboard = get_channel_layer(), Switchboard("here")
    services = [asyncio.create_task(service()) for _, service in switchboard.tasks()]
    looked: list[bool] = []
    again = asyncio.Event()

    def refuse() -> None:
        raise ConnectionError

    def note() -> None:
        looked.append(switchboard.missed.is_set())
        again.set()

    async with asyncio.timeout(DEADLINE_S):
        await switchboard.opened.wait()
        layer.on_join = refuse
        await switchboard.join(Audience.CUSTOMERS, "conversation", Nobody())
        assert not switchboard.missed.is_set()
        layer.on_join = note
        await again.wait()
    assert looked[0]
    for service in services:
        service.cancel()
    await asyncio.wait(services)
