"""daphne inside the owner: the process's one server, its limits, and its orderly end.

Nothing of the product lives here. What daphne 4.2 leaves open is overridden below, each with its reason.
"""

from __future__ import annotations

import asyncio
import math
import signal
import socket
import time
from collections.abc import Callable
from typing import Any, Protocol

import daphne.server as daphne_server  # must be the first import of Twisted: it installs the asyncio reactor
from daphne.http_protocol import WebRequest
from daphne.ws_protocol import WebSocketProtocol
from twisted.internet.defer import Deferred

from apps.wire.protocol import FRAME_LIMIT_BYTES, CloseCode

UNSENT_LIMIT_BYTES = 1024 * 1024
UNSENT_IN_KERNEL_BYTES = 128 * 1024
# What one socket may have waiting to be carried out. daphne's own queue would hold all that a client can send.
WAITING_FRAMES = 200
WAITING_LIMIT_BYTES = 4 * 1024 * 1024
BODY_LIMIT_BYTES = 8 * 1024 * 1024
HTTP_TIMEOUT_S = 60
EVENT_STREAM = (b"content-type", b"text/event-stream")
# After the turns: what a client has to answer a close frame, and a last response to reach it.
FAREWELL_S = 0.5


class Owner(Protocol):
    """Who holds the process's connections, residents and tasks."""

    async def start(self) -> None:
        """Opens and loads everything; the port listens only after it returns."""

    async def drain(self, grace_s: float) -> None:
        """Lets running turns finish, ends the rest after `grace_s`, and closes what `start` opened."""


def serve(application: Any, owner: Owner, host: str, port: int, *, drain_s: float) -> int:
    """Serves until SIGTERM or SIGINT and returns the exit code. Raises what `owner.start` raises."""
    loop = daphne_server.twisted_loop
    asyncio.set_event_loop(loop)
    loop.run_until_complete(owner.start())
    server = OwnedServer(application, owner, host, port, drain_s=drain_s)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, server.end)
    server.run()
    return 1 if server.failed else 0


class OwnedServer(daphne_server.Server):  # type: ignore[misc]  # daphne has no types
    """daphne's server with an end: stop accepting, 1012 to every socket, wait for the owner, stop."""

    def __init__(self, application: Any, owner: Owner, host: str, port: int, *, drain_s: float) -> None:
        super().__init__(
            application,
            endpoints=[_endpoint(host, port)],
            signal_handlers=False,
            http_timeout=HTTP_TIMEOUT_S,
            websocket_timeout=-1,
            # daphne pings each socket that was silent for longer than this; 0 would ping every two seconds.
            ping_interval=math.inf,
            websocket_max_message_size=FRAME_LIMIT_BYTES,
            websocket_max_frame_size=FRAME_LIMIT_BYTES,
            application_close_timeout=10,
            server_name="chatsvc",
            ready_callable=self._shape_protocols,
        )
        self.failed = False
        self._owner = owner
        self._drain_s = drain_s
        self._ports: list[Any] = []
        self._ending: asyncio.Task[None] | None = None
        self._all_gone = asyncio.Event()

    @property
    def is_ending(self) -> bool:
        """Whether the drain has begun."""
        return self._ending is not None

    def end(self) -> None:
        """Starts the drain; asked again, stops at once."""
        if self._ending is None:
            self._ending = daphne_server.twisted_loop.create_task(self._end())
        else:
            self.stop()

    async def _end(self) -> None:
        try:
            for port in self._ports:
                await _settled(port.stopListening())
            for connection in self._connected():
                if isinstance(connection, SocketProtocol):
                    connection.close_with(CloseCode.RESTARTING, "restarting")
            await self._owner.drain(self._drain_s)
            await self._farewell()
        finally:
            self.stop()

    async def _farewell(self) -> None:
        if not self._connected():
            return
        try:
            async with asyncio.timeout(FAREWELL_S):
                await self._all_gone.wait()
        except TimeoutError:
            return  # a silent client or an idle keep-alive does not hold up the restart

    def _connected(self) -> list[Any]:
        return [
            connection for connection, details in self.connections.items() if "disconnected" not in details
        ]

    def _shape_protocols(self) -> None:
        self.ws_factory.protocol = SocketProtocol
        self.ws_factory.setProtocolOptions(closeHandshakeTimeout=5, tcpNoDelay=True, failByDrop=False)
        self.http_factory.buildProtocol = _with_request(BoundedRequest, self.http_factory.buildProtocol)

    def listen_success(self, port: Any) -> None:
        # `listeners` hold no port: only here can one be kept to stop it.
        self._ports.append(port)
        super().listen_success(port)

    def listen_error(self, failure: Any) -> None:
        self.failed = True
        super().listen_error(failure)

    def protocol_disconnected(self, protocol: Any) -> None:
        super().protocol_disconnected(protocol)
        if self._ending and not self._connected():
            self._all_gone.set()

    async def handle_reply(self, protocol: Any, message: dict[str, Any]) -> None:
        """As daphne's, and waits while the peer does not read: its own sender learns of it, and nobody else."""
        await super().handle_reply(protocol, message)
        if isinstance(protocol, PacedByReader):
            await protocol.writable()

    def kill_all_applications(self) -> Deferred[Any]:
        # daphne's own raises KeyError where an open connection's application has already ended.
        tasks = [
            task for details in self.connections.values() if (task := details.get("application_instance"))
        ]
        for task in tasks:
            task.cancel()
        return Deferred.fromFuture(asyncio.gather(*tasks, return_exceptions=True))


class PacedByReader:
    """A producer whose application waits while the peer does not read."""

    _blocked: asyncio.Event | None = None  # set when the peer has read enough or is gone

    def pauseProducing(self) -> None:
        if self._blocked is None:
            self._blocked = asyncio.Event()

    def resumeProducing(self) -> None:
        self._unblock()

    def stopProducing(self) -> None:
        self._unblock()

    async def writable(self) -> None:
        """Returns once the peer has read enough, or is gone."""
        if self._blocked is not None:
            await self._blocked.wait()

    def _unblock(self) -> None:
        if self._blocked is not None:
            self._blocked.set()
            self._blocked = None


class SocketProtocol(PacedByReader, WebSocketProtocol):  # type: ignore[misc]  # daphne has no types
    """A socket with a bounded send buffer, and a close that carries any code and a reason."""

    _unsent = 0
    _waiting_bytes = 0
    _flooding = False

    def onOpen(self) -> None:
        super().onOpen()
        # The HTTP channel that received the upgrade is still registered on the transport.
        self.transport.unregisterProducer()
        self.transport.registerProducer(self, True)
        _keep_kernel_queue_short(self.transport)
        if self.server.is_ending:
            # It was on its way when the others were told, or came over a connection that had been kept open.
            self.close_with(CloseCode.RESTARTING, "restarting")

    def resumeProducing(self) -> None:
        self._unsent = 0
        super().resumeProducing()

    def onClose(self, wasClean: bool, code: int, reason: str) -> None:
        super().onClose(wasClean, code, reason)
        self._unblock()

    def onMessage(self, payload: bytes, isBinary: bool) -> None:
        """As daphne's, with the time: how long a frame waits for the application is a stage of its turn.

        A socket that sends faster than it can be served is closed.
        """
        if self.muted or self._flooding or self.state != self.STATE_OPEN:
            return
        if self._too_much_waits(len(payload)):
            self._flooding = True
            self.close_with(CloseCode.SLOW_DOWN, "slow down")
            return
        self.last_ping = time.time()
        content = {"bytes": payload} if isBinary else {"text": payload.decode()}
        self.application_queue.put_nowait(
            {"type": "websocket.receive", "arrived": time.monotonic(), **content}
        )

    def _too_much_waits(self, arrived_bytes: int) -> bool:
        waiting = self.application_queue.qsize()
        self._waiting_bytes = arrived_bytes + (self._waiting_bytes if waiting else 0)
        return waiting >= WAITING_FRAMES or (waiting > 0 and self._waiting_bytes > WAITING_LIMIT_BYTES)

    def serverSend(self, content: str | bytes, binary: bool = False) -> None:
        """Sends, or drops a socket whose peer has not read: the client resumes from what it painted."""
        if self.state not in (self.STATE_CONNECTING, self.STATE_OPEN):
            return  # its application has yet to hear that the peer is gone
        if self._blocked is not None:
            self._unsent += len(content)
            if self._unsent > UNSENT_LIMIT_BYTES:
                self.dropConnection(abort=True)
                return
        super().serverSend(content, binary)

    def handle_reply(self, message: dict[str, Any]) -> None:
        if message.get("type") == "websocket.close" and self.state == self.STATE_OPEN:
            self.close_with(message.get("code") or 1000, message.get("reason") or "")
        else:
            super().handle_reply(message)

    def close_with(self, code: int, reason: str) -> None:
        """Starts the closing handshake. autobahn's `sendClose` refuses 1012, and daphne drops reasons."""
        if self.state == self.STATE_OPEN:
            self.sendCloseFrame(code=code, reasonUtf8=reason.encode()[:123])


class BoundedRequest(PacedByReader, WebRequest):  # type: ignore[misc]  # daphne has no types
    """A request whose body is refused above the limit, before it fills the disk.

    A response that is an event stream lasts as long as it likes, and its application waits for its reader.
    """

    _received = 0
    _streams = False

    def handle_reply(self, message: dict[str, Any]) -> None:
        head = message["type"] == "http.response.start"
        if head and EVENT_STREAM in message["headers"] and self.channel is not None:
            self._streams = True
            self.channel.registerProducer(self, True)
            _keep_kernel_queue_short(self.channel.transport)
        super().handle_reply(message)

    def finish(self) -> None:
        self._end_stream()
        super().finish()

    def connectionLost(self, reason: Any) -> None:
        self._end_stream()
        super().connectionLost(reason)

    def _end_stream(self) -> None:
        if self._streams and self.channel is not None:
            self.channel.unregisterProducer()
        self._unblock()

    def check_timeouts(self) -> None:
        if not self._streams:
            super().check_timeouts()

    def handleContentChunk(self, data: bytes) -> None:
        self._received += len(data)
        if self._received <= BODY_LIMIT_BYTES:
            super().handleContentChunk(data)
            return
        self.channel.transport.write(
            b"HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        )
        self.channel.loseConnection()


def _keep_kernel_queue_short(transport: Any) -> None:
    """A reader that stops is noticed after this much, not after megabytes in the system's buffers."""
    connection = transport.getHandle()
    if hasattr(socket, "TCP_NOTSENT_LOWAT"):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_IN_KERNEL_BYTES)


def _with_request(request: type[WebRequest], build: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def build_protocol(address: Any) -> Any:
        channel = build(address)
        channel.requestFactory = request
        return channel

    return build_protocol


def _endpoint(host: str, port: int) -> str:
    escaped = host.replace(":", "\\:")
    return f"tcp:port={port}:interface={escaped}:backlog=1024"


async def _settled(result: Any) -> None:
    if isinstance(result, Deferred):
        await result.asFuture(asyncio.get_running_loop())
