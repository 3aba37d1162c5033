"""One streamed answer over HTTP: sent, read, closed, whatever API its events belong to."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Protocol

import httpx

from apps.engine.events import ModelEvent, OnModelEvent, TextDelta
from apps.llm import transport
from apps.llm.deadlines import Deadlines
from apps.llm.errors import BadData, BrokenStream, Stage, Stalled
from apps.llm.providers.refusals import error_of_response
from apps.llm.sse import SseOverflow, SseParser
from apps.wire.protocol import DELTA_INTERVAL_S, PROMPT_PIECES

ERROR_BODY_BYTES = 64 * 1024


class Reply(Protocol):
    """An API's events, folded."""

    finish: str  # the finish reason, once it is known
    closed: bool  # nothing more will come

    def take(self, data: str) -> tuple[str, bool]:
        """The text in this event, and whether the model moved on. Raises `LlmError`."""

    def end(self, endpoint: str, teams: tuple[str, ...]) -> list[ModelEvent]:
        """What comes after the text. Raises `LlmError` when the answer is not whole."""


@dataclass(frozen=True, slots=True)
class Listener:
    """Who hears the answer, and until when. `first_due` and `turn_ends` are loop time."""

    on_event: OnModelEvent
    endpoint: str
    teams: tuple[str, ...]
    first_due: float
    turn_ends: float


async def receive(
    client: httpx.AsyncClient, sent: httpx.Request, reply: Reply, listener: Listener, deadlines: Deadlines
) -> None:
    """Calls the listener for each piece of text, then for an action and `Done`.

    Raises `LlmError`, and whatever the listener raises. However it ends, the response is closed: an answer that was
    not read to its end closes its connection, which is what makes the server stop.
    """
    response = await transport.send(client, sent, listener.first_due)
    try:
        async with aclosing(_bytes_of(response)) as chunks:
            await _refuse_unless_stream(response, chunks, listener.first_due)
            reads_all = transport.READS_ALL in response.extensions
            await _Reading(chunks, reply, listener, deadlines, reads_all=reads_all).answer()
    finally:
        await transport.close(response, deadlines.close_s)


async def _bytes_of(response: httpx.Response) -> AsyncGenerator[bytes, None]:
    async for chunk in response.aiter_bytes():
        yield chunk


async def _refuse_unless_stream(
    response: httpx.Response, chunks: AsyncGenerator[bytes, None], due: float
) -> None:
    if response.status_code == httpx.codes.OK and "json" not in response.headers.get("content-type", ""):
        return
    body = b""
    while (
        len(body) < ERROR_BODY_BYTES
        and (chunk := await transport.read(chunks, due, Stage.FIRST_DATA)) is not None
    ):
        body += chunk
    if response.status_code == httpx.codes.OK and b'"error"' not in body:
        raise BadData("answered with plain JSON instead of a stream")
    raise error_of_response(
        response.status_code, body, retry_after_s(response.headers.get("retry-after", ""))
    )


class _Reading:
    """The loop over one response. Only the model's progress re-arms the deadline; our own time does not count."""

    def __init__(
        self,
        chunks: AsyncGenerator[bytes, None],
        reply: Reply,
        listener: Listener,
        deadlines: Deadlines,
        *,
        reads_all: bool,
    ) -> None:
        self._chunks = chunks
        self._reads_all = reads_all
        self._reply = reply
        self._listener = listener
        self._deadlines = deadlines
        self._due, self._stage = listener.first_due, Stage.FIRST_DATA
        self._parser = SseParser()
        self._pieces = 0  # of text
        self._next_read = 0.0  # loop time, not before

    async def answer(self) -> None:
        while not self._reply.closed and (chunk := await self._next()) is not None:
            text, moved = self._take(chunk)
            if text:
                self._pieces += 1
                await self._listener.on_event(TextDelta(text))
            if moved:
                self._rearm()
            if self._may_pause(len(chunk)):
                await self._pause()
        for event in self._reply.end(self._listener.endpoint, self._listener.teams):
            await self._listener.on_event(event)
        await self._read_out()

    async def _next(self) -> bytes | None:
        due = min(self._due, self._listener.turn_ends)
        try:
            self._refuse_late()
            return await transport.read(self._chunks, due, self._current_stage())
        except (Stalled, BrokenStream):
            if self._reply.finish:
                return None  # the answer is whole; only its usage is missing
            raise

    def _refuse_late(self) -> None:
        """Raises `Stalled` past the turn's end: bytes that lie ready make no time-out fire."""
        if asyncio.get_running_loop().time() >= self._listener.turn_ends:
            raise Stalled(Stage.TURN)

    def _may_pause(self, read_bytes: int) -> bool:
        """Whether all that has come was read, and what comes meanwhile will be read together."""
        emptied = self._reads_all and read_bytes < transport.READ_BYTES
        return emptied and self._pieces >= PROMPT_PIECES and not self._reply.finish

    async def _pause(self) -> None:
        """Until 50 ms after the read before, or the turn's end: customers get no more frames, and each wake costs."""
        now = asyncio.get_running_loop().time()
        self._next_read = max(now, self._next_read + DELTA_INTERVAL_S)
        await asyncio.sleep(min(self._next_read, self._listener.turn_ends) - now)

    def _current_stage(self) -> Stage:
        return self._stage if self._due < self._listener.turn_ends else Stage.TURN

    def _take(self, chunk: bytes) -> tuple[str, bool]:
        """All of one read together: an error behind a text in the same packet still leaves the text unsaid."""
        texts, moved = [], False
        try:
            for event in self._parser.feed(chunk):
                text, progress = self._reply.take(event.data)
                texts.append(text)
                moved = moved or progress
        except SseOverflow as error:
            raise BadData(str(error)) from error
        return "".join(texts), moved

    def _rearm(self) -> None:
        wait_s = self._deadlines.usage_s if self._reply.finish else self._deadlines.between_data_s
        self._due, self._stage = asyncio.get_running_loop().time() + wait_s, Stage.BETWEEN_DATA

    async def _read_out(self) -> None:
        """Up to the end of the body, or the connection could not be used again."""
        due = asyncio.get_running_loop().time() + self._deadlines.usage_s
        try:
            while await transport.read(self._chunks, due, Stage.BETWEEN_DATA) is not None:
                pass
        except (Stalled, BrokenStream):
            return  # the answer is complete; closing the response closes this connection


def retry_after_s(value: str) -> float | None:
    """Seconds or a date (RFC 9110); anything else counts as not said."""
    if not value.strip():
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(value) - dt.datetime.now(dt.UTC)).total_seconds())
    except (TypeError, ValueError):
        return None
