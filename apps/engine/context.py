"""One conversation as the model reads it: append-only inside a generation, so that its prefix stays byte-stable."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from apps.engine.prompt import spoken_message, volatile_message
from apps.engine.types import ChatMessage, Passage, Speaker


@dataclass(frozen=True, slots=True)
class Said:
    """A message at its place in the conversation, encoded and counted once."""

    place: int
    speaker: Speaker
    message: ChatMessage


@dataclass(slots=True)
class Context:
    """Holds a conversation's messages in order of place, and what of them the model has already been given.

    A change behind that point only extends the prompt; a change before it starts a new generation, whose first
    prompt shares nothing with the last one's cache.
    """

    seq: int = 0  # events up to here are in
    generation: int = 1
    said: list[Said] = field(default_factory=list)
    given: int = 0  # how many of `said` the last prompt of this generation held
    head: tuple[ChatMessage, ...] = ()  # policy and facts, as this generation began
    tokens: int = 0  # of `said`, estimated
    dropped_turns: int = 0  # customer messages that are no longer in `said`

    def add(self, place: int, speaker: Speaker, text: str) -> None:
        """Puts a message at its place; one that stands there already stays. O(log n), and O(1) at the end."""
        index = bisect_left(self.said, place, key=attrgetter("place"))
        if index < len(self.said) and self.said[index].place == place:
            return
        said = Said(place, speaker, spoken_message(speaker, text))
        self.said.insert(index, said)
        self.tokens += said.message.tokens
        self._touched(index)

    def remove(self, place: int) -> None:
        """Takes a message out; what was never there is no error."""
        index = bisect_left(self.said, place, key=attrgetter("place"))
        if index < len(self.said) and self.said[index].place == place:
            self.tokens -= self.said.pop(index).message.tokens
            self._touched(index)

    def shrink(self, high: int, low: int) -> None:
        """Above `high` estimated tokens, leaves out the oldest messages until `low` is reached."""
        if self.tokens <= high:
            return
        gone = 0
        while self.tokens > low and gone < len(self.said) - 1:
            self.tokens -= self.said[gone].message.tokens
            gone += 1
        self.dropped_turns += sum(said.speaker is Speaker.CUSTOMER for said in self.said[:gone])
        del self.said[:gone]
        self._touched(0)

    def customer_turns(self) -> int:
        return self.dropped_turns + sum(said.speaker is Speaker.CUSTOMER for said in self.said)

    def prompt(
        self,
        policy: ChatMessage,
        facts: ChatMessage,
        passages: Sequence[Passage],
        instructions: Sequence[str],
    ) -> tuple[ChatMessage, ...]:
        """Policy, the customer's facts as this generation began, the conversation, then what is this turn's alone.

        The newest customer message comes last. Facts that have changed since are told again, behind the history.
        """
        if not self.head or self.head[0] != policy:
            self._renew((policy, facts))
        volatile = volatile_message(passages, instructions)
        tail = (*((facts,) if self.head[1] != facts else ()), *((volatile,) if volatile is not None else ()))
        messages = [said.message for said in self.said]
        self.given = len(messages)
        last = messages[-1:] if messages and messages[-1].role == "user" else []
        return (*self.head, *messages[: len(messages) - len(last)], *tail, *last)

    def _touched(self, index: int) -> None:
        if index < self.given:
            self._renew(self.head)

    def _renew(self, head: tuple[ChatMessage, ...]) -> None:
        if self.given:
            self.generation += 1
        self.head, self.given = head, 0
