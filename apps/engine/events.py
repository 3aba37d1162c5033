"""What a model says while it answers, and what a turn tells its shell."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from apps.engine.cache import Question
from apps.engine.types import Passage, Usage

# What a model tells the engine.


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the answer's text."""

    text: str


@dataclass(frozen=True, slots=True)
class HandoffCall:
    """The model's structured action: a human should take over."""

    reason: str
    team: str = ""


@dataclass(frozen=True, slots=True)
class Done:
    """The model ended properly. `finish` is stop, length, tool_calls or content_filter.

    `told` are the passages that the text was taken from; None where the model does not say.
    """

    finish: str
    usage: Usage | None = None
    endpoint: str = ""
    told: tuple[Passage, ...] | None = None


ModelEvent: TypeAlias = TextDelta | HandoffCall | Done
OnModelEvent: TypeAlias = Callable[[ModelEvent], Awaitable[None]]

# What the engine tells the shell.


@dataclass(frozen=True, slots=True)
class Acting:
    """What the assistant is doing before its first token: `order`, `knowledge` or `thinking`."""

    activity: str
    subject: str = ""


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of the answer, to be shown."""

    text: str


@dataclass(frozen=True, slots=True)
class HandoffRequested:
    """A person should take over once the answer is finished. `team` by its name, empty for any."""

    reason: str  # rule | model
    team: str = ""


@dataclass(frozen=True, slots=True)
class Finished:
    """The answer is complete. `usage` and `endpoint` are empty where no model was asked.

    `reusable` is the question, where whoever asks it may be given the same text.
    """

    sources: tuple[tuple[str, str], ...]  # (title, url)
    usage: Usage | None = None
    endpoint: str = ""
    reusable: Question | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """No model could answer. The customer reads an honest sentence and is offered a human."""

    error: str


TurnEvent: TypeAlias = Acting | Delta | HandoffRequested | Finished | Failed
Emit: TypeAlias = Callable[[TurnEvent], Awaitable[None]]
