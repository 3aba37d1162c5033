"""HTTP/1.1 with keep-alive, on h11."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import h11

from tests.fakes.transport.exchange import App, ClientGone, Request
from tests.fakes.transport.link import Link


class Http1Connection:
    """One connection, one request at a time."""

    def __init__(self, link: Link, app: App, *, number: int, idle_close_s: float = 0.0) -> None:
        self._link = link
        self._app = app
        self._number = number
        self._idle_close_s = idle_close_s
        self._h11 = h11.Connection(h11.SERVER)
        self._exchange: Http1Exchange | None = None
        self._answering = False

    @property
    def idle(self) -> bool:
        """Between two requests as the client sees it, or upgraded and at rest."""
        return not self._answering or (self._exchange is not None and self._exchange.resting)

    async def serve(self) -> None:
        """Until either side has had enough."""
        count = 0
        while (request := await self._next_request(count + 1)) is not None:
            count += 1
            self._answering = True
            exchange = self._exchange = Http1Exchange(self._link, self._h11)
            await self._answer(request, exchange)
            self._answering = False
            if exchange.last or self._h11.our_state is not h11.DONE:
                break
            self._h11.start_next_cycle()
        if self._exchange is None or not self._exchange.broken:
            await self._link.close()

    async def goaway(self) -> None:
        """The nearest thing HTTP/1.1 has: ends after the exchange under way."""
        if self._exchange is not None:
            self._exchange.last = True
        if self.idle:
            await self._link.close()

    async def _answer(self, request: Request, exchange: Http1Exchange) -> None:
        async with asyncio.TaskGroup() as group:
            answering = group.create_task(_run(self._app, request, exchange))
            watching = group.create_task(self._watch(answering, exchange))
            answering.add_done_callback(lambda _: watching.cancel())

    async def _watch(self, answering: asyncio.Task[None], exchange: Http1Exchange) -> None:
        """Notices a client that leaves while we speak. A half-close counts as leaving."""
        while data := await self._link.read():
            if exchange.upgraded:
                exchange.feed(data)
            else:
                self._h11.receive_data(data)
        if exchange.broken:
            exchange.feed(b"")
            return  # we left, not the client
        exchange.client_gone = exchange.last = True
        answering.cancel()

    async def _next_request(self, number: int) -> Request | None:
        head: h11.Request | None = None
        body = bytearray()
        try:
            while True:
                event = self._h11.next_event()
                if event is h11.NEED_DATA:
                    self._h11.receive_data(await self._read(idle=head is None))
                elif isinstance(event, h11.Request):
                    head = event
                elif isinstance(event, h11.Data):
                    body += event.data
                elif isinstance(event, h11.EndOfMessage) and head is not None:
                    return self._request(head, bytes(body), number)
                else:
                    return None
        except (h11.RemoteProtocolError, ClientGone):
            return None

    async def _read(self, *, idle: bool) -> bytes:
        if not (idle and self._idle_close_s):
            return await self._link.read()
        try:
            async with asyncio.timeout(self._idle_close_s):
                return await self._link.read()
        except TimeoutError:
            raise ClientGone from None

    def _request(self, head: h11.Request, body: bytes, number: int) -> Request:
        return Request(
            connection=self._number,
            number_on_connection=number,
            http="1.1",
            method=head.method.decode(),
            path=head.target.decode("latin-1"),
            headers={name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers},
            body=body,
        )


class Http1Exchange:
    """One answer. `last` ends the connection after it; `broken` says the socket is already gone."""

    def __init__(self, link: Link, connection: h11.Connection) -> None:
        self.client_gone = False
        self.last = False
        self.broken = False
        self.resting = False
        self.upgraded = False
        self._link = link
        self._h11 = connection
        self._received: asyncio.Queue[bytes] = asyncio.Queue()

    async def start(self, status: int, headers: Mapping[str, str]) -> None:
        head = h11.Response(status_code=status, headers=list(headers.items()))
        await self._send(self._h11.send(head))

    async def write(self, data: bytes) -> None:
        await self._send(data if self.upgraded else self._h11.send(h11.Data(data=data)))

    async def finish(self) -> None:
        await self._send(self._h11.send(h11.EndOfMessage()))
        self.resting = True  # to the client it is over, though the task that answers has yet to end

    async def close(self) -> None:
        self.last = self.broken = True
        await self._link.close()

    async def reset(self) -> None:
        self.last = self.broken = True
        await self._link.reset()

    async def reset_stream(self) -> None:
        await self.reset()

    async def goaway(self, *, processed: bool) -> None:
        self.last = True

    async def upgrade(self, headers: Mapping[str, str]) -> None:
        head = h11.InformationalResponse(status_code=101, headers=list(headers.items()))
        await self._send(self._h11.send(head))
        early, _ = self._h11.trailing_data
        self.upgraded = self.last = True
        if early:
            self.feed(early)

    def feed(self, data: bytes) -> None:
        self._received.put_nowait(data)

    async def read(self) -> bytes:
        return await self._received.get()

    async def _send(self, data: bytes | None) -> None:
        if self.client_gone:
            raise ClientGone
        try:
            await self._link.write(data or b"")
        except ClientGone:
            self.client_gone = self.last = True
            raise


async def _run(app: App, request: Request, exchange: Http1Exchange) -> None:
    try:
        await app(request, exchange)
    except ClientGone:
        exchange.last = True
