"""A deadline says what the other side did, not how busy we were."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from apps.engine.deadlines import Until, within

SOON_S = 0.05


@asynccontextmanager
async def connected() -> AsyncIterator[tuple[asyncio.StreamReader, socket.socket]]:
    ours, theirs = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=ours)
    try:
        with theirs:
            yield reader, theirs
    finally:
        writer.close()


async def test_what_came_in_time_is_read_by_a_loop_that_was_busy_past_the_deadline() -> None:
    loop = asyncio.get_running_loop()
    due = loop.time() + SOON_S

    async with connected() as (reader, peer):
        passed_on: asyncio.Queue[bytes] = asyncio.Queue()

        async def pass_on() -> None:
            await passed_on.put(await reader.readexactly(4))

        def busy() -> None:
            peer.sendall(b"here")
            while loop.time() <= due:
                pass

        passing = asyncio.create_task(pass_on())
        loop.call_soon(busy)
        async with Until(due):
            assert await passed_on.get() == b"here"
        await passing


async def test_what_does_not_come_ends_at_the_deadline() -> None:
    async with connected() as (reader, _):
        with pytest.raises(TimeoutError):
            async with within(SOON_S):
                await reader.read(1)


async def test_what_ends_in_time_is_not_cut_later() -> None:
    async with within(0.0):
        pass
    await asyncio.sleep(0)
    async with within(SOON_S):
        await asyncio.sleep(0)
    await asyncio.sleep(2 * SOON_S)


async def test_a_cancelled_wait_stays_cancelled() -> None:
    async def wait() -> None:
        async with within(10.0):
            await asyncio.Event().wait()

    waiting = asyncio.create_task(wait())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
