"""The HTTP edge of the lines: `/api/v1/{stream,poll,frames}/{customer,agent}`, for clients without a WebSocket.

Plain ASGI: under Django's synchronous middleware every waiting request would hold a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeAlias

from apps.gateway.events import CONTENT_TYPE, HEARTBEAT, PADDING, opened_event
from apps.gateway.origins import header
from apps.gateway.relay import Relay
from apps.gateway.streams import PEERS, POLL_WAIT_S, Errand, Line, Lines, Outcome
from apps.wire.protocol import FRAME_LIMIT_BYTES

Scope: TypeAlias = dict[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[dict[str, Any]]]
Send: TypeAlias = Callable[[dict[str, Any]], Awaitable[None]]
Headers: TypeAlias = Iterable[tuple[bytes, bytes]]

PREFIX = "/api/v1/"
BODY_DEADLINE_S = 10.0
HEARTBEAT_S = 15.0
NUMBER_LIMIT = 15  # digits
_JSON = "application/json"
_NEVER_KEPT = ((b"cache-control", b"no-store, no-transform"), (b"x-content-type-options", b"nosniff"))
# nginx and those who copied it stream where they are told so; others are told by the type and the padding.
_STREAMED = ((b"content-type", CONTENT_TYPE.encode()), (b"x-accel-buffering", b"no"), *_NEVER_KEPT)
_POLLED = ((b"content-type", b"text/plain; charset=utf-8"), *_NEVER_KEPT)


class HttpLines:
    """An ASGI application for the addresses that `takes` names."""

    def __init__(self, lines: Lines, relay: Relay) -> None:
        self._lines = lines
        self._relay = relay
        self._edges = {"stream": self._stream, "poll": self._poll, "frames": self._frames}

    @staticmethod
    def takes(path: str) -> bool:
        """Whether the path is an address of this edge."""
        edge, _, kind = path.removeprefix(PREFIX).partition("/")
        return path.startswith(PREFIX) and edge in ("stream", "poll", "frames") and kind in PEERS

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        edge, _, kind = scope["path"].removeprefix(PREFIX).partition("/")
        request = _Request(scope, receive, send, kind)
        if scope["method"] == "OPTIONS":
            await request.answer(Outcome(204), request.preflight())
        elif scope["method"] != "POST":
            await request.answer(Outcome(405), ((b"allow", b"POST"),))
        elif not self._lines.peer(kind, scope).may_connect() or not request.is_json:
            await request.answer(Outcome(403))
        elif (body := await request.body()) is None:
            await request.answer(Outcome(413))
        else:
            await self._edges[edge](request, body)

    async def _stream(self, request: _Request, body: str) -> None:
        line = self._open(request, body, "stream")
        if line is None:
            await request.answer(Outcome(503))
            return
        gone = self._lines.office.runtime.spawn(request.until_gone(line), "line's end")
        try:
            await request.start(200, _STREAMED)
            await request.finish(await self._told(request, line))
        finally:
            gone.cancel()
            line.end()

    async def _told(self, request: _Request, line: Line) -> str:
        """Tells until the end; the last events, also for a reader that did not read."""
        try:
            async with asyncio.timeout(None) as patience:
                line.peer.too_slow = lambda: patience.reschedule(asyncio.get_running_loop().time())
                events, ended = opened_event(line.id) + PADDING, False
                while not ended:
                    await request.write(events or HEARTBEAT)
                    events, ended = await line.events(HEARTBEAT_S)
                return events
        except TimeoutError:
            return line.last_word()

    async def _poll(self, request: _Request, body: str) -> None:
        line_id, number = request.line, request.number
        if not line_id:
            line = self._open(request, body, "poll")
            if line is None:
                await request.answer(Outcome(503))
                return
            line_id, number = line.id, 1
        outcome = await self._relay.run(
            Errand(line_id, request.kind, number, cookie=request.cookie, wait_s=request.wait_s)
        )
        await request.answer(outcome, _POLLED)

    async def _frames(self, request: _Request, body: str) -> None:
        errand = Errand(request.line, request.kind, request.number, cookie=request.cookie, frames=body)
        await request.answer(await self._relay.run(errand))

    def _open(self, request: _Request, hello: str, transport: str) -> Line | None:
        line = self._lines.open(self._lines.peer(request.kind, request.scope), transport)
        if line is not None:
            line.say(hello)
        return line


class _Request:
    """One request and its answer."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, kind: str) -> None:
        self.scope = scope
        self.kind = kind
        self._receive = receive
        self._send = send

    @property
    def line(self) -> str:
        return header(self.scope, b"chatsvc-line")

    @property
    def number(self) -> int:
        """From 1 in each of polls and frames; 0, which is always a repeat, where it is none."""
        text = header(self.scope, b"chatsvc-number")
        return int(text) if text.isascii() and text.isdigit() and len(text) <= NUMBER_LIMIT else 0

    @property
    def wait_s(self) -> float:
        text = header(self.scope, b"chatsvc-wait")
        return min(POLL_WAIT_S, float(text)) if text.isascii() and text.isdigit() else POLL_WAIT_S

    @property
    def cookie(self) -> str:
        return header(self.scope, b"cookie")

    @property
    def is_json(self) -> bool:
        # No form and no simple request of another site can say so.
        return header(self.scope, b"content-type").partition(";")[0].strip() == _JSON

    async def body(self) -> str | None:
        """None for what is too large, too slow, no text, or was broken off."""
        pieces, size = [], 0
        try:
            async with asyncio.timeout(BODY_DEADLINE_S):
                while True:
                    event = await self._receive()
                    piece = event.get("body", b"")
                    size += len(piece)
                    if event["type"] != "http.request" or size > FRAME_LIMIT_BYTES:
                        return None
                    pieces.append(piece)
                    if not event.get("more_body", False):
                        return b"".join(pieces).decode()
        except (TimeoutError, UnicodeDecodeError):
            return None

    async def until_gone(self, line: Line) -> None:
        """Ends the line with its response's reader."""
        while (await self._receive())["type"] != "http.disconnect":
            pass
        line.end()

    def preflight(self) -> Headers:
        """Another site's page may speak for a customer, whom no cookie makes known; never for an agent."""
        if self.kind != "customer":
            return ()
        return (
            (b"access-control-allow-methods", b"POST"),
            (b"access-control-allow-headers", b"content-type, chatsvc-line, chatsvc-number, chatsvc-wait"),
            (b"access-control-max-age", b"86400"),
        )

    async def answer(self, outcome: Outcome, headers: Headers = _NEVER_KEPT) -> None:
        body = outcome.body.encode()
        await self.start(outcome.status, (*headers, (b"content-length", str(len(body)).encode())))
        await self._send({"type": "http.response.body", "body": body})

    async def start(self, status: int, headers: Headers) -> None:
        """What the answer is, and for a customer's page of another site that it may be read."""
        origin = header(self.scope, b"origin")
        shared = ((b"access-control-allow-origin", origin.encode("latin-1")), (b"vary", b"origin"))
        read_by = shared if origin and self.kind == "customer" else ()
        await self._send({"type": "http.response.start", "status": status, "headers": [*headers, *read_by]})

    async def write(self, events: str) -> None:
        await self._send({"type": "http.response.body", "body": events.encode(), "more_body": True})

    async def finish(self, events: str) -> None:
        await self._send({"type": "http.response.body", "body": events.encode()})
