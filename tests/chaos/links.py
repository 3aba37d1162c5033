"""A network between clients and one server: carries bytes, and on demand loses, holds or cuts them."""

from __future__ import annotations

import asyncio
import socket
import struct
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum

_CHUNK = 65_536
_CONNECT_S = 5.0
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER with time 0: the peer sees RST, not FIN


class Way(StrEnum):
    UP = "up"  # from the client
    DOWN = "down"  # to the client


@dataclass(eq=False, slots=True)
class _Crossing:
    client: asyncio.StreamWriter
    server: asyncio.StreamWriter
    tasks: list[asyncio.Task[None]] = field(default_factory=list)
    stranded: bool = False


class Link:
    """Listens on a port of its own and carries each connection to an address. One loop, no thread."""

    def __init__(self, port: int, address: str = "127.0.0.1") -> None:
        self._target = (address, port)
        self._server: asyncio.Server | None = None
        self._crossings: set[_Crossing] = set()
        self._accepting: set[asyncio.Task[None]] = set()
        self._lost: set[Way] = set()
        self._delay_s = 0.0
        self._stranding = False

    @property
    def port(self) -> int:
        assert self._server
        return int(self._server.sockets[0].getsockname()[1])

    async def __aenter__(self) -> Link:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, backlog=1024)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server
        self._server.close()
        self.reset()
        # Not cancelled: asyncio's own callback of a stream's task cannot bear it.
        while self._accepting:
            await asyncio.wait(self._accepting)

    def lose(self, *ways: Way) -> None:
        """What travels these ways from now on never arrives, and nobody is told."""
        self._lost = set(ways)

    def strand(self) -> None:
        """What travels on the present connections never arrives, and nobody is told; new ones are well."""
        for crossing in self._crossings:
            crossing.stranded = True

    def strand_next(self) -> None:
        """What travels on the next connection never arrives, and nobody is told."""
        self._stranding = True

    def lead_to(self, port: int) -> None:
        """The next connections go there. Those of before stay where they are."""
        self._target = (self._target[0], port)

    def delay(self, seconds: float) -> None:
        self._delay_s = seconds

    def heal(self) -> None:
        """The network is well again. A connection that has lost bytes cannot go on: it is reset."""
        self._delay_s = 0.0
        if self._lost:
            self._lost = set()
            self.reset()

    def reset(self) -> None:
        """Both ends of every connection see it broken."""
        for crossing in list(self._crossings):
            self._break(crossing)

    def _break(self, crossing: _Crossing) -> None:
        for writer in (crossing.client, crossing.server):
            sock = writer.get_extra_info("socket")
            if sock is not None:
                with suppress(OSError):
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            writer.transport.abort()
        for task in crossing.tasks:
            task.cancel()
        self._crossings.discard(crossing)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._accepting.add(task)
        try:
            await self._carry(reader, writer)
        finally:
            self._accepting.discard(task)
            writer.transport.abort()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_CONNECT_S):
                there, back = await asyncio.open_connection(*self._target)
        except (OSError, TimeoutError):
            return
        crossing = _Crossing(writer, back, stranded=self._stranding)
        self._stranding = False
        self._crossings.add(crossing)
        crossing.tasks = [
            asyncio.create_task(self._pass(crossing, reader, back, Way.UP)),
            asyncio.create_task(self._pass(crossing, there, writer, Way.DOWN)),
        ]
        try:
            await asyncio.wait(crossing.tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._break(crossing) if self._lost else self._end(crossing)

    def _end(self, crossing: _Crossing) -> None:
        for task in crossing.tasks:
            task.cancel()
        for writer in (crossing.client, crossing.server):
            writer.close()
        self._crossings.discard(crossing)

    async def _pass(
        self, crossing: _Crossing, source: asyncio.StreamReader, sink: asyncio.StreamWriter, way: Way
    ) -> None:
        with suppress(OSError):
            while data := await source.read(_CHUNK):
                if self._delay_s:
                    await asyncio.sleep(self._delay_s)
                if crossing.stranded or way in self._lost:
                    continue
                sink.write(data)
                await sink.drain()
