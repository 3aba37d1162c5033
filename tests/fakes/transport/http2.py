"""HTTP/2 on h2, with GOAWAY written by hand so that streams may go on after it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    DataReceived,
    Event,
    RemoteSettingsChanged,
    RequestReceived,
    StreamEnded,
    StreamReset,
    WindowUpdated,
)
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes
from hyperframe.frame import GoAwayFrame

from tests.fakes.transport.exchange import App, ClientGone, Request
from tests.fakes.transport.link import Link


@dataclass(slots=True)
class Stream:
    """A request being read, then answered."""

    headers: dict[str, str]
    body: bytearray = field(default_factory=bytearray)
    exchange: Http2Exchange | None = None
    task: asyncio.Task[None] | None = None


class Http2Connection:
    """One connection, many streams at once."""

    def __init__(
        self, link: Link, app: App, *, number: int, max_streams: int, idle_close_s: float = 0.0
    ) -> None:
        self._link = link
        self._app = app
        self._number = number
        self._idle_close_s = idle_close_s
        self._max_streams = max_streams
        self._streams: dict[int, Stream] = {}
        self._count = 0
        self._leaving = False
        self.h2 = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        self.window = asyncio.Condition()
        self.broken = False

    @property
    def idle(self) -> bool:
        return not self._streams

    async def serve(self) -> None:
        """Until either side has had enough."""
        self.h2.initiate_connection()
        self.h2.update_settings({SettingCodes.MAX_CONCURRENT_STREAMS: self._max_streams})
        try:
            await self.flush()
            async with asyncio.TaskGroup() as group:
                while data := await self._read():
                    for event in self.h2.receive_data(data):
                        await self._on_event(event, group)
                    await self.flush()
                self._abandon_all()
        except (ProtocolError, ClientGone):
            self._abandon_all()
        if not self.broken:
            await self._link.close()

    async def flush(self) -> None:
        """Raises `ClientGone`."""
        pending = self.h2.data_to_send()
        if pending:
            await self._link.write(pending)

    async def goaway(self, last_stream: int | None = None) -> None:
        """Streams above `last_stream` count as never seen; the connection ends when the others are done."""
        frame = GoAwayFrame(0)
        frame.last_stream_id = (
            last_stream if last_stream is not None else max(self._streams, default=2**31 - 1)
        )
        frame.error_code = ErrorCodes.NO_ERROR
        await self._link.write(frame.serialize())
        self._leaving = True
        if self.idle:
            await self.close()

    async def close(self) -> None:
        self.broken = True
        await self._link.close()

    async def reset(self) -> None:
        self.broken = True
        await self._link.reset()

    async def _read(self) -> bytes:
        if not self._idle_close_s:
            return await self._link.read()
        while True:
            try:
                async with asyncio.timeout(self._idle_close_s):
                    return await self._link.read()
            except TimeoutError:
                if self.idle:
                    return b""

    async def _on_event(self, event: Event, group: asyncio.TaskGroup) -> None:
        match event:
            case RequestReceived():
                headers = {str(name): str(value) for name, value in event.headers}
                self._streams[event.stream_id] = Stream(headers)
            case DataReceived():
                if event.stream_id in self._streams:
                    self._streams[event.stream_id].body += event.data
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            case StreamEnded():
                self._open(event.stream_id, group)
            case StreamReset():
                self._abandon(event.stream_id)
            case WindowUpdated() | RemoteSettingsChanged():
                async with self.window:
                    self.window.notify_all()
            case _:
                pass

    def _open(self, stream_id: int, group: asyncio.TaskGroup) -> None:
        stream = self._streams[stream_id]
        self._count += 1
        stream.exchange = Http2Exchange(self, stream_id)
        request = Request(
            connection=self._number,
            number_on_connection=self._count,
            http="2",
            method=stream.headers.get(":method", ""),
            path=stream.headers.get(":path", ""),
            headers={name: value for name, value in stream.headers.items() if not name.startswith(":")},
            body=bytes(stream.body),
        )
        stream.task = group.create_task(self._run(stream_id, request, stream.exchange))

    async def _run(self, stream_id: int, request: Request, exchange: Http2Exchange) -> None:
        try:
            await self._app(request, exchange)
        except ClientGone:
            pass
        finally:
            self._streams.pop(stream_id, None)
        if self._leaving and self.idle:
            await self.close()

    def _abandon(self, stream_id: int) -> None:
        stream = self._streams.get(stream_id)
        if stream is None or stream.exchange is None or stream.task is None:
            self._streams.pop(stream_id, None)
            return
        stream.exchange.client_gone = not self.broken
        stream.task.cancel()

    def _abandon_all(self) -> None:
        for stream_id in list(self._streams):
            self._abandon(stream_id)


class Http2Exchange:
    """One answer on its own stream, within the client's flow-control windows."""

    def __init__(self, connection: Http2Connection, stream_id: int) -> None:
        self.client_gone = False
        self.resting = False
        self._connection = connection
        self._h2 = connection.h2
        self._stream_id = stream_id

    async def start(self, status: int, headers: Mapping[str, str]) -> None:
        with self._open():
            self._h2.send_headers(self._stream_id, [(":status", str(status)), *headers.items()])
        await self._connection.flush()

    async def write(self, data: bytes) -> None:
        while data:
            room = await self._room()
            with self._open():
                self._h2.send_data(self._stream_id, data[:room])
            await self._connection.flush()
            data = data[room:]

    async def finish(self) -> None:
        with self._open():
            self._h2.end_stream(self._stream_id)
        await self._connection.flush()

    async def close(self) -> None:
        await self._connection.close()

    async def reset(self) -> None:
        await self._connection.reset()

    async def reset_stream(self) -> None:
        with self._open():
            self._h2.reset_stream(self._stream_id, ErrorCodes.INTERNAL_ERROR)
        await self._connection.flush()

    async def goaway(self, *, processed: bool) -> None:
        await self._connection.goaway(self._stream_id if processed else max(0, self._stream_id - 2))

    async def upgrade(self, headers: Mapping[str, str]) -> None:
        raise NotImplementedError("WebSocket over HTTP/2 (RFC 8441) is nothing a model server offers")

    async def read(self) -> bytes:
        raise NotImplementedError

    async def _room(self) -> int:
        async with self._connection.window:
            while True:
                with self._open():
                    window = self._h2.local_flow_control_window(self._stream_id)
                if window > 0:
                    return min(window, self._h2.max_outbound_frame_size)
                await self._connection.window.wait()

    @contextmanager
    def _open(self) -> Iterator[None]:
        """h2 may know of a reset before this answer's task has been told."""
        if self.client_gone or self._connection.broken:
            raise ClientGone
        try:
            yield
        except ProtocolError as error:
            self.client_gone = True
            raise ClientGone from error
