"""The way an answer takes: an event stream or one JSON text over HTTP. `lane_channel` has the way over a WebSocket."""

from __future__ import annotations

import random
from typing import Protocol

import msgspec

from tests.fakes.transport.exchange import Exchange, respond
from tests.fakes.upstream.profile import Chunking, Dialect
from tests.fakes.upstream.shape import Json
from tests.fakes.upstream.sse import Framer, cut

EVENT_STREAM = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}
JSON = {"content-type": "application/json"}
BLANK_LINE = b"\n"


class Channel(Protocol):
    """Every method raises `ClientGone` once the client has left."""

    started: bool

    async def start(self) -> None:
        """Sends whatever comes before the first event."""

    async def event(self, value: Json) -> None: ...

    async def raw(self, data: bytes) -> None:
        """An event with exactly this data."""

    async def sign_of_life(self) -> None:
        """Something that is no event."""

    async def flush(self) -> None:
        """Sends what was held back for a burst."""

    async def refuse(self, status: int, body: Json, retry_after: str) -> None:
        """Instead of an answer."""

    async def error(self, value: Json) -> None:
        """An error inside the answer, which ends it."""

    async def finish(self) -> None:
        """The answer is whole."""

    async def end(self) -> None:
        """A proper end of the transport, though the answer is not whole."""

    async def cut_character(self, value: Json) -> None:
        """The event breaks off behind the first byte of its first wide character, and the connection closes."""

    async def close(self) -> None: ...

    async def reset(self) -> None: ...

    async def reset_stream(self) -> None: ...

    async def goaway(self, *, processed: bool) -> None: ...

    async def misframe(self) -> None:
        """Breaks the transport's own rules."""


class HttpChannel:
    """What both forms of an HTTP answer have in common."""

    def __init__(
        self, exchange: Exchange, dialect: Dialect, rng: random.Random, head: dict[str, str]
    ) -> None:
        self.started = False
        self._exchange = exchange
        self._dialect = dialect
        self._rng = rng
        self._head = head
        self._held = bytearray()  # a burst being saved up

    async def start(self) -> None:
        self.started = True
        await self._exchange.start(200, self._head)

    async def write(self, data: bytes) -> None:
        if self._dialect.chunking is Chunking.BURST:
            self._held += data
            return
        for piece in cut(data, self._dialect.chunking, self._rng):
            await self._exchange.write(piece)

    async def flush(self) -> None:
        held, self._held = bytes(self._held), bytearray()
        if held:
            await self._exchange.write(held)

    async def refuse(self, status: int, body: Json, retry_after: str) -> None:
        headers = {"retry-after": retry_after} if retry_after else {}
        await respond(self._exchange, status, msgspec.json.encode(body), headers=headers)

    async def finish(self) -> None:
        await self.flush()
        await self._exchange.finish()

    async def end(self) -> None:
        await self.finish()

    async def break_off(self, data: bytes) -> None:
        await self._exchange.write(up_to_half_a_character(data))
        await self._exchange.close()

    async def close(self) -> None:
        await self._exchange.close()

    async def reset(self) -> None:
        await self._exchange.reset()

    async def reset_stream(self) -> None:
        await self._exchange.reset_stream()

    async def goaway(self, *, processed: bool) -> None:
        await self._exchange.goaway(processed=processed)

    async def misframe(self) -> None:
        await self._exchange.reset()


class StreamChannel(HttpChannel):
    """Server-sent events."""

    def __init__(
        self, exchange: Exchange, dialect: Dialect, rng: random.Random, *, named: bool = False
    ) -> None:
        super().__init__(exchange, dialect, rng, EVENT_STREAM)
        self._framer = Framer(dialect, rng, named=named)

    async def event(self, value: Json) -> None:
        await self.write(self._framer.event(value))

    async def raw(self, data: bytes) -> None:
        await self.write(self._framer.raw(data))

    async def sign_of_life(self) -> None:
        await self._exchange.write(self._framer.comment("keep-alive"))

    async def error(self, value: Json) -> None:
        await self.event(value)
        await self.finish()

    async def cut_character(self, value: Json) -> None:
        await self.break_off(self._framer.event(value))


class WholeChannel(HttpChannel):
    """One JSON text at the end."""

    def __init__(self, exchange: Exchange, dialect: Dialect, rng: random.Random) -> None:
        super().__init__(exchange, dialect, rng, JSON)

    async def event(self, value: Json) -> None:
        await self._exchange.write(msgspec.json.encode(value))

    async def raw(self, data: bytes) -> None:
        await self._exchange.write(data)

    async def sign_of_life(self) -> None:
        await self._exchange.write(BLANK_LINE)

    async def error(self, value: Json) -> None:
        await self.event(value)
        await self.finish()

    async def cut_character(self, value: Json) -> None:
        await self.break_off(msgspec.json.encode(value))


def up_to_half_a_character(data: bytes) -> bytes:
    """The bytes up to and with the first one of the first wide character."""
    first_wide = next(at for at, byte in enumerate(data) if byte >= 0xC0)
    return data[: first_wide + 1]
