"""What an API has to say of an answer; `chat` and `responses` say it."""

from __future__ import annotations

from typing import Protocol, TypeAlias

import msgspec

from tests.fakes.upstream.faults import Fault
from tests.fakes.upstream.script import Reply, Step

Json: TypeAlias = dict[str, object]
CREATED = 1_700_000_000  # a clock here would make two runs differ


class Tokens(msgspec.Struct, frozen=True, kw_only=True):
    """What an answer cost."""

    prompt: int
    cached: int
    completion: int
    reasoning: int


class Shape(Protocol):
    """The JSON of one answer, event by event. `last_line` goes out behind the last event of a stream."""

    last_line: bytes

    def accepted(self) -> list[Json]:
        """Before the model has thought."""

    def opening(self) -> list[Json]:
        """When it begins to speak."""

    def step(self, step: Step) -> list[Json]: ...

    def empty(self) -> list[Json]:
        """Events that say nothing, for servers that send such."""

    def closing(self, reply: Reply, tokens: Tokens) -> list[Json]: ...

    def whole(self, reply: Reply, tokens: Tokens) -> Json:
        """The answer of a request that did not ask for a stream."""

    def refusal(self, fault: Fault) -> Json:
        """The body of an HTTP error."""

    def error(self, fault: Fault) -> Json:
        """An error inside a stream."""

    def failed(self, fault: Fault) -> list[Json]:
        """The API's own event for an answer that failed; empty where it has none."""
