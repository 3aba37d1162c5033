"""The way an answer takes over a WebSocket: one text message an event, each with the name of its lane."""

from __future__ import annotations

import random

import msgspec

from tests.fakes.transport.websocket import Opcode, WebSocket, encode
from tests.fakes.upstream.channel import up_to_half_a_character
from tests.fakes.upstream.profile import Chunking, Dialect
from tests.fakes.upstream.shape import Json
from tests.fakes.upstream.sse import cut


class LaneChannel:
    """One answer's way over the socket. A value whose `stream_id` is None goes out without one."""

    def __init__(self, socket: WebSocket, lane: str | None, dialect: Dialect, rng: random.Random) -> None:
        self.started = False
        self._socket = socket
        self._lane = lane
        self._dialect = dialect
        self._rng = rng
        self._held: list[bytes] = []

    async def start(self) -> None:
        self.started = True

    async def event(self, value: Json) -> None:
        if self._dialect.unknown_events:
            await self.raw(b'{"type":"ping"}')
            await self.raw(msgspec.json.encode(self._addressed({"type": "response.mystery.tick", "x": [1]})))
        if self._dialect.obfuscation:
            value = {**value, "obfuscation": "x" * self._rng.randint(1, 16)}
        await self.raw(msgspec.json.encode(self._addressed(value)))

    async def raw(self, data: bytes) -> None:
        if self._dialect.chunking is Chunking.BURST:
            self._held.append(encode(Opcode.TEXT, data))
            return
        await self._socket.send(*self._pieces(data))

    async def sign_of_life(self) -> None:
        await self._socket.send(encode(Opcode.PING, b"alive?"))

    async def flush(self) -> None:
        held, self._held = self._held, []
        if held:
            await self._socket.send(b"".join(held))

    async def refuse(self, status: int, body: Json, retry_after: str) -> None:
        await self.event(body)
        await self.flush()

    async def error(self, value: Json) -> None:
        await self.event(value)
        await self.flush()

    async def finish(self) -> None:
        await self.flush()

    async def end(self) -> None:
        await self.flush()
        await self._socket.close(1000)

    async def cut_character(self, value: Json) -> None:
        payload = msgspec.json.encode(self._addressed(value))
        head = encode(Opcode.TEXT, payload).removesuffix(payload)
        await self._socket.send(head + up_to_half_a_character(payload))
        await self._socket.exchange.close()

    async def close(self) -> None:
        await self._socket.exchange.close()

    async def reset(self) -> None:
        await self._socket.exchange.reset()

    async def reset_stream(self) -> None:
        await self.reset()

    async def goaway(self, *, processed: bool) -> None:
        await self._socket.close(1012, "restart")

    async def misframe(self) -> None:
        await self._socket.send(encode(0x3, b"an opcode that is reserved"))

    def _addressed(self, value: Json) -> Json:
        if "stream_id" in value:  # a fault that names no stream
            return {name: given for name, given in value.items() if name != "stream_id"}
        return value if self._lane is None else {**value, "stream_id": self._lane}

    def _pieces(self, data: bytes) -> list[bytes]:
        if self._dialect.chunking is not Chunking.RANDOM:
            return list(cut(encode(Opcode.TEXT, data), self._dialect.chunking, self._rng))
        parts = list(cut(data, Chunking.RANDOM, self._rng))
        last = len(parts) - 1
        return [
            encode(Opcode.CONTINUATION if at else Opcode.TEXT, part, final=at == last)
            for at, part in enumerate(parts)
        ]
