"""One conversation as the model reads it: append-only inside a generation, so that its prefix stays byte-stable."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter

from apps.engine.digest.lines import Line, digest, utf8_size
from apps.engine.prompt import earlier_message, spoken_message, volatile_message
from apps.engine.tokens import BYTES_A_TOKEN, tokens_of_bytes
from apps.engine.types import ChatMessage, Passage, Speaker


@dataclass(frozen=True, slots=True)
class Said:
    """A message at its place in the conversation, encoded and counted once."""

    place: int
    speaker: Speaker
    text: str
    message: ChatMessage


# Most conversations have no more turns, so what is talked about now mostly stands as it was said.
WINDOW_TURNS_A_TURN = 1.2
FEWEST_WINDOW_TURNS, MOST_WINDOW_TURNS = 4, 40


def window_turns(average_turns: float) -> int:
    """How many of the newest turns a shortened context keeps as they were said: the average and a fifth."""
    return min(MOST_WINDOW_TURNS, max(FEWEST_WINDOW_TURNS, math.ceil(average_turns * WINDOW_TURNS_A_TURN)))


@dataclass(frozen=True, slots=True)
class Marks:
    """Above `high` estimated tokens a context is shortened to `low`, of which `recent_share` may stay as it was said.

    Of the newest turns at most `window_turns` stay so; `sized` lets live data set how many. Between the marks nothing
    moves, so that one cold prefix pays for many warm ones.
    """

    high_tokens: int = 12_000
    low_tokens: int = 4_800
    recent_share: float = 0.25
    window_turns: int = 20
    sized: bool = True


@dataclass(frozen=True, slots=True)
class Outgrown:
    """What a context is to be rid of: its earlier lines and the `said` messages behind them, for so many bytes."""

    lines: tuple[Line, ...]
    said: tuple[Said, ...]
    budget_bytes: int

    def shortened(self) -> tuple[Line, ...]:
        """What of it stays. Up to 0.2 s of CPU: not for the loop."""
        return digest(self.lines, self.budget_bytes)


@dataclass(slots=True)
class Context:
    """Holds a conversation's messages in order of place, and what of them the model has already been given.

    A change behind that point only extends the prompt; a change before it starts a new generation, whose first
    prompt shares nothing with the last one's cache. The beginning of a long conversation is held as a digest.
    """

    seq: int = 0  # events up to here are in
    generation: int = 1
    said: list[Said] = field(default_factory=list)
    given: int = 0  # how many of `said` the last prompt of this generation held
    head: tuple[ChatMessage, ...] = ()  # policy and facts, as this generation began
    tokens: int = 0  # of `said` and `earlier`, estimated
    earlier: tuple[Line, ...] = ()  # what is kept of the messages before `said`
    digested: set[int] = field(default_factory=set)  # the places of those messages
    turns_before: int = 0  # how many of them were the customer's
    endpoint: str = ""  # the model's, that answered last: its cache has the prefix
    _digest: ChatMessage | None = None  # `earlier` as the model reads it

    def add(self, place: int, speaker: Speaker, text: str) -> None:
        """Puts a message at its place; one that stands there already stays. O(log n), and O(1) at the end."""
        if place in self.digested:
            return
        index = bisect_left(self.said, place, key=attrgetter("place"))
        if index < len(self.said) and self.said[index].place == place:
            return
        said = Said(place, speaker, text, spoken_message(speaker, text))
        self.said.insert(index, said)
        self.tokens += said.message.tokens
        self._touched(index)

    @property
    def awaits_customer(self) -> bool:
        """Whether the assistant spoke last, or nobody yet: no question is open, and no person speaks."""
        return not self.said or self.said[-1].speaker is Speaker.ASSISTANT

    def with_question(self, text: str) -> Context:
        """A copy in which the customer says this next. What is done to it is not done to this one."""
        copy = replace(self, said=list(self.said), digested=set(self.digested))
        copy.add(
            max([0, *copy.digested, *(said.place for said in copy.said[-1:])]) + 1, Speaker.CUSTOMER, text
        )
        return copy

    def remove(self, place: int) -> None:
        """Takes a message out, and what the digest has of it; what was never there is no error."""
        index = bisect_left(self.said, place, key=attrgetter("place"))
        if index < len(self.said) and self.said[index].place == place:
            self.tokens -= self.said.pop(index).message.tokens
            self._touched(index)
        elif any(line.place == place for line in self.earlier):
            self._replace_earlier(tuple(line for line in self.earlier if line.place != place))

    def outgrown(self, marks: Marks) -> Outgrown | None:
        """What is to be shortened, if the context is above the high mark and more than the newest message is old."""
        if self.tokens <= marks.high_tokens:
            return None
        stays = self._recent(marks)
        old = tuple(self.said[: len(self.said) - stays])
        recent = sum(said.message.tokens for said in self.said[len(old) :])
        lines = (*self.earlier, *(Line(said.place, said.speaker, said.text) for said in old))
        return Outgrown(lines, old, int(max(0, marks.low_tokens - recent) * BYTES_A_TOKEN)) if old else None

    def shorten(self, outgrown: Outgrown, kept: tuple[Line, ...]) -> bool:
        """Puts the digest in the place of what it was made of. False, and nothing done, when that has changed."""
        count = len(outgrown.said)
        if tuple(self.said[:count]) != outgrown.said or outgrown.lines[: len(self.earlier)] != self.earlier:
            return False
        self.tokens -= sum(said.message.tokens for said in outgrown.said)
        self.digested.update(said.place for said in outgrown.said)
        self.turns_before += _turns(outgrown.said)
        del self.said[:count]
        self._replace_earlier(kept)
        return True

    def recall(self, earlier: tuple[Line, ...], digested: set[int], turns_before: int) -> None:
        """Puts a digest that was made before in its place, in a context that has none."""
        self.digested, self.turns_before = digested, turns_before
        self._replace_earlier(earlier)

    def customer_turns(self) -> int:
        return self.turns_before + _turns(self.said)

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
        return (*self.stable_head(), *messages[: len(messages) - len(last)], *tail, *last)

    def known(self, policy: ChatMessage, facts: ChatMessage | None) -> tuple[ChatMessage, ...]:
        """What the next prompt will begin with, as far as that is known before its question. Changes nothing.

        `facts` are those of now, None when they are not known; in a generation that has begun its own count.
        """
        head = self.head if self.head and self.head[0] == policy else (policy, *((facts,) if facts else ()))
        if len(head) == 1:
            return head
        return (*head, *self.stable_head()[len(self.head) :], *(said.message for said in self.said))

    def stable_head(self) -> tuple[ChatMessage, ...]:
        """What stands before the messages: policy and facts as this generation began, and the digest."""
        if self.earlier and self._digest is None:
            self._digest = earlier_message(self.earlier)
        return (*self.head, self._digest) if self._digest is not None else self.head

    def _recent(self, marks: Marks) -> int:
        """How many of the newest messages stay as they were said; one at least."""
        tokens, turns, stays = marks.low_tokens * marks.recent_share, 0, 0
        for said in reversed(self.said):
            tokens -= said.message.tokens
            if stays and (tokens < 0 or turns == marks.window_turns):
                break
            turns += said.speaker is Speaker.CUSTOMER
            stays += 1
        return stays

    def _replace_earlier(self, lines: tuple[Line, ...]) -> None:
        self.tokens += tokens_of_bytes(utf8_size(lines)) - tokens_of_bytes(utf8_size(self.earlier))
        self.earlier, self._digest = lines, None
        self._renew(self.head)

    def _touched(self, index: int) -> None:
        if index < self.given:
            self._renew(self.head)

    def _renew(self, head: tuple[ChatMessage, ...]) -> None:
        if self.given:
            self.generation += 1
        self.head, self.given = head, 0


def _turns(messages: Iterable[Said]) -> int:
    return sum(said.speaker is Speaker.CUSTOMER for said in messages)
