"""What the model server saw: for tests to assert on and for the bench to count."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import msgspec

from tests.fakes.transport.exchange import ClientGone, Exchange, Request

KEPT_REQUESTS = 5_000


class Counts(msgspec.Struct, kw_only=True):
    """Totals since the start or since `forget`; the `…_open` ones are of this moment."""

    connections_opened: int = 0
    connections_open: int = 0
    tls_handshakes: int = 0
    tls_resumed: int = 0
    tls_failures: int = 0
    requests: int = 0
    requests_open: int = 0
    stalled: int = 0  # answers standing at a stall right now
    finished: int = 0
    aborts: int = 0  # the client left before its answer's end
    tokens_sent: int = 0
    sockets_opened: int = 0  # WebSockets
    sockets_open: int = 0
    sockets_refused: int = 0
    sockets_expired: int = 0
    creates_queued: int = 0  # `response.create` that had to wait for its lane or a place
    creates_refused: int = 0  # client events that never became a response
    crashes: int = 0  # bugs of the fake itself


class Seen(msgspec.Struct, kw_only=True):
    """One request. `ended` is empty while it runs, then finished, aborted, stopped or the fault's name."""

    serial: int
    connection: int
    number_on_connection: int
    http: str
    method: str
    path: str
    headers: Mapping[str, str]
    body: str
    prompt_tokens: int = 0
    cached_tokens: int = 0
    tokens_sent: int = 0
    received_s: float = 0.0  # monotonic, which processes of one machine share
    first_token_s: float = 0.0
    ended: str = ""
    # Of the Responses API.
    stream_id: str = ""
    previous_response_id: str = ""
    input_items: int = 0
    generate: bool = True


class Ledger:
    """Lives on the server's loop. Is the listener's observer."""

    def __init__(self) -> None:
        self.counts = Counts()
        self.requests: deque[Seen] = deque(maxlen=KEPT_REQUESTS)
        self.crashes: list[str] = []
        self._changed = asyncio.Event()

    def forget(self) -> None:
        """Starts counting anew; what is open stays open."""
        self.counts = Counts(
            connections_open=self.counts.connections_open,
            requests_open=self.counts.requests_open,
            stalled=self.counts.stalled,
            sockets_open=self.counts.sockets_open,
        )
        self.requests.clear()
        self.crashes.clear()
        self.changed()

    def changed(self) -> None:
        self._changed.set()

    async def next_change(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    def connection_opened(self) -> int:
        self.counts.connections_opened += 1
        self.counts.connections_open += 1
        self.changed()
        return self.counts.connections_opened

    def connection_closed(self) -> None:
        self.counts.connections_open -= 1
        self.changed()

    def handshake_finished(self, *, resumed: bool) -> None:
        self.counts.tls_handshakes += 1
        self.counts.tls_resumed += resumed
        self.changed()

    def handshake_failed(self) -> None:
        self.counts.tls_failures += 1
        self.changed()

    def crashed(self, error: BaseException) -> None:
        self.counts.crashes += 1
        self.crashes.append(repr(error))
        self.changed()

    @contextmanager
    def socket(self) -> Iterator[None]:
        """While a WebSocket is open."""
        self.counts.sockets_opened += 1
        self.counts.sockets_open += 1
        self.changed()
        try:
            yield
        finally:
            self.counts.sockets_open -= 1
            self.changed()

    def socket_refused(self) -> None:
        self.counts.sockets_refused += 1
        self.changed()

    def socket_expired(self) -> None:
        self.counts.sockets_expired += 1
        self.changed()

    def create_queued(self) -> None:
        self.counts.creates_queued += 1
        self.changed()

    def create_refused(self) -> None:
        self.counts.creates_refused += 1
        self.changed()

    @contextmanager
    def watching(self, request: Request, exchange: Exchange) -> Iterator[Seen]:
        """Records one request from its arrival to its end, whatever that is."""
        self.counts.requests += 1
        self.counts.requests_open += 1
        seen = Seen(
            serial=self.counts.requests,
            connection=request.connection,
            number_on_connection=request.number_on_connection,
            http=request.http,
            method=request.method,
            path=request.path,
            headers=request.headers,
            body=request.body.decode(errors="replace"),
            received_s=time.monotonic(),
        )
        self.requests.append(seen)
        self.changed()
        try:
            yield seen
            seen.ended = seen.ended or "finished"
        except (ClientGone, asyncio.CancelledError):
            seen.ended = seen.ended or ("aborted" if exchange.client_gone else "stopped")
            raise
        finally:
            self.counts.requests_open -= 1
            self.counts.finished += seen.ended == "finished"
            self.counts.aborts += seen.ended == "aborted"
            self.changed()

    def token_sent(self, seen: Seen) -> None:
        if not seen.tokens_sent:
            seen.first_token_s = time.monotonic()
        seen.tokens_sent += 1
        self.counts.tokens_sent += 1
        self.changed()

    @contextmanager
    def standing(self) -> Iterator[None]:
        """While an answer stands still."""
        self.counts.stalled += 1
        self.changed()
        try:
            yield
        finally:
            self.counts.stalled -= 1
            self.changed()
