"""What an endpoint asks of its provider, and what providers over plain HTTP have in common."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Protocol

from apps.engine.events import OnModelEvent
from apps.engine.types import ModelRequest
from apps.llm.allowance import Extra, granted
from apps.llm.errors import BrokenStream
from apps.llm.http_line import HttpLine


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

    async def prepare(self, request: ModelRequest) -> None:
        """Has the server read a prompt whose question is still to come, where it can. Never raises `LlmError`."""

    async def warm(self) -> None:
        """Makes sure of a connection, or finds the one there is alive. Raises `LlmError`."""

    def due(self) -> float:
        """Loop time at which `warm` is needed whatever happens until then."""

    async def close(self) -> None:
        """Closes all connections, also of answers that still run."""


class HttpProvider(ABC):
    """One request, one answer, over the endpoint's HTTP line."""

    def __init__(self, http: HttpLine) -> None:
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

    async def prepare(self, request: ModelRequest) -> None:
        return

    async def warm(self) -> None:
        await self.http.warm()

    def due(self) -> float:
        return math.inf

    async def close(self) -> None:
        await self.http.close()
