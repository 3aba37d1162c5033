"""Gives one answer: in its time, in its shape, on its channel, and with its faults."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from tests.fakes.transport.exchange import ClientGone
from tests.fakes.upstream.channel import Channel
from tests.fakes.upstream.faults import Action, Fault, Place, Plan
from tests.fakes.upstream.ledger import Ledger, Seen
from tests.fakes.upstream.profile import Dialect, Profile
from tests.fakes.upstream.script import Echo, Prompt, Reply, Step, Thought, Word, compose, is_token
from tests.fakes.upstream.shape import Shape, Tokens

GARBAGE = b'{"choices":[{"delta":{"content":"tor'
WIDE_CHARACTER = "\u4f60"


class Over(Exception):
    """A fault has ended the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """All that decides an answer. Without `generate` the prompt is computed and nothing is said."""

    prompt: Prompt
    plan: Plan
    profile: Profile
    rng: random.Random
    thinking_s: float  # first token and prefill, once the gateway is passed
    cached_tokens: int
    prompt_tokens: int
    stream: bool = True
    generate: bool = True

    @property
    def dialect(self) -> Dialect:
        return self.plan.dialect or self.profile.dialect


class Answer:
    """One answer on its way out. `reply` is what it says, cut short when it was steered."""

    def __init__(
        self,
        order: Order,
        shape: Shape,
        channel: Channel,
        ledger: Ledger,
        seen: Seen,
        released: Callable[[], Awaitable[None]],
    ) -> None:
        self._order = order
        self._dialect = order.dialect
        self._shape = shape
        self._channel = channel
        self._ledger = ledger
        self._seen = seen
        self._released = released
        self._steered = False
        silent = Reply((), "stop")
        self.reply: Reply = (
            compose(order.plan.script or Echo(), order.prompt, order.rng) if order.generate else silent
        )

    async def give(self, computed: Callable[[], None]) -> None:
        """Answers. `computed` is called when the prompt has been computed and may be cached."""
        try:
            await self._strike(Place.HEADERS)
            await self._think()
            computed()
            if self._order.stream:
                await self._stream()
            else:
                await self._whole()
            await self._channel.finish()
        except Over:
            return

    def steer(self) -> None:
        """Ends the answer before its next token, with the reason `steered`."""
        self._steered = True

    async def _stream(self) -> None:
        if self._order.generate:
            await self._events(self._shape.opening())
        await self._say()
        await self._strike(Place.END)
        await self._events(self._shape.closing(self.reply, self._tokens(self._seen.tokens_sent)))
        if self._shape.last_line:
            await self._channel.raw(self._shape.last_line)

    async def _whole(self) -> None:
        pace = self._pace()
        for step in self.reply.steps:
            if is_token(step):
                await self._strike(Place.STREAM)
                await pace.wait()
                self._ledger.token_sent(self._seen)
        await self._strike(Place.END)
        await self._channel.event(self._shape.whole(self.reply, self._tokens(self.reply.tokens)))

    async def _think(self) -> None:
        """From the request's arrival at the model to its first token."""
        if self._dialect.headers_early or self._dialect.keepalive_s:
            await self._begin()
        await self._quiet(self._order.thinking_s, self._dialect.keepalive_s)
        if not self._channel.started:
            await self._begin()

    async def _begin(self) -> None:
        await self._channel.start()
        await self._strike(Place.DATA)
        if self._order.stream:
            await self._events(self._shape.accepted())

    async def _say(self) -> None:
        pace = self._pace()
        for number, step in enumerate(self.reply.steps):
            if self._steered:
                self.reply = Reply(self.reply.steps[:number], "steered")
                return
            if is_token(step):
                await self._strike(Place.STREAM, step)
                await pace.wait()
            if self._dialect.empty_deltas:
                await self._events(self._shape.empty())
            await self._events(self._shape.step(step))
            if is_token(step):
                self._ledger.token_sent(self._seen)

    async def _events(self, values: list[dict[str, object]]) -> None:
        for value in values:
            await self._channel.event(value)

    async def _strike(self, place: Place, upcoming: Step | None = None) -> None:
        """Everything that was ordered for this place. Raises `Over` when it ends the answer."""
        for fault in self._order.plan.faults:
            if fault.place is not place:
                continue
            if place is Place.STREAM and fault.after_tokens != self._seen.tokens_sent:
                continue
            await self._happen(fault, upcoming)

    async def _happen(self, fault: Fault, upcoming: Step | None) -> None:
        await self._channel.flush()
        match fault.action:
            case Action.STALL:
                await self._stall(fault)
            case Action.GARBAGE:
                await self._channel.raw(GARBAGE)
            case Action.GOAWAY if fault.place is not Place.HEADERS:
                await self._channel.goaway(processed=True)
            case _:
                self._seen.ended = fault.action.value
                await self._end(fault, upcoming)
                raise Over

    async def _end(self, fault: Fault, upcoming: Step | None) -> None:
        match fault.action:
            case Action.STATUS:
                await self._channel.refuse(fault.status, self._shape.refusal(fault), fault.retry_after)
            case Action.GOAWAY:
                await self._channel.goaway(processed=False)
            case Action.ERROR:
                await self._channel.error(self._shape.error(fault))
            case Action.FAILED:
                await self._events(self._shape.failed(fault))
                await self._channel.finish()
            case Action.END:
                await self._channel.end()
            case Action.CUT_CHARACTER:
                await self._channel.cut_character(self._shape.step(_widened(upcoming))[-1])
            case Action.RESET_STREAM:
                await self._channel.reset_stream()
            case Action.RESET:
                await self._channel.reset()
            case Action.MISFRAME:
                await self._channel.misframe()
            case _:
                await self._channel.close()

    async def _stall(self, fault: Fault) -> None:
        with self._ledger.standing():
            if fault.seconds:
                await self._quiet(fault.seconds, fault.keepalive_s)
                return
            if not fault.keepalive_s:
                await self._released()
                return
            async with asyncio.TaskGroup() as group:
                signs = group.create_task(self._signs(fault.keepalive_s))
                await self._released()
                signs.cancel()

    async def _quiet(self, seconds: float, keepalive_s: float) -> None:
        """Waits, with a sign of life now and then where the dialect gives one."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while keepalive_s and loop.time() + keepalive_s < until:
            await self._channel.sign_of_life()
            await asyncio.sleep(keepalive_s)
        await asyncio.sleep(max(0.0, until - loop.time()))

    async def _signs(self, every_s: float) -> None:
        with suppress(ClientGone):  # the connection's reader ends the answer
            while True:
                await self._channel.sign_of_life()
                await asyncio.sleep(every_s)

    def _pace(self) -> Pace:
        rate = self._order.plan.tokens_per_s
        rate = self._order.profile.tokens_per_s if rate is None else rate
        return Pace(rate, self._order.profile.jitter, self._order.rng)

    def _tokens(self, completion: int) -> Tokens:
        reasoning = min(completion, sum(isinstance(step, Thought) for step in self.reply.steps))
        return Tokens(
            prompt=self._order.prompt_tokens,
            cached=self._order.cached_tokens,
            completion=completion,
            reasoning=reasoning,
        )


def _widened(upcoming: Step | None) -> Word:
    """The next words, with a wide character if they have none."""
    text = upcoming.text if isinstance(upcoming, Word) else ""
    return Word(text + WIDE_CHARACTER if text.isascii() else text)


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
