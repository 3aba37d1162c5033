"""A socket whose peer does not read slows itself alone."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

from apps.wire.protocol import JSON_SUBPROTOCOL
from tests.fakes.upstream.faults import Plan
from tests.fakes.upstream.handle import Upstream
from tests.fakes.upstream.script import Text, words
from tests.support.client import DEADLINE_S, Client
from tests.support.processes import Web
from tests.support.world import made

pytestmark = pytest.mark.usefixtures("orm")

LONG = words(200)
BULKY = "灯" * 8_000  # 24 kB
BULK_MESSAGES = 40


@asynccontextmanager
async def narrow(web: Web) -> AsyncIterator[ClientConnection]:
    """A socket that takes in little before it is read."""
    address = urlsplit(web.ws)
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    raw.setblocking(False)
    async with asyncio.timeout(DEADLINE_S):
        await asyncio.get_running_loop().sock_connect(raw, (address.hostname, address.port))
    subprotocols = [Subprotocol(JSON_SUBPROTOCOL)]
    async with connect(
        f"{web.ws}/ws/customer", sock=raw, subprotocols=subprotocols, max_queue=1, max_size=None,
        ping_interval=None, close_timeout=1,
    ) as connection:  # fmt: skip
        yield connection


async def test_another_tab_streams_on_and_the_slow_one_gets_the_same_text_in_fewer_pieces(
    web: Web, plain_upstream: Upstream
) -> None:
    world = await made(model=plain_upstream)
    plain_upstream.always(Plan(script=Text("Noted.")))
    token = world.visitor()
    async with world.customer(web, token=token) as line, narrow(web) as slow:
        hello = {"type": "hello", "token": token, "locale": "en", "conversation": line.conversation}
        await slow.send(json.dumps(hello))
        assert json.loads(await slow.recv())["type"] == "welcome"
        for _ in range(BULK_MESSAGES):
            await line.say(BULKY)
        await line.client.expect("turn.ended", end="finished")
        plain_upstream.always(Plan(script=Text(LONG), tokens_per_s=100))
        await line.say("Tell me everything")
        fast = await line.client.expect(
            "turn.ended", end="finished", where=lambda f: f.get("length", 0) > 100
        )
        behind = Client(slow)
        await behind.expect("turn.ended", handle=fast["handle"])
    pieces = [
        [f for f in client.received("delta") if f["handle"] == fast["handle"]]
        for client in (line.client, behind)
    ]
    assert ["".join(piece["text"] for piece in some) for some in pieces] == [LONG, LONG]
    assert len(pieces[0]) > 20
    assert len(pieces[1]) < 5
