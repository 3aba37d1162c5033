"""A conversation as what each message did, and what of its past helps to guess what comes next.

`History` takes a message in constant time and keeps bounded memory, however long the conversation gets.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

Act = tuple[str, str]  # what is done, and the topic; "" where there is none, as in thanks

MAX_TOPICS: Final = 16
MAX_DETAILS: Final = 32
LAST_ASKED: Final = 3
LAST_MOVES: Final = 3


@dataclass(frozen=True, slots=True)
class Move:
    """One message. `acts` has the most important first; `details` are finer than acts (what exactly was asked);
    `named` are topics that were mentioned and not acted on.
    """

    by_customer: bool
    acts: tuple[Act, ...]
    details: frozenset[str] = frozenset()
    named: frozenset[str] = frozenset()

    @property
    def request(self) -> tuple[Act, ...]:
        """All that the message does, without order or repetition: what a prediction names."""
        return tuple(sorted(set(self.acts)))


class History:
    """What was said so far. The topic is the customer's: it stays until a message acts on another."""

    def __init__(self) -> None:
        self.topic = ""
        self.topics: tuple[str, ...] = ()  # in the order they came up
        self.customer_moves = 0
        self.moves_on_topic = 0
        self.asked: deque[tuple[Act, ...]] = deque(maxlen=LAST_ASKED)
        self.asked_relatively: deque[str] = deque(maxlen=LAST_ASKED)
        self.moves: deque[tuple[Act, ...]] = deque(maxlen=LAST_MOVES)  # of both sides
        self.details: frozenset[str] = frozenset()  # of the last customer's message
        self.details_on_topic: frozenset[str] = frozenset()
        self.named: frozenset[str] = frozenset()
        self.named_on_topic: frozenset[str] = frozenset()
        self.reply: tuple[Act, ...] = ()
        self.reply_details: frozenset[str] = frozenset()
        self.times: dict[Act, int] = {}  # how often each was asked

    def observe(self, move: Move) -> None:
        """Takes the next message."""
        if move.by_customer:
            self._asked(move)
        else:
            self.reply = move.request
            self.reply_details = _some(move.details)
        self.moves.append(move.request)

    def relative(self, request: tuple[Act, ...]) -> str:
        """The request with its topics as seen from here, so that what holds for one topic helps with others."""
        return "|".join(sorted({f"{kind}:{self._place(topic)}" for kind, topic in request}))

    def _place(self, topic: str) -> str:
        if not topic:
            return ""
        if topic == self.topic:
            return "same"
        return "earlier" if topic in self.topics else "new"

    def _asked(self, move: Move) -> None:
        request = move.request
        self.asked.append(request)
        self.asked_relatively.append(self.relative(request))
        self._turn_to(next((topic for _, topic in move.acts if topic), self.topic))
        self.customer_moves += 1
        self.moves_on_topic += 1
        self.details, self.named = _some(move.details), _some(move.named)
        self.details_on_topic = _some(self.details_on_topic | self.details)
        self.named_on_topic = _some(self.named_on_topic | self.named)
        for act in request:
            if act in self.times or len(self.times) < MAX_DETAILS:
                self.times[act] = self.times.get(act, 0) + 1

    def _turn_to(self, topic: str) -> None:
        if topic == self.topic:
            return
        self.topic, self.moves_on_topic = topic, 0
        self.details_on_topic = self.named_on_topic = frozenset()
        if topic not in self.topics and len(self.topics) < MAX_TOPICS:
            self.topics += (topic,)


def steps(moves: Iterable[Move]) -> Iterator[tuple[History, tuple[Act, ...]]]:
    """The history before each of the customer's messages but the first, and what that message asked.

    It is one history that moves on: look at it before taking the next.
    """
    history = History()
    for move in moves:
        if move.by_customer and history.customer_moves:
            yield history, move.request
        history.observe(move)


def _some(items: frozenset[str]) -> frozenset[str]:
    return items if len(items) <= MAX_DETAILS else frozenset(sorted(items)[:MAX_DETAILS])
