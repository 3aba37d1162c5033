"""The customers of the three paths: each asks a question and notes when it saw the first text and the last."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

import httpx
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

from tests.support.client import decode


@dataclass(frozen=True, slots=True)
class Timing:
    """Monotonic seconds, which all processes of this machine share. `bytes_read` counts what carried the answer."""

    asked_s: float
    first_s: float
    last_s: float
    bytes_read: int


class Client(Protocol):
    async def __aenter__(self) -> Self: ...
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    async def ask(self, question: str) -> Timing:
        """Returns after the answer's last text."""


class Traditional:
    """Path (a): every message is a request of its own on a connection of its own."""

    def __init__(self, host: str, identity: str) -> None:
        self._url = f"http://{host}/traditional"
        self._headers = {"Authorization": f"Bearer {identity}"}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    async def ask(self, question: str) -> Timing:
        asked, first, size = time.monotonic(), 0.0, 0
        async with (
            httpx.AsyncClient(timeout=60) as client,
            client.stream("POST", self._url, json={"text": question}, headers=self._headers) as response,
        ):
            response.raise_for_status()
            async for chunk in response.aiter_bytes():
                first = first or time.monotonic()
                size += len(chunk)
        return Timing(asked, first, time.monotonic(), size)


class Modern:
    """Path (b): one socket, JSON frames."""

    def __init__(self, host: str, identity: str) -> None:
        self._connecting = connect(f"ws://{host}/modern")
        self._identity = identity
        self._socket: ClientConnection

    async def __aenter__(self) -> Self:
        self._socket = await self._connecting.__aenter__()
        await self._socket.send(json.dumps({"identity": self._identity}))
        await self._socket.recv()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._connecting.__aexit__(kind, error, trace)

    async def ask(self, question: str) -> Timing:
        asked, first, last, size = time.monotonic(), 0.0, 0.0, 0
        await self._socket.send(json.dumps({"text": question}))
        while True:
            raw = await self._socket.recv()
            frame = json.loads(raw)
            if frame["type"] == "token":
                last = time.monotonic()
                first = first or last
                size += len(raw)
            elif frame["type"] == "done":
                return Timing(asked, first, last, size)


class Ours:
    """Path (c): the product's own line, as its widget speaks it."""

    def __init__(self, host: str, identity: str) -> None:
        self._connecting = connect(
            f"ws://{host}/ws/customer", subprotocols=[Subprotocol("chatsvc.v1.msgpack")], max_size=None
        )
        self._identity = identity
        self._socket: ClientConnection
        self._conversation = ""
        self._asked = 0

    async def __aenter__(self) -> Self:
        self._socket = await self._connecting.__aenter__()
        await self._socket.send(json.dumps({"type": "hello", "identity": self._identity}))
        while (frame := decode(await self._socket.recv()))["type"] != "welcome":
            pass
        self._conversation = frame["conversation"]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._connecting.__aexit__(kind, error, trace)

    async def ask(self, question: str) -> Timing:
        asked, first, last, size = time.monotonic(), 0.0, 0.0, 0
        self._asked += 1
        message = {
            "type": "message.send",
            "id": f"{self._conversation}-{self._asked}",
            "conversation": self._conversation,
            "text": question,
        }
        await self._socket.send(json.dumps(message))
        while True:
            raw = await self._socket.recv()
            frame = decode(raw)
            if frame["type"] == "delta":
                last = time.monotonic()
                first = first or last
                size += len(raw)
            elif frame["type"] == "turn.ended":
                if frame["end"] != "finished":
                    raise RuntimeError(f"a turn ended as {frame['end']}")
                return Timing(asked, first, last, size)
