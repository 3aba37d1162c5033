"""The values a turn works on. Frozen, framework-free; parsed once at the edge."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

import msgspec

from apps.engine.tokens import estimated_tokens

AttributeValue = str | int | float | bool


class Speaker(StrEnum):
    """Who has said something."""

    CUSTOMER = "customer"
    ASSISTANT = "assistant"
    AGENT = "agent"


@dataclass(frozen=True, slots=True)
class Utterance:
    """Something said, at its place in the conversation. An empty text was removed later."""

    speaker: Speaker
    text: str
    place: int


@dataclass(frozen=True, slots=True)
class Order:
    """An order as the shop tells it. Dates are ISO days; `total` is formatted with its currency."""

    number: str
    status: str  # processing | shipped | in_transit | delivered | cancelled | returned
    placed_on: str
    items: tuple[str, ...] = ()
    total: str = ""
    carrier: str = ""
    tracking: str = ""
    eta: str = ""


@dataclass(frozen=True, slots=True)
class Profile:
    """A known customer, as the shop tells of them."""

    name: str
    email: str = ""
    tier: str = ""
    attributes: dict[str, AttributeValue] = field(default_factory=dict)


class FactsState(StrEnum):
    """How the facts came, or why there are none."""

    WARM = "warm"  # read from the preloaded copy
    COLD = "cold"  # fetched inside the turn
    NONE = "none"  # a visitor, or the site has no source
    UNAVAILABLE = "unavailable"  # the source did not answer in time


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of the asker. An unverified visitor has neither profile nor orders."""

    verified: bool
    state: FactsState
    profile: Profile | None = None
    orders: tuple[Order, ...] = ()


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of an article. `score` orders passages of one query and means nothing between queries.

    `answerable` is the ranker's verdict that the passage really is about the question. `heading` stands above it in
    the article, below the title.
    """

    title: str
    text: str
    url: str
    score: float
    answerable: bool
    locale: str = "en"
    heading: str = ""


@dataclass(frozen=True, slots=True)
class Assistant:
    """How the site's assistant presents itself."""

    name: str
    site_name: str
    instructions: str


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one answer; `cached_tokens` is a part of `prompt_tokens`."""

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int = 0


@dataclass(frozen=True)
class ChatMessage:
    """A message of the prompt. Its encoding and its size are worked out once, however often it is sent."""

    role: str  # system | user | assistant
    content: str

    @cached_property
    def json(self) -> bytes:
        return msgspec.json.encode({"role": self.role, "content": self.content})

    @cached_property
    def tokens(self) -> int:
        """Estimated; see `tokens.py`."""
        return estimated_tokens(self.content)


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """What a provider needs to answer. `messages` is the prompt; the rest is the same in structured form,
    for the builtin provider, which has no language model.
    """

    messages: tuple[ChatMessage, ...]
    question: str
    locale: str
    facts: Facts
    passages: tuple[Passage, ...]
    teams: tuple[str, ...] = ()
    max_output_tokens: int = 700
    cache_key: str = ""
    endpoint: str = ""  # that answered this conversation last, whose cache may have the prefix

    @property
    def prompt_tokens(self) -> int:
        """Of all messages, estimated."""
        return sum(message.tokens for message in self.messages)
