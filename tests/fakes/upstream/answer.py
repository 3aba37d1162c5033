"""Gives one chat answer: in its time, in its dialect, and with its faults."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

import msgspec

from tests.fakes.transport.exchange import ClientGone, Exchange, respond
from tests.fakes.upstream import chat
from tests.fakes.upstream.faults import Action, Fault, Place, Plan
from tests.fakes.upstream.ledger import Ledger, Seen
from tests.fakes.upstream.profile import Chunking, Dialect, Profile, Reporting
from tests.fakes.upstream.script import Echo, Reply, Step, Thought, Word, compose, is_token
from tests.fakes.upstream.sse import Framer, cut

EVENT_STREAM = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}
JSON = {"content-type": "application/json"}
BLANK_LINE = b"\n"
GARBAGE = b'{"choices":[{"delta":{"content":"tor'
WIDE_CHARACTER = "\u4f60"


class Over(Exception):
    """A fault has ended the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """All that decides an answer."""

    request: chat.ChatRequest
    plan: Plan
    profile: Profile
    rng: random.Random
    thinking_s: float  # first token and prefill, once the gateway is passed
    cached_tokens: int
    prompt_tokens: int

    @property
    def dialect(self) -> Dialect:
        return self.plan.dialect or self.profile.dialect


class Answer:
    """One answer on its way out."""

    def __init__(
        self,
        order: Order,
        exchange: Exchange,
        ledger: Ledger,
        seen: Seen,
        released: Callable[[], Awaitable[None]],
    ) -> None:
        self._order = order
        self._dialect = order.dialect
        self._exchange = exchange
        self._ledger = ledger
        self._seen = seen
        self._released = released
        self._framer = Framer(order.dialect, order.rng)
        self._held = bytearray()  # a burst being saved up
        self._head_sent = False
        answer_id = f"chatcmpl-{order.rng.getrandbits(96):024x}"
        self._shape = chat.Shape(
            answer_id, order.request.model, order.dialect, usage=self._reports and order.request.stream
        )
        self.reply: Reply = compose(order.plan.script or Echo(), order.request.prompt(), order.rng)

    async def give(self, computed: Callable[[], None]) -> None:
        """Answers. `computed` is called when the prompt has been computed and may be cached."""
        try:
            await self._strike(Place.HEADERS)
            if self._order.request.stream:
                await self._stream(computed)
            else:
                await self._whole(computed)
        except Over:
            return

    # ------------------------------------------------------------ the two forms

    async def _stream(self, computed: Callable[[], None]) -> None:
        await self._think(EVENT_STREAM, self._framer.comment("keep-alive"))
        computed()
        await self._send(self._shape.opening())
        await self._say()
        await self._strike(Place.END)
        if self._dialect.finish:
            await self._send(self._shape.finish(self.reply.finish))
        if self._reports:
            await self._send(self._shape.usage(self._tokens(self._seen.tokens_sent)))
        if self._dialect.done:
            await self._write(self._framer.raw(b"[DONE]"))
        await self._flush()
        await self._exchange.finish()

    async def _whole(self, computed: Callable[[], None]) -> None:
        await self._think(JSON, BLANK_LINE)
        computed()
        pace = self._pace()
        for step in self.reply.steps:
            if is_token(step):
                await self._strike(Place.STREAM)
                await pace.wait()
                self._ledger.token_sent(self._seen)
        await self._strike(Place.END)
        await self._exchange.write(
            msgspec.json.encode(self._shape.whole(self.reply, self._tokens(self.reply.tokens)))
        )
        await self._exchange.finish()

    async def _think(self, head: dict[str, str], sign_of_life: bytes) -> None:
        """From the request's arrival at the model to its first token."""
        if self._dialect.headers_early or self._dialect.keepalive_s:
            await self._start(head)
            await self._strike(Place.DATA)
        await self._quiet(self._order.thinking_s, self._dialect.keepalive_s, sign_of_life)
        if not self._head_sent:
            await self._start(head)
            await self._strike(Place.DATA)

    async def _say(self) -> None:
        pace = self._pace()
        for step in self.reply.steps:
            if is_token(step):
                await self._strike(Place.STREAM, step)
                await pace.wait()
            if self._dialect.empty_deltas:
                await self._send(self._shape.empty())
                await self._send(self._shape.step(Word("")))
            await self._send(self._shape.step(step))
            if is_token(step):
                self._ledger.token_sent(self._seen)

    # ------------------------------------------------------------ faults

    async def _strike(self, place: Place, upcoming: Step | None = None) -> None:
        """Everything that was ordered for this place. Raises `Over` when it ends the answer."""
        for fault in self._order.plan.faults:
            if fault.place is not place:
                continue
            if place is Place.STREAM and fault.after_tokens != self._seen.tokens_sent:
                continue
            await self._happen(fault, upcoming)

    async def _happen(self, fault: Fault, upcoming: Step | None) -> None:
        await self._flush()
        match fault.action:
            case Action.STALL:
                await self._stall(fault)
            case Action.GARBAGE:
                await self._write(self._framer.raw(GARBAGE))
            case Action.GOAWAY if fault.place is not Place.HEADERS:
                await self._exchange.goaway(processed=True)
            case _:
                self._seen.ended = fault.action.value
                await self._end(fault, upcoming)
                raise Over

    async def _end(self, fault: Fault, upcoming: Step | None) -> None:
        match fault.action:
            case Action.STATUS:
                await self._refuse(fault)
            case Action.GOAWAY:
                await self._exchange.goaway(processed=False)
            case Action.ERROR:
                await self._write(self._error(fault))
                await self._flush()
                await self._exchange.finish()
            case Action.END:
                await self._exchange.finish()
            case Action.CUT_CHARACTER:
                await self._cut_character(upcoming)
            case Action.RESET_STREAM:
                await self._exchange.reset_stream()
            case Action.RESET:
                await self._exchange.reset()
            case _:
                await self._exchange.close()

    async def _stall(self, fault: Fault) -> None:
        sign = self._framer.comment("keep-alive") if self._order.request.stream else BLANK_LINE
        with self._ledger.standing():
            if fault.seconds:
                await self._quiet(fault.seconds, fault.keepalive_s, sign)
                return
            if not fault.keepalive_s:
                await self._released()
                return
            async with asyncio.TaskGroup() as group:
                signs = group.create_task(self._signs(fault.keepalive_s, sign))
                await self._released()
                signs.cancel()

    async def _refuse(self, fault: Fault) -> None:
        headers = {"retry-after": fault.retry_after} if fault.retry_after else {}
        body = msgspec.json.encode(chat.error(fault.message, fault.code))
        await respond(self._exchange, fault.status, body, headers=headers)

    def _error(self, fault: Fault) -> bytes:
        value = chat.error(fault.message, fault.code)
        return self._framer.event(value) if self._order.request.stream else msgspec.json.encode(value)

    async def _cut_character(self, upcoming: Step | None) -> None:
        """The next words get a wide character if they have none, and end after its first byte."""
        text = upcoming.text if isinstance(upcoming, Word) else ""
        if text.isascii():
            text += WIDE_CHARACTER
        data = self._framer.event(self._shape.step(Word(text)))
        first_wide = next(at for at, byte in enumerate(data) if byte >= 0xC0)
        await self._exchange.write(data[: first_wide + 1])
        await self._exchange.close()

    # ------------------------------------------------------------ bytes and time

    async def _start(self, head: dict[str, str]) -> None:
        self._head_sent = True
        await self._exchange.start(200, head)

    async def _send(self, value: chat.Json) -> None:
        await self._write(self._framer.event(value))

    async def _write(self, data: bytes) -> None:
        if self._dialect.chunking is Chunking.BURST:
            self._held += data
            return
        for piece in cut(data, self._dialect.chunking, self._order.rng):
            await self._exchange.write(piece)

    async def _flush(self) -> None:
        held, self._held = bytes(self._held), bytearray()
        if held:
            await self._exchange.write(held)

    async def _quiet(self, seconds: float, keepalive_s: float, sign_of_life: bytes) -> None:
        """Waits, with a sign of life now and then where the dialect gives one."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while keepalive_s and loop.time() + keepalive_s < until:
            await self._exchange.write(sign_of_life)
            await asyncio.sleep(keepalive_s)
        await asyncio.sleep(max(0.0, until - loop.time()))

    async def _signs(self, every_s: float, sign: bytes) -> None:
        with suppress(ClientGone):  # the connection's reader ends the answer
            while True:
                await self._exchange.write(sign)
                await asyncio.sleep(every_s)

    def _pace(self) -> Pace:
        rate = self._order.plan.tokens_per_s
        rate = self._order.profile.tokens_per_s if rate is None else rate
        return Pace(rate, self._order.profile.jitter, self._order.rng)

    def _tokens(self, completion: int) -> chat.Tokens:
        reasoning = min(completion, sum(isinstance(step, Thought) for step in self.reply.steps))
        return chat.Tokens(
            prompt=self._order.prompt_tokens,
            cached=self._order.cached_tokens,
            completion=completion,
            reasoning=reasoning,
        )

    @property
    def _reports(self) -> bool:
        if self._dialect.usage is Reporting.ASKED:
            options = self._order.request.stream_options
            return options is not None and options.include_usage
        return self._dialect.usage is Reporting.ALWAYS


class Pace:
    """Tokens at a rate, against an absolute schedule, so that a slow loop does not add up."""

    def __init__(self, tokens_per_s: float, jitter: float, rng: random.Random) -> None:
        self._interval_s = 1 / tokens_per_s if tokens_per_s else 0.0
        self._jitter = jitter
        self._rng = rng
        self._loop = asyncio.get_running_loop()
        self._due = self._loop.time()

    async def wait(self) -> None:
        """Until the next token is due; the first one is due at once."""
        await asyncio.sleep(max(0.0, self._due - self._loop.time()))
        self._due += self._interval_s * (1 + self._jitter * self._rng.uniform(-1, 1))
