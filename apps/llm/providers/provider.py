"""What an endpoint asks of its provider, and what providers over plain HTTP have in common."""

from __future__ import annotations

import asyncio
import logging
import math
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Protocol

from apps.engine.events import Done, ModelEvent, OnModelEvent, TextDelta
from apps.engine.types import ChatMessage, ModelRequest, Usage
from apps.llm.allowance import Extra, granted
from apps.llm.errors import BrokenStream, LlmError, NoAnswer
from apps.llm.http_line import HttpLine
from apps.llm.spec import EndpointSpec

logger = logging.getLogger(__name__)

# How long a server may take to read a prompt ahead of its question.
PREPARE_S = 30.0
# Some templates refuse a prompt that does not end with a question.
_NO_QUESTION = ChatMessage("user", "…")


class Provider(Protocol):
    """One API over one transport, towards one endpoint. Lives on the event loop."""

    @property
    def connections_opened(self) -> int:
        """Since the start: that it grew over a look at an idle line means that the old one was dead."""

    async def answer(
        self, request: ModelRequest, on_event: OnModelEvent, first_due: float, turn_ends: float
    ) -> None:
        """Streams one answer until `turn_ends`, its first word until `first_due` (loop time).

        Raises `LlmError`, and whatever `on_event` raises. Cancelling it stops the model where the server allows.
        """

    async def prepare(self, request: ModelRequest) -> Usage | None:
        """Has the server read a prompt whose question is still to come, where it can and may; what it has cost.

        Never raises `LlmError`. Cancelling it stops the model where the server allows.
        """

    async def warm(self) -> None:
        """Makes sure of a connection, or finds the one there is alive. Raises `LlmError`."""

    def due(self) -> float:
        """Loop time at which `warm` is needed whatever happens until then."""

    async def close(self) -> None:
        """Closes all connections, also of answers that still run."""


class HttpProvider(ABC):
    """One request, one answer, over the endpoint's HTTP line."""

    def __init__(self, spec: EndpointSpec, http: HttpLine) -> None:
        self.spec = spec
        self.http = http

    @property
    def connections_opened(self) -> int:
        return self.http.connections_opened

    @abstractmethod
    async def attempt(
        self, request: ModelRequest, on_event: OnModelEvent, first_due: float, turn_ends: float
    ) -> None:
        """One request and its answer."""

    async def answer(
        self, request: ModelRequest, on_event: OnModelEvent, first_due: float, turn_ends: float
    ) -> None:
        try:
            await self.attempt(request, on_event, first_due, turn_ends)
        except BrokenStream as error:
            if error.began or not granted(Extra.AGAIN):
                raise
            # The peer closed an idle connection just as we used it: nothing was answered, a new one will do.
            await self.attempt(request, on_event, first_due, turn_ends)

    async def prepare(self, request: ModelRequest) -> Usage | None:
        """Asks for one token, and drops it."""
        if not (self.spec.prepare_prompts and self.spec.quirks.reads_ahead):
            return None
        told: list[Usage] = []
        said: list[str] = []

        async def hear(event: ModelEvent) -> None:
            if isinstance(event, Done) and event.usage is not None:
                told.append(event.usage)
            elif isinstance(event, TextDelta):
                said.append(event.text)
                if len(said) > 1:
                    raise _Enough

        try:
            await self.http.reside()
            due = asyncio.get_running_loop().time() + PREPARE_S
            await self.attempt(_without_question(request), hear, due, due)
        except (NoAnswer, _Enough):
            pass  # its one token was a thought, or it was asked for more by the endpoint's own fields
        except LlmError as failure:
            # The question itself will tell, and be told, what is wrong.
            logger.info("endpoint %s: a prompt was not prepared: %s", self.spec.name, failure.label)
            return None
        return told[0] if told else estimated_usage(request)

    async def warm(self) -> None:
        await self.http.warm()

    def due(self) -> float:
        return math.inf

    async def close(self) -> None:
        await self.http.close()


class _Enough(Exception):
    """The prompt has been read."""


def estimated_usage(request: ModelRequest) -> Usage:
    """For a server that tells nothing of a prompt it has read."""
    return Usage(request.prompt_tokens, 0)


def _without_question(request: ModelRequest) -> ModelRequest:
    return replace(request, messages=(*request.messages, _NO_QUESTION), max_output_tokens=1)
