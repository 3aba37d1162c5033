"""What the engine asks of the outside. Each has an adapter in the shell and a double in the pure tests."""

from __future__ import annotations

from typing import Protocol

from apps.engine.events import OnModelEvent
from apps.engine.rules import RuleSet
from apps.engine.types import Facts, ModelRequest, Passage


class Model(Protocol):
    async def stream(self, request: ModelRequest, on_event: OnModelEvent) -> None:
        """Calls `on_event` for each piece and ends after `Done`. Raises `ModelUnavailable`."""


class FactSource(Protocol):
    async def facts(self, needed: bool) -> Facts:
        """The asker's facts. `needed` allows a fetch inside the turn (deadline 1 s)."""


class Retrieval(Protocol):
    async def passages(self) -> tuple[Passage, ...]:
        """The passages for this turn's question, started when the question was received."""


class Rules(Protocol):
    def current(self) -> RuleSet:
        """The site's compiled rules, in their newest version."""


class Clock(Protocol):
    def __call__(self) -> float:
        """Monotonic seconds."""


class ModelUnavailable(Exception):
    """No endpoint answered; `said` tells whether any text had been emitted before."""

    def __init__(self, reason: str, said: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.said = said
