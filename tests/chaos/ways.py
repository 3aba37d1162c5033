"""Three ways to carry the same frames: a WebSocket, a streamed response with POSTs, and long polls with POSTs."""

from __future__ import annotations

import asyncio
import json
import random
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from aiohttp import ClientError, ClientResponse, ClientSession, ClientTimeout, DummyCookieJar
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidMessage
from websockets.typing import Subprotocol

from apps.llm.sse import SseParser
from tests.support.client import decode

Frame = dict[str, Any]

_SUBPROTOCOLS = ("chatsvc.v1.msgpack", "chatsvc.v1.json")
_JSON = {"Content-Type": "application/json"}
# As static/js/wire/posts.js and long-poll.js, in the shorter time of the schedules.
_TRIES = 4
_ANSWER_S = 3.0
_AGAIN_S = 0.2
_LOST = 1006


class Ended(Exception):
    """The line is over, with this close code."""

    def __init__(self, code: int = _LOST) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True, slots=True)
class Caller:
    """Who opens lines. `host` is asked before each request: any process will do."""

    kind: str  # "customer" or "agent"
    host: Callable[[], str]
    headers: Mapping[str, str]
    rng: random.Random


class Way(ABC):
    """One open line. Whatever ends it is raised as `Ended`."""

    name = ""

    @classmethod
    @abstractmethod
    async def open(cls, caller: Caller, hello: str) -> Way:
        """Opens a line with its first frame."""

    @abstractmethod
    async def say(self, frames: list[str]) -> None:
        """Returns when they are on their way."""

    @abstractmethod
    async def hear(self) -> Frame:
        """The next frame."""

    @abstractmethod
    async def drop(self) -> None:
        """Leaves it without a word."""


class Socket(Way):
    name = "WebSocket"

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket

    @classmethod
    async def open(cls, caller: Caller, hello: str) -> Socket:
        try:
            socket = await connect(
                f"ws://{caller.host()}/ws/{caller.kind}",
                subprotocols=[Subprotocol(caller.rng.choice(_SUBPROTOCOLS))],
                additional_headers=caller.headers,
                max_size=None,
                ping_interval=None,
                compression=None,
                close_timeout=0.2,
                open_timeout=None,
                proxy=None,
            )
        except (OSError, InvalidHandshake, InvalidMessage, EOFError) as error:
            raise Ended from error
        line = cls(socket)
        await line.say([hello])
        return line

    async def say(self, frames: list[str]) -> None:
        try:
            for text in frames:
                await self._socket.send(text)
        except ConnectionClosed as closed:
            raise self._over() from closed

    async def hear(self) -> Frame:
        try:
            return decode(await self._socket.recv())
        except ConnectionClosed as closed:
            raise self._over() from closed

    def _over(self) -> Ended:
        return Ended(self._socket.close_code or _LOST)

    async def drop(self) -> None:
        self._socket.transport.abort()


class _Http(Way):
    """What the two ways over HTTP share: POSTs with numbers, each repeated until it was answered."""

    edge = ""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._http = ClientSession(headers={**caller.headers, **_JSON}, cookie_jar=DummyCookieJar())
        self._line = ""
        self._posted = 0
        self._events = SseParser()
        self._heard: deque[Frame | Ended] = deque()

    @classmethod
    async def open(cls, caller: Caller, hello: str) -> Way:
        line = cls(caller)
        try:
            await line.begin(hello)
        except BaseException:
            await line.drop()
            raise
        return line

    @abstractmethod
    async def begin(self, hello: str) -> None:
        """Returns when the line has its id."""

    @abstractmethod
    async def listen(self) -> None:
        """Feeds what comes next."""

    async def say(self, frames: list[str]) -> None:
        self._posted += 1
        await self._post("frames", "\n".join(frames), self._posted)

    async def hear(self) -> Frame:
        while not self._heard:
            await self.listen()
        next_up = self._heard.popleft()
        if isinstance(next_up, Ended):
            raise next_up
        return next_up

    async def drop(self) -> None:
        await self._http.close()

    def _address(self, edge: str) -> str:
        return f"http://{self._caller.host()}/api/v1/{edge}/{self._caller.kind}"

    async def _post(self, edge: str, body: str, number: int) -> bytes:
        """To any process, the same again where the answer was lost: its number says that it is the same."""
        for tried in range(_TRIES):
            await asyncio.sleep(_AGAIN_S * tried)
            with suppress(ClientError, OSError, TimeoutError):
                async with self._http.post(
                    self._address(edge),
                    data=body,
                    headers={"Chatsvc-Line": self._line, "Chatsvc-Number": str(number)},
                    timeout=ClientTimeout(total=_ANSWER_S),
                ) as answer:
                    if answer.ok:
                        return await answer.read()
                    if answer.status < 500:
                        break
        raise Ended

    def feed(self, data: bytes) -> None:
        for event in self._events.feed(data):
            said = json.loads(event.data)
            if event.name == "opened":
                self._line = said["line"]
            else:
                self._heard.append(Ended(said["code"]) if event.name == "closed" else said)


class Stream(_Http):
    name = "stream"
    _response: ClientResponse | None = None

    async def begin(self, hello: str) -> None:
        try:
            self._response = await self._http.post(
                self._address("stream"), data=hello, timeout=ClientTimeout(total=None)
            )
            self._response.raise_for_status()
            while not self._line:
                await self.listen()
        except (ClientError, OSError) as error:
            raise Ended from error

    async def drop(self) -> None:
        if self._response is not None:
            self._response.close()
        await super().drop()

    async def listen(self) -> None:
        assert self._response is not None
        try:
            data = await self._response.content.readany()
        except (ClientError, OSError) as error:
            raise Ended from error
        if not data:
            raise Ended
        self.feed(data)


class Poll(_Http):
    name = "polls"
    _polled = 1

    async def begin(self, hello: str) -> None:
        try:
            async with self._http.post(
                self._address("poll"), data=hello, timeout=ClientTimeout(total=_ANSWER_S)
            ) as answer:
                answer.raise_for_status()
                self.feed(await answer.read())
        except (ClientError, OSError) as error:
            raise Ended from error

    async def listen(self) -> None:
        self._polled += 1
        self.feed(await self._post("poll", "", self._polled))
