"""An answer that a model gives before its turn exists: heard by nobody until a turn asks for it by its very prompt."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod

from apps.engine.events import Done, ModelEvent, OnModelEvent, TextDelta
from apps.engine.ports import ModelUnavailable
from apps.engine.tokens import tokens_of_bytes
from apps.engine.types import ModelRequest
from apps.telemetry.waterfall import Waterfall
from apps.turns.spawn import Spawn


class AnswerAhead(ABC):
    """Begins when it is made. `tell` gives it to its turn; `end` throws it away. Whichever comes first counts.

    Nothing here has an effect: no rule acts, nobody is handed over to, nothing is stored or told.
    """

    def __init__(self, spawn: Spawn, name: str) -> None:
        self.request: ModelRequest | None = None  # once a model was asked
        self.began = 0.0  # when it was, monotonic
        self.first_s: float | None = None  # after which the model spoke
        self.taken = False  # its turn has it
        self._ended = False  # it is of no use
        self._heard: list[ModelEvent] = []
        self._failure: ModelUnavailable | None = None
        self._over = False  # nothing more comes
        self._changed = asyncio.Event()
        self._task = spawn(self._run(), name)

    @abstractmethod
    async def ask(self) -> None:
        """Sets `request` and `began` and has the model tell `hear`, or does nothing. Raises `ModelUnavailable`."""

    @abstractmethod
    def count(self, fate: str) -> None:
        """What has become of it, once."""

    @abstractmethod
    def mark_used(self, trace: Waterfall, waited_s: float) -> None:
        """The first of it is being told. It was asked for `waited_s` before its turn came."""

    def begun(self) -> bool:
        """Whether a model has been asked."""
        return self.request is not None

    def fits(self, request: ModelRequest) -> bool:
        """Whether it answers this prompt, byte for byte: rules, articles, facts and history are then the same too."""
        asked = self.request
        return (
            asked is not None
            and not (self._failure or self.taken or self._ended)
            and (asked.messages, asked.teams, asked.max_output_tokens)
            == (request.messages, request.teams, request.max_output_tokens)
        )

    async def tell(self, on_event: OnModelEvent, trace: Waterfall) -> bool:
        """What was said already at once, and the rest as it comes. False where it failed and nothing was told.

        Raises `ModelUnavailable` when it broke off later. Cancelling it stops the model.
        """
        self.taken = True
        waited_s, told = time.monotonic() - self.began, 0
        try:
            while not (self._over and told == len(self._heard)):
                self._changed.clear()
                news = self._heard[told:]
                if news and not told:
                    self.mark_used(trace, waited_s)
                told += len(news)
                for event in _joined(news):
                    await on_event(event)
                if not (self._over or told < len(self._heard)):
                    await self._changed.wait()
        finally:
            self._task.cancel()
            self.count("used" if told else "failed")
        if told and self._failure:
            raise ModelUnavailable(self._failure.reason, said=True)
        return self._failure is None

    def end(self, fate: str) -> None:
        """It is of no use: `changed`, `replaced`, `left`, `differed` …"""
        if self.taken or self._ended:
            return
        self._ended = True
        self._task.cancel()
        if self.begun():
            self.count(fate)

    async def hear(self, event: ModelEvent) -> None:
        """Keeps what the model says."""
        if self.first_s is None:
            self.first_s = time.monotonic() - self.began
        self._heard.append(event)
        self._changed.set()

    def fail(self, reason: str, fate: str) -> None:
        """Nothing comes of it."""
        self._failure = ModelUnavailable(reason)
        if not (self.taken or self._ended):
            self._ended = True
            self.count(fate)

    def spent(self) -> int:
        """Tokens of prompt, and answer so far; as the model told, else estimated."""
        for event in self._heard:
            if isinstance(event, Done) and event.usage is not None:
                return event.usage.prompt_tokens + event.usage.completion_tokens
        said = sum(len(event.text.encode()) for event in self._heard if isinstance(event, TextDelta))
        return (self.request.prompt_tokens if self.request is not None else 0) + tokens_of_bytes(said)

    async def _run(self) -> None:
        try:
            await self.ask()
        except ModelUnavailable as unavailable:
            self.fail(unavailable.reason, "failed")
        except Exception:
            self.fail("broken", "failed")
            raise
        finally:
            self._over = True
            self._changed.set()


def _joined(events: list[ModelEvent]) -> list[ModelEvent]:
    """The same with texts that follow one another as one."""
    joined: list[ModelEvent] = []
    for event in events:
        last = joined[-1] if joined else None
        if isinstance(event, TextDelta) and isinstance(last, TextDelta):
            joined[-1] = TextDelta(last.text + event.text)
        else:
            joined.append(event)
    return joined
