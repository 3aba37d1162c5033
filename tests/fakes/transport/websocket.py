"""WebSocket by hand (RFC 6455, the server's side), so that a frame can be cut, garbled or never sent."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from tests.fakes.transport.exchange import ClientGone, Exchange, Request

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class Opcode(IntEnum):
    CONTINUATION = 0x0
    TEXT = 0x1
    BINARY = 0x2
    CLOSE = 0x8
    PING = 0x9
    PONG = 0xA


class NotWebSocket(Exception):
    """The client broke the protocol."""


@dataclass(frozen=True, slots=True)
class Frame:
    opcode: Opcode
    payload: bytes
    final: bool = True


def wants_upgrade(request: Request) -> bool:
    """Whether a request asks for a WebSocket."""
    return (
        request.http == "1.1"
        and request.method == "GET"
        and request.headers.get("upgrade", "").lower() == "websocket"
        and "sec-websocket-key" in request.headers
    )


def accepting(request: Request) -> dict[str, str]:
    """The headers of the 101 answer."""
    digest = hashlib.sha1(request.headers["sec-websocket-key"].encode() + _GUID)  # noqa: S324, the RFC says so
    accept = base64.b64encode(digest.digest()).decode()
    return {"upgrade": "websocket", "connection": "Upgrade", "sec-websocket-accept": accept}


def encode(opcode: int, payload: bytes, *, final: bool = True) -> bytes:
    """One frame of a server, which masks nothing."""
    first = (0x80 if final else 0) | opcode
    if len(payload) < 126:
        return struct.pack("!BB", first, len(payload)) + payload
    if len(payload) < 65_536:
        return struct.pack("!BBH", first, 126, len(payload)) + payload
    return struct.pack("!BBQ", first, 127, len(payload)) + payload


class FrameReader:
    """Bytes of a client to frames."""

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Raises `NotWebSocket` at a frame without a mask."""
        self._held += data
        while (frame := self._next()) is not None:
            yield frame

    def _next(self) -> Frame | None:
        held = self._held
        if len(held) < 2:
            return None
        if not held[1] & 0x80:
            raise NotWebSocket("a client's frame must be masked")
        size, at = held[1] & 0x7F, 2
        if size == 126:
            size, at = int.from_bytes(held[2:4], "big"), 4
        elif size == 127:
            size, at = int.from_bytes(held[2:10], "big"), 10
        end = at + 4 + size
        if len(held) < max(end, at + 4):
            return None
        mask, payload = bytes(held[at : at + 4]), bytes(held[at + 4 : end])
        frame = Frame(Opcode(held[0] & 0x0F), _unmasked(mask, payload), bool(held[0] & 0x80))
        del held[:end]
        return frame


def _unmasked(mask: bytes, payload: bytes) -> bytes:
    size = len(payload)
    key = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(payload, "big") ^ int.from_bytes(key, "big")).to_bytes(size, "big")


class WebSocket:
    """An upgraded exchange. Writers may be many: a message's bytes are never interleaved."""

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self._reader = FrameReader()
        self._frames: list[Frame] = []
        self._partial = bytearray()
        self._writing = asyncio.Lock()
        self._pong = asyncio.Event()
        self._over = False

    async def receive(self) -> str | None:
        """The next text message; None once the client has closed. Pings are answered on the way."""
        while True:
            while self._frames:
                text = await self._take(self._frames.pop(0))
                if text is not None:
                    return text
            data = await self.exchange.read()
            if not data:
                return None
            self._frames.extend(self._reader.feed(data))
            if any(frame.opcode is Opcode.CLOSE for frame in self._frames):
                await self.close(1000)
                self.exchange.client_gone = True
                return None

    async def send(self, *pieces: bytes) -> None:
        """Raw bytes of one or more frames, each piece in a write of its own."""
        async with self._writing:
            for piece in pieces:
                await self.exchange.write(piece)

    async def send_text(self, payload: bytes) -> None:
        await self.send(encode(Opcode.TEXT, payload))

    async def heard(self) -> None:
        """Returns when the client has read all that was sent, or after `over`. Needs a `receive` under way."""
        self._pong.clear()
        if not self._over:
            await self.send(encode(Opcode.PING, b"heard?"))
            await self._pong.wait()

    def over(self) -> None:
        """Nobody receives any more."""
        self._over = True
        self._pong.set()

    async def close(self, code: int, reason: str = "") -> None:
        """A close frame, then FIN."""
        try:
            await self.send(encode(Opcode.CLOSE, struct.pack("!H", code) + reason.encode()))
            await self.exchange.close()
        except ClientGone:
            return

    async def _take(self, frame: Frame) -> str | None:
        match frame.opcode:
            case Opcode.PING:
                await self.send(encode(Opcode.PONG, frame.payload))
            case Opcode.PONG:
                self._pong.set()
            case Opcode.TEXT | Opcode.CONTINUATION | Opcode.BINARY:
                self._partial += frame.payload
                if frame.final:
                    text, self._partial = self._partial.decode(errors="replace"), bytearray()
                    return text
        return None
