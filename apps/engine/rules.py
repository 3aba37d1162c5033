"""What a rule can decide. Evaluation of the expressions themselves is the rulebook's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from apps.engine.types import Facts


@dataclass(frozen=True, slots=True)
class RuleInput:
    """What a rule may look at. Missing facts are empty, never absent."""

    text: str
    locale: str
    turn_number: int
    facts: Facts
    within_hours: bool


@dataclass(frozen=True, slots=True)
class Decision:
    """The sum of all rules that matched, in priority order. The first reply and the first handoff win."""

    reply: str = ""  # fixed answer instead of the model's
    handoff: bool = False
    team: str = ""
    tags: tuple[str, ...] = ()
    instructions: tuple[str, ...] = ()  # added behind the prompt's stable part
    matched: tuple[str, ...] = ()  # names, for the waterfall
    failed: tuple[str, ...] = ()  # names of rules whose expression raised


class RuleSet(Protocol):
    """The rules of one site, compiled."""

    def decide(self, given: RuleInput) -> Decision:
        """Evaluates every enabled rule. Never raises: a rule that fails is named in `failed`. CPU only."""
