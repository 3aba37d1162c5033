"""A client that speaks the wire over plain HTTP, by a stream or by polls, with the face of the WebSocket's client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Literal

import httpx

from apps.llm.sse import SseEvent, SseParser
from tests.support.client import DEADLINE_S, Client, Frame

Transport = Literal["stream", "poll"]
JSON = {"Content-Type": "application/json"}


class LineClosed(Exception):
    """The server ended the line with this code and reason, or without a word (1006)."""

    def __init__(self, code: int = 1006, reason: str = "") -> None:
        super().__init__(code, reason)
        self.code = code
        self.reason = reason


class HttpSocket:
    """What `Client` needs of a socket. The first text sent opens the line."""

    def __init__(self, http: httpx.AsyncClient, kind: str, transport: Transport, posts_to: str) -> None:
        self.http = http
        self.kind = kind
        self.transport = transport
        self.posts_to = posts_to  # another process, perhaps
        self.id = ""
        self.posted = 0
        self.polled = 1
        self.response: httpx.Response | None = None
        self._chunks: AsyncIterator[bytes] | None = None
        self._parser = SseParser()
        self._events: list[SseEvent] = []

    async def send(self, text: str) -> None:
        if self.id:
            self.posted += 1
            answer = await self.post(text, self.posted)
            assert answer.status_code == 204, answer
            return
        url = f"/api/v1/{self.transport}/{self.kind}"
        request = self.http.build_request("POST", url, content=text, headers=JSON)
        self.response = await self.http.send(request, stream=self.transport == "stream")
        self.response.raise_for_status()
        if self.transport == "stream":
            self._chunks = self.response.aiter_raw()
        else:
            self._feed(self.response.content)
        event = await self._next()
        assert event.name == "opened"
        self.id = json.loads(event.data)["line"]

    async def post(self, text: str, number: int, line: str | None = None, **headers: str) -> httpx.Response:
        """Frames for the line."""
        named = {"Chatsvc-Line": self.id if line is None else line, "Chatsvc-Number": str(number)}
        url = f"{self.posts_to}/api/v1/frames/{self.kind}"
        return await self.http.post(url, content=text, headers=JSON | named | headers)

    async def poll(self, number: int, wait_s: int | None = None) -> httpx.Response:
        named = {"Chatsvc-Line": self.id, "Chatsvc-Number": str(number)}
        if wait_s is not None:
            named["Chatsvc-Wait"] = str(wait_s)
        return await self.http.post(f"{self.posts_to}/api/v1/poll/{self.kind}", headers=JSON | named)

    async def recv(self) -> str:
        """The next frame. Raises `LineClosed`."""
        event = await self._next()
        if event.name == "closed":
            said = json.loads(event.data)
            raise LineClosed(said["code"], said["reason"])
        return event.data

    async def _next(self) -> SseEvent:
        while not self._events:
            if self.transport == "stream":
                assert self._chunks is not None
                try:
                    self._feed(await anext(self._chunks))
                except (StopAsyncIteration, httpx.HTTPError):
                    raise LineClosed from None
            else:
                self.polled += 1
                answer = await self.poll(self.polled)
                if answer.status_code != 200:
                    raise LineClosed
                self._feed(answer.content)
        return self._events.pop(0)

    def _feed(self, data: bytes) -> None:
        self._events += self._parser.feed(data)


class HttpClient(Client):
    """One line over HTTP, with the journal and the waits of `Client`."""

    def __init__(self, socket: HttpSocket) -> None:
        super().__init__(socket)  # type: ignore[arg-type]  # as much of a socket as is used
        self.line = socket

    async def closed(self, deadline_s: float = DEADLINE_S) -> tuple[int, str]:
        async with asyncio.timeout(deadline_s):
            try:
                while True:
                    await self._read()
            except LineClosed as closed:
                return closed.code, closed.reason


@asynccontextmanager
async def http_line(
    url: str,
    kind: str,
    transport: Transport,
    *,
    posts_to: str = "",
    headers: dict[str, str] | None = None,
    hello: Frame | None = None,
) -> AsyncIterator[HttpClient]:
    """A line that was opened with `hello`. A stream's response ends with the block."""
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=40.0) as http:
        socket = HttpSocket(http, kind, transport, posts_to or url)
        client = HttpClient(socket)
        await client.send(hello or {"type": "hello"})
        try:
            yield client
        finally:
            if socket.response is not None:
                with suppress(httpx.HTTPError):
                    await socket.response.aclose()


def said(**fields: Any) -> str:
    """A frame as a client writes it."""
    return json.dumps(fields)
