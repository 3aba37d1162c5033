"""What the engine asks of the outside. Each has an adapter in the shell and a double in the pure tests."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from apps.engine.cache import Answer, Look, Question
from apps.engine.events import OnModelEvent
from apps.engine.types import Facts, ModelRequest, Passage


class Model(Protocol):
    async def stream(self, request: ModelRequest, on_event: OnModelEvent) -> None:
        """Calls `on_event` for each piece and ends after `Done`. Raises `ModelUnavailable`."""


class FactSource(Protocol):
    async def facts(self, needed: bool, deadline_s: float) -> Facts:
        """The asker's facts, within the deadline: what is late or broken is `UNAVAILABLE`, never an exception.

        `needed` allows a fetch inside the turn.
        """


class Retrieval(Protocol):
    async def passages(self) -> tuple[Passage, ...]:
        """The passages for this turn's question, started when the question was received."""


class AnswerCache(Protocol):
    """Answers that the site has given before, and still would."""

    @property
    def open(self) -> bool:
        """Whether to look at all, this turn."""

    async def exact(self, question: Question) -> Answer | None:
        """The answer to the same words."""

    async def similar(self, question: Question, passages: Sequence[Passage]) -> Look:
        """The answer to the same question in other words, from one of the passages' articles."""


class Trace(Protocol):
    """Where the turn notes how long its stages took and what was warm."""

    @property
    def marks(self) -> dict[str, str]: ...

    def stage(self, name: str) -> AbstractContextManager[None]: ...


class ModelUnavailable(Exception):
    """No endpoint answered; `said` tells whether any text had been emitted before."""

    def __init__(self, reason: str, said: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.said = said
