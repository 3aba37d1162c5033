"""A TCP connection as raw bytes, with an adjustable distance between the two ends."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections import deque
from contextlib import suppress

from tests.fakes.transport.exchange import ClientGone

READ_BYTES = 65_536
QUEUED_BYTES = 1_048_576  # what may be under way towards the client before a writer waits
LINGER_S = 10.0
RST_ON_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER on, zero seconds


class Wire:
    """No distance: bytes go straight to and from the socket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._deaf: _Deaf | None = None
        # With a zero mark `drain` returns when the kernel has it all, so a reset cannot eat earlier bytes.
        writer.transport.set_write_buffer_limits(high=0)

    def start(self, group: asyncio.TaskGroup) -> None:
        """Starts whatever moves bytes in the background."""

    async def read(self) -> bytes:
        """The next bytes; empty once the peer has left, by FIN or by RST."""
        try:
            return await self._reader.read(READ_BYTES)
        except ConnectionError:
            return b""

    async def write(self, data: bytes) -> None:
        """Raises `ClientGone`."""
        if self._deaf is not None or self._writer.is_closing():
            raise ClientGone
        self._writer.write(data)
        try:
            await self._writer.drain()
        except ConnectionError as error:
            raise ClientGone from error

    async def close(self) -> None:
        """FIN behind all that was written. Nothing more is heard of the peer, see `linger`."""
        transport = self._writer.transport
        if self._deaf is not None or transport.is_closing():
            return
        assert isinstance(transport, asyncio.Transport)
        self._deaf = _Deaf(transport.get_protocol())
        transport.set_protocol(self._deaf)
        self._reader.feed_eof()
        try:
            transport.write_eof()
            transport.resume_reading()
        except OSError:  # the peer was faster
            transport.abort()

    async def linger(self) -> None:
        """After `close`: until the peer has ended too, for some seconds at most.

        A socket that is closed before all that came was read, or to which more comes, is reset by the kernel, which
        then drops what the peer has not yet taken: an answer would lose its end (RFC 9112, 9.6).
        """
        if self._deaf is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(LINGER_S):
                    await self._deaf.gone.wait()

    async def reset(self) -> None:
        raw: socket.socket = self._writer.get_extra_info("socket")
        if not self._writer.transport.is_closing():
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RST_ON_CLOSE)
        self._writer.transport.abort()

    def part(self) -> None:
        """For the end of the conversation: what was not closed in order is dropped at once."""
        if self._deaf is None:
            self.drop()

    def drop(self) -> None:
        self._writer.transport.abort()


class _Deaf(asyncio.Protocol):
    """Drops what a peer says behind our end, and ends when it does. Who still writes is served as before."""

    def __init__(self, hearing: asyncio.BaseProtocol) -> None:
        self.gone = asyncio.Event()
        self._hearing = hearing

    def pause_writing(self) -> None:
        self._hearing.pause_writing()

    def resume_writing(self) -> None:
        self._hearing.resume_writing()

    def connection_lost(self, error: Exception | None) -> None:
        self._hearing.connection_lost(error)
        self.gone.set()


class DistantWire(Wire):
    """Half a round trip in each direction, and a connect that takes `setup_s` longer than the kernel's.

    The kernel accepts at once, so what a real network takes for the TCP handshake (and a resolver for the
    name) is added to the first bytes: nothing the client sends arrives before `setup_s` + half a round trip.
    """

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, rtt_s: float, setup_s: float
    ) -> None:
        super().__init__(reader, writer)
        self._loop = asyncio.get_running_loop()
        self._half_s = rtt_s / 2
        self._first_arrival = self._loop.time() + setup_s + self._half_s
        self._arriving: deque[tuple[float, bytes]] = deque()
        self._arrived = asyncio.Event()
        self._leaving: deque[tuple[float, bytes | None]] = deque()
        self._left = asyncio.Event()
        self._under_way = 0
        self._room = asyncio.Event()
        self._room.set()
        self._ending = False
        self._resetting = False
        self._ended = asyncio.Event()
        self._carriers: list[asyncio.Task[None]] = []

    def start(self, group: asyncio.TaskGroup) -> None:
        self._carriers = [group.create_task(self._carry_in()), group.create_task(self._carry_out())]

    def part(self) -> None:
        super().part()
        for carrier in self._carriers:
            carrier.cancel()

    async def read(self) -> bytes:
        while not self._arriving:
            self._arrived.clear()
            await self._arrived.wait()
        # Looked at before the wait and taken after it: a cancelled read loses nothing.
        await asyncio.sleep(max(0.0, self._arriving[0][0] - self._loop.time()))
        data = self._arriving[0][1]
        if data:
            self._arriving.popleft()
        return data

    async def write(self, data: bytes) -> None:
        await self._room.wait()
        if self._ending or self._ended.is_set():
            raise ClientGone
        self._send(data)

    async def close(self) -> None:
        await self._end()

    async def reset(self) -> None:
        self._resetting = True
        await self._end()

    async def _end(self) -> None:
        """The end travels behind the bytes before it."""
        if not self._ending:
            self._ending = True
            self._send(None)
        await self._ended.wait()

    def _send(self, data: bytes | None) -> None:
        self._leaving.append((self._loop.time() + self._half_s, data))
        self._left.set()
        self._under_way += len(data or b"")
        if self._under_way > QUEUED_BYTES:
            self._room.clear()

    async def _carry_in(self) -> None:
        while True:
            data = await super().read()
            self._arriving.append((max(self._first_arrival, self._loop.time() + self._half_s), data))
            self._arrived.set()
            if not data:
                return

    async def _carry_out(self) -> None:
        try:
            while True:
                while not self._leaving:
                    self._left.clear()
                    await self._left.wait()
                due, data = self._leaving.popleft()
                await asyncio.sleep(max(0.0, due - self._loop.time()))
                if data is None:
                    await (super().reset() if self._resetting else super().close())
                    return
                await super().write(data)
                self._under_way -= len(data)
                if self._under_way <= QUEUED_BYTES:
                    self._room.set()
        except ClientGone:
            return  # the reading side tells the application
        finally:
            self._ended.set()
            self._room.set()
