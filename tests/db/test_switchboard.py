"""What a process does about frames that it may not have heard, over a channel layer in the test's hands."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from channels.layers import InMemoryChannelLayer, get_channel_layer

from apps.turns.between.switchboard import Hearing, Switchboard
from apps.wire.publish import Audience, Encoded

DEADLINE_S = 20.0


class Layer(InMemoryChannelLayer):  # type: ignore[misc]  # channels has no types
    """Says when a group is joined, before it is. While it is `deaf` it takes what is said, and nobody hears it."""

    on_join: Callable[[], None] = staticmethod(lambda: None)

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.deaf = False
        self.unheard = asyncio.Event()

    async def group_send(self, group: str, message: dict[str, Any]) -> None:
        if self.deaf:
            self.unheard.set()
        else:
            await super().group_send(group, message)

    async def group_add(self, group: str, channel: str) -> None:
        self.on_join()
        await super().group_add(group, channel)


class Nobody:
    def deliver(self, frame: Encoded) -> None:
        raise AssertionError("nothing was said")


@asynccontextmanager
async def running(settings: Any) -> AsyncIterator[tuple[Layer, Switchboard, dict[str, asyncio.Task[None]]]]:
    """A process's switchboard once it is open, and its services by name."""
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": f"{__name__}.Layer"}}
    layer, switchboard = get_channel_layer(), Switchboard("here")
    services = {name: asyncio.create_task(service()) for name, service in switchboard.tasks()}
    try:
        await switchboard.opened.wait()
        yield layer, switchboard, services
    finally:
        for service in services.values():
            service.cancel()
        await asyncio.wait(services.values())


async def test_what_was_missed_is_looked_for_before_a_subscription_that_comes_late(settings: Any) -> None:
    looked: list[bool] = []
    again = asyncio.Event()

    def refuse() -> None:
        raise ConnectionError

    def note() -> None:
        looked.append(switchboard.missed.is_set())
        again.set()

    async with asyncio.timeout(DEADLINE_S), running(settings) as (layer, switchboard, _):
        layer.on_join = refuse
        await switchboard.join(Audience.CUSTOMERS, "conversation", Nobody())
        assert not switchboard.missed.is_set()
        layer.on_join = note
        await again.wait()
    assert looked[0]


async def test_a_process_that_leaves_its_channel_amid_a_probe_goes_on_looking_whether_it_hears(
    settings: Any,
) -> None:
    async with asyncio.timeout(DEADLINE_S), running(settings) as (layer, switchboard, services):
        layer.deaf = True
        await layer.unheard.wait()
        await switchboard.begin_anew()
        for _ in range(2):  # the probe that was under way, and the next
            switchboard.missed.clear()
            missed = asyncio.create_task(switchboard.missed.wait())
            await asyncio.wait([services["heal"], missed], return_when=asyncio.FIRST_COMPLETED)
        assert not services["heal"].done()
        assert switchboard.hearing is Hearing.CUT_OFF
