"""The customers of the three paths: each asks a question and notes when it saw the first text and the last."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

import httpx
import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

from tests.support.client import decode

# What a first frame says of who comes: `identity` or `token`.
Credentials = dict[str, str]
_COMPACT = msgspec.json.Encoder()


@dataclass(frozen=True, slots=True)
class Timing:
    """Monotonic seconds, which all processes of this machine share.

    `bytes_read` counts the frames that carried the answer, `as_json` the same frames as compact UTF-8 JSON.
    `retrieval_ms` is what the path itself says of its search; ours is read from the product's records by `turn`.
    """

    asked_s: float
    first_s: float
    last_s: float
    bytes_read: int
    as_json: int = 0
    frames: int = 0
    retrieval_ms: float = 0.0
    turn: str = ""


class Client(Protocol):
    async def __aenter__(self) -> Self: ...
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    async def ask(self, question: str) -> Timing:
        """Returns after the answer's last text."""


class Traditional:
    """Path (a): every message is a request of its own on a connection of its own."""

    def __init__(self, host: str, credentials: Credentials) -> None:
        self._url = f"http://{host}/traditional"
        self._headers = {"Authorization": f"Bearer {json.dumps(credentials)}"}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    async def ask(self, question: str) -> Timing:
        asked, first, last, size, frames, retrieval_ms = time.monotonic(), 0.0, 0.0, 0, 0, 0.0
        async with (
            httpx.AsyncClient(timeout=60) as client,
            client.stream("POST", self._url, json={"text": question}, headers=self._headers) as response,
        ):
            response.raise_for_status()
            async for line in response.aiter_lines():
                if line.startswith('data: {"text"'):
                    last = time.monotonic()
                    first = first or last
                    size += len(line) + 2
                    frames += 1
                elif line.startswith('data: {"retrieval_ms"'):
                    retrieval_ms = json.loads(line[6:])["retrieval_ms"]
        return Timing(asked, first, last, size, size, frames, retrieval_ms)


class Modern:
    """Path (b): one socket, JSON frames."""

    def __init__(self, host: str, credentials: Credentials) -> None:
        self._connecting = connect(f"ws://{host}/modern")
        self._credentials = credentials
        self._socket: ClientConnection

    async def __aenter__(self) -> Self:
        self._socket = await self._connecting.__aenter__()
        await self._socket.send(json.dumps(self._credentials))
        await self._socket.recv()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._connecting.__aexit__(kind, error, trace)

    async def ask(self, question: str) -> Timing:
        asked, first, last, size, frames = time.monotonic(), 0.0, 0.0, 0, 0
        await self._socket.send(json.dumps({"text": question}))
        while True:
            raw = await self._socket.recv()
            frame = json.loads(raw)
            if frame["type"] == "token":
                last = time.monotonic()
                first = first or last
                size += len(raw)
                frames += 1
            elif frame["type"] == "done":
                return Timing(asked, first, last, size, size, frames, frame["retrieval_ms"])


class Ours:
    """Path (c): the product's own line, as its widget speaks it."""

    def __init__(self, host: str, credentials: Credentials) -> None:
        self._connecting = connect(
            f"ws://{host}/ws/customer", subprotocols=[Subprotocol("chatsvc.v1.msgpack")], max_size=None
        )
        self._credentials = credentials
        self._socket: ClientConnection
        self._conversation = ""
        self._asked = self._drafted = 0

    async def __aenter__(self) -> Self:
        self._socket = await self._connecting.__aenter__()
        await self._socket.send(json.dumps({"type": "hello", **self._credentials}))
        while (frame := decode(await self._socket.recv()))["type"] != "welcome":
            pass
        self._conversation = frame["conversation"]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._connecting.__aexit__(kind, error, trace)

    async def ask(self, question: str) -> Timing:
        asked, first, last, size, as_json, frames, turn = time.monotonic(), 0.0, 0.0, 0, 0, 0, ""
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
                as_json += len(_COMPACT.encode(frame))
                frames += 1
            elif frame["type"] == "turn.started":
                turn = frame["turn"]
            elif frame["type"] == "turn.ended":
                if frame["end"] != "finished":
                    raise RuntimeError(f"a turn ended as {frame['end']}")
                return Timing(asked, first, last, size, as_json, frames, turn=turn)

    async def write(self, text: str) -> None:
        """Tells what is being written; nothing answers."""
        self._drafted += 1
        draft = {"type": "draft", "conversation": self._conversation, "text": text, "number": self._drafted}
        await self._socket.send(json.dumps(draft))
