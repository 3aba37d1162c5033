"""A port: accepts, shakes hands, picks the protocol, and breaks connections on demand."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from tests.fakes.transport.exchange import App, ClientGone
from tests.fakes.transport.http1 import Http1Connection
from tests.fakes.transport.http2 import Http2Connection
from tests.fakes.transport.link import HandshakeFailed, Link
from tests.fakes.transport.wire import DistantWire, Wire

logger = logging.getLogger(__name__)

TLS_HANDSHAKE_FAILURE = bytes.fromhex("15030300020228")  # fatal alert 40
NOT_TLS = b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class ConnectionFault(StrEnum):
    """What can happen to a new connection before any request."""

    RESET = "reset"  # RST as soon as it is accepted
    CLOSE = "close"  # FIN as soon as it is accepted
    STALL = "stall"  # accepted, then silence, also during the TLS handshake
    TLS_ALERT = "tls_alert"  # handshake_failure
    NOT_TLS = "not_tls"  # plain HTTP where a ServerHello is due
    STRANGER = "stranger"  # a certificate nobody trusts


class Leave(StrEnum):
    """How the server ends connections on demand."""

    CLOSE = "close"
    RESET = "reset"
    GOAWAY = "goaway"


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """What connections accepted from now on get. `idle_close_s` 0 keeps idle ones for ever."""

    rtt_s: float = 0.0
    setup_s: float = 0.0
    idle_close_s: float = 0.0
    max_streams: int = 100


class Observer(Protocol):
    """Who counts. Called on the server's loop."""

    def connection_opened(self) -> int:
        """Returns the connection's number, from 1."""

    def handshake_finished(self, *, resumed: bool) -> None: ...

    def handshake_failed(self) -> None: ...

    def connection_closed(self) -> None: ...

    def crashed(self, error: BaseException) -> None:
        """The fake itself has a bug; a test that used it must not pass."""


def hold_port(port: int = 0) -> socket.socket:
    """A socket that keeps a port of 127.0.0.1, by default a free one, until it is closed.

    The kernel gives the port to nobody by itself, and whoever names it may listen there, and again after a pause.
    """
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("127.0.0.1", port))
    return holder


class Certificates(Protocol):
    """Where TLS contexts come from: `tls.Authority`. Not imported, since a shop without TLS needs none."""

    def context(self) -> ssl.SSLContext: ...

    def stranger(self) -> ssl.SSLContext: ...


class Listener:
    """Serves `app` on one port of 127.0.0.1 within the caller's task group."""

    def __init__(
        self, app: App, observer: Observer, *, port: int = 0, certificates: Certificates | None = None
    ) -> None:
        self.port = port
        self.network = Network()
        self.faults: deque[ConnectionFault] = deque()
        self._app = app
        self._observer = observer
        self._context = certificates.context() if certificates else None
        self._stranger = certificates.stranger() if certificates else None
        self._holder: socket.socket | None = None
        self._server: asyncio.Server | None = None
        self._tasks: dict[asyncio.Task[None], Link] = {}
        self._connections: dict[Link, Http1Connection | Http2Connection] = {}
        self._group: asyncio.TaskGroup | None = None

    async def open(self, group: asyncio.TaskGroup) -> None:
        """Listens; again on the same port after `refuse`."""
        self._group = group
        if self._holder is None:
            self._holder = hold_port(self.port)
            self.port = self._holder.getsockname()[1]
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port, backlog=1024)

    def refuse(self) -> None:
        """Closes the port; connections there are live on."""
        if self._server is not None:
            self._server.close()
            self._server = None

    async def accept(self) -> None:
        if self._server is None and self._group is not None:
            await self.open(self._group)

    async def leave(self, how: Leave, *, idle_only: bool) -> None:
        """Ends connections from this side."""
        for link, connection in list(self._connections.items()):
            if idle_only and not connection.idle:
                continue
            try:
                if how is Leave.GOAWAY:
                    await connection.goaway()
                elif how is Leave.RESET:
                    await link.reset()
                else:
                    await link.close()
            except ClientGone:
                continue

    def stop(self) -> None:
        """Refuses and drops everything, and lets go of the port."""
        self.refuse()
        if self._holder is not None:
            self._holder.close()
        for task in self._tasks:
            task.cancel()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert self._group is not None
        network = self.network
        wire = Wire(reader, writer)
        if network.rtt_s or network.setup_s:
            wire = DistantWire(reader, writer, rtt_s=network.rtt_s, setup_s=network.setup_s)
        link = Link(wire)
        task = self._group.create_task(self._connection(link, network))
        self._tasks[task] = link
        task.add_done_callback(self._tasks.pop)

    async def _connection(self, link: Link, network: Network) -> None:
        try:
            await self._counted(link, network)
            await link.wire.linger()
        finally:
            link.wire.drop()

    async def _counted(self, link: Link, network: Network) -> None:
        number = self._observer.connection_opened()
        try:
            async with asyncio.TaskGroup() as group:
                link.wire.start(group)
                try:
                    await self._serve(link, network, number)
                finally:
                    link.wire.part()
        except* ClientGone:
            pass
        except* Exception as errors:  # a connection's boundary: told to the tests, never swallowed
            logger.exception("fake server crashed", extra={"connection": number})
            self._observer.crashed(errors)
        finally:
            self._observer.connection_closed()

    async def _serve(self, link: Link, network: Network, number: int) -> None:
        fault = self.faults.popleft() if self.faults else None
        if fault is not None and await self._broken(link, fault):
            return
        context = self._stranger if fault is ConnectionFault.STRANGER else self._context
        if context is not None:
            try:
                await link.handshake(context)
            except HandshakeFailed:
                self._observer.handshake_failed()
                return
            self._observer.handshake_finished(resumed=link.resumed)
        connection = self._speak(link, network, number)
        self._connections[link] = connection
        try:
            await connection.serve()
        finally:
            del self._connections[link]

    def _speak(self, link: Link, network: Network, number: int) -> Http1Connection | Http2Connection:
        if link.alpn != "h2":
            return Http1Connection(link, self._app, number=number, idle_close_s=network.idle_close_s)
        return Http2Connection(
            link,
            self._app,
            number=number,
            max_streams=network.max_streams,
            idle_close_s=network.idle_close_s,
        )

    async def _broken(self, link: Link, fault: ConnectionFault) -> bool:
        """Whether that was the end of it."""
        match fault:
            case ConnectionFault.RESET:
                await link.reset()
            case ConnectionFault.CLOSE:
                await link.close()
            case ConnectionFault.STALL:
                while await link.wire.read():
                    pass
            case ConnectionFault.TLS_ALERT | ConnectionFault.NOT_TLS:
                await link.wire.read()
                await link.wire.write(
                    TLS_HANDSHAKE_FAILURE if fault is ConnectionFault.TLS_ALERT else NOT_TLS
                )
                await link.wire.close()
            case ConnectionFault.STRANGER:
                return False
        return True


class Serving:
    """A server with a port of its own. Everything lives on one loop."""

    def __init__(self, listener: Listener) -> None:
        self.listener = listener
        self._stop = asyncio.Event()

    async def run(self, ready: Callable[[], None]) -> None:
        """Serves until `stop`."""
        async with asyncio.TaskGroup() as group:
            await self.listener.open(group)
            ready()
            await self._stop.wait()
            self.listener.stop()

    def stop(self) -> None:
        self._stop.set()
