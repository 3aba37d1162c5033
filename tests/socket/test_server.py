"""What the server promises round any application: its end, its limits, its close codes."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path

import httpx
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from apps.wire.protocol import FRAME_LIMIT_BYTES
from chatsvc.server import BODY_LIMIT_BYTES, WAITING_FRAMES
from tests.support.plain_server import FLOOD_BYTES, POUR_BYTES
from tests.support.processes import own_port

DEADLINE_S = 20.0


class PlainServer:
    """The process, and what it has said."""

    def __init__(self, process: asyncio.subprocess.Process, port: int, hold: Path) -> None:
        self.process = process
        self.url = f"ws://127.0.0.1:{port}"
        self.http = f"http://127.0.0.1:{port}"
        self.hold = hold

    async def said(self, line: str) -> None:
        assert self.process.stdout
        async with asyncio.timeout(DEADLINE_S):
            while (read := (await self.process.stdout.readline()).decode().strip()) != line:
                assert read, f"the server ended before it said {line!r}"

    async def listening(self) -> None:
        async with asyncio.timeout(DEADLINE_S), httpx.AsyncClient() as client:
            while True:
                try:
                    await client.get(self.http)
                except httpx.ConnectError:
                    await asyncio.sleep(0.02)
                else:
                    return

    async def ended(self) -> int:
        async with asyncio.timeout(DEADLINE_S):
            return await self.process.wait()


StartServer = Callable[..., AbstractAsyncContextManager[PlainServer]]


@pytest.fixture
def plain_server(tmp_path: Path) -> StartServer:
    @asynccontextmanager
    async def start(*, drain_s: float = 10.0) -> AsyncIterator[PlainServer]:
        port, hold = own_port(), tmp_path / "hold"
        hold.touch()
        command = [sys.executable, "-m", "tests.support.plain_server", f"--port={port}", f"--hold={hold}"]
        process = await asyncio.create_subprocess_exec(
            *command, f"--drain-s={drain_s}", stdout=asyncio.subprocess.PIPE
        )
        server = PlainServer(process, port, hold)
        try:
            await server.said("started")
            await server.listening()
            yield server
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()

    return start


async def socket_until_closed(socket: ClientConnection) -> AsyncIterator[str | bytes]:
    with suppress(ConnectionClosed):
        while True:
            yield await socket.recv()


async def close_of(socket: ClientConnection) -> tuple[int, str]:
    async with asyncio.timeout(DEADLINE_S):
        await socket.wait_closed()
    assert socket.close_code is not None
    return socket.close_code, socket.close_reason or ""


async def test_sigterm_closes_every_socket_as_restarting_and_waits_for_the_turns(
    plain_server: StartServer,
) -> None:
    async with plain_server() as server:
        sockets = [await connect(f"{server.url}/echo") for _ in range(5)]
        server.process.send_signal(signal.SIGTERM)
        assert [await close_of(socket) for socket in sockets] == [(1012, "restarting")] * 5
        await server.said("draining")
        assert server.process.returncode is None
        with pytest.raises(OSError):  # noqa: PT011 - refused, by whichever errno
            await connect(f"{server.url}/echo", open_timeout=2)
        server.hold.unlink()
        await server.said("finished")
        assert await server.ended() == 0


async def test_a_socket_that_was_on_its_way_at_sigterm_is_closed_as_restarting(
    plain_server: StartServer,
) -> None:
    async with plain_server() as server:
        connecting = asyncio.create_task(connect(f"{server.url}/late").__aenter__())
        await server.said("asked")
        server.process.send_signal(signal.SIGTERM)
        assert await close_of(await connecting) == (1012, "restarting")
        server.hold.unlink()
        assert await server.ended() == 0


async def test_a_turn_longer_than_the_grace_is_cut_off(plain_server: StartServer) -> None:
    async with plain_server(drain_s=0.1) as server:
        server.process.send_signal(signal.SIGTERM)
        await server.said("cut off")
        assert await server.ended() == 0


async def test_a_second_signal_ends_the_process_without_waiting(plain_server: StartServer) -> None:
    async with plain_server() as server:
        server.process.send_signal(signal.SIGINT)
        await server.said("draining")
        server.process.send_signal(signal.SIGINT)
        assert await server.ended() == 0
        assert server.hold.exists()


async def test_a_frame_above_the_limit_closes_with_1009(plain_server: StartServer) -> None:
    async with plain_server() as server, connect(f"{server.url}/echo", max_size=None) as socket:
        largest = "x" * FRAME_LIMIT_BYTES
        await socket.send(largest)
        assert await socket.recv() == largest
        await socket.send(largest + "x")
        assert (await close_of(socket))[0] == 1009


async def test_what_is_said_to_a_client_that_is_just_leaving_goes_nowhere(plain_server: StartServer) -> None:
    async with plain_server() as server:
        for _ in range(5):
            async with connect(f"{server.url}/talk") as socket:
                await socket.recv()
            await server.said("disconnected 1000")


async def test_a_client_that_does_not_read_is_dropped(plain_server: StartServer) -> None:
    async with plain_server() as server:
        async with connect(f"{server.url}/flood", max_queue=1, ping_interval=None) as socket:
            await server.said("disconnected 1006")
            received = sum([len(piece) async for piece in socket_until_closed(socket)])
        assert 0 < received < FLOOD_BYTES


async def test_an_application_that_waits_is_told_to_wait_for_a_client_that_does_not_read(
    plain_server: StartServer,
) -> None:
    async with plain_server() as server:
        async with connect(f"{server.url}/pour", max_queue=1, ping_interval=None) as socket:
            await server.said("waits")
            received = sum([len(piece) async for piece in socket_until_closed(socket)])
        assert received == POUR_BYTES


async def test_an_event_stream_waits_for_its_reader(plain_server: StartServer) -> None:
    async with (
        plain_server() as server,
        httpx.AsyncClient(timeout=DEADLINE_S) as client,
        client.stream("GET", f"{server.http}/pour") as answer,
    ):
        await server.said("waits")
        received = sum([len(piece) async for piece in answer.aiter_raw()])
    assert received == POUR_BYTES


@pytest.mark.parametrize("piece", ["x", "x" * FRAME_LIMIT_BYTES], ids=["many frames", "much text"])
async def test_a_client_that_sends_more_than_can_be_carried_out_is_closed(
    plain_server: StartServer, piece: str
) -> None:
    async with plain_server() as server, connect(f"{server.url}/deaf", ping_interval=None) as socket:
        with suppress(ConnectionClosed):
            for _ in range(WAITING_FRAMES + 50):
                await socket.send(piece)
        assert (await close_of(socket))[0] == 4429


async def test_a_consumer_may_close_with_any_code_and_a_reason(plain_server: StartServer) -> None:
    async with plain_server() as server, connect(f"{server.url}/close") as socket:
        assert await close_of(socket) == (1012, "why")


async def test_compression_is_not_negotiated(plain_server: StartServer) -> None:
    async with plain_server() as server, connect(f"{server.url}/echo", compression="deflate") as socket:
        assert socket.response
        assert "Sec-WebSocket-Extensions" not in socket.response.headers


async def test_a_response_names_no_version(plain_server: StartServer) -> None:
    async with plain_server() as server, httpx.AsyncClient() as client:
        response = await client.get(server.http)
        assert response.headers["server"] == "chatsvc"


async def test_a_body_above_the_limit_is_refused(plain_server: StartServer) -> None:
    async with plain_server() as server, httpx.AsyncClient() as client:
        whole = await client.post(server.http, content=b"x" * BODY_LIMIT_BYTES)
        assert whole.text == str(BODY_LIMIT_BYTES)
        try:
            refused = await client.post(server.http, content=b"x" * (BODY_LIMIT_BYTES + 1))
        except httpx.TransportError:
            return  # the reset may overtake the response
        assert refused.status_code == 413
