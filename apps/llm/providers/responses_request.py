"""The request of the Responses API: how a prompt becomes instructions and items, and items become bytes. Pure.

The policy is the instructions. The customer's facts stand first in the input; what is of one turn alone (articles, the
rules' instructions, facts that have changed) is one item before the question, worded so that it may stay where it is
when the conversation goes on: an input is only ever extended.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import msgspec

from apps.engine.types import ChatMessage, ModelRequest
from apps.llm.providers.handoff import DESCRIPTION, HANDOFF, parameters
from apps.llm.spec import EndpointSpec

PASSING = "For the customer's next message, in place of all that was given for earlier ones:\n"
WITHDRAWN = (
    "Nothing is given for the customer's next message; what was given for earlier ones no longer holds."
)


@dataclass(frozen=True, slots=True)
class Item:
    """One item of an input. A `passing` one belongs to the turn it came with; two of equal words are equal."""

    message: ChatMessage
    passing: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Prompt:
    """A request in the terms of this API. `fields` is the JSON of everything but the input."""

    fields: bytes
    items: tuple[Item, ...]


def prompt_of(spec: EndpointSpec, request: ModelRequest) -> Prompt:
    """The whole prompt. Equal settings give equal bytes of `fields`."""
    instructions, items = items_of(request.messages)
    if instructions and not spec.quirks.instructions_field:
        items = (Item(ChatMessage("system", instructions)), *items)
        instructions = ""
    return Prompt(_one_copy(_fields(spec, request, instructions)), items)


@lru_cache(maxsize=64)
def _one_copy(fields: bytes) -> bytes:
    """Thousands of chains keep them, with a site's whole instructions."""
    return fields


def items_of(messages: Sequence[ChatMessage]) -> tuple[str, tuple[Item, ...]]:
    """Instructions and items. System messages right before the last question are this turn's own, and become one."""
    leads = bool(messages) and messages[0].role == "system"
    body = list(messages[1:] if leads else messages)
    standing = body[:1] if body and body[0].role == "system" else []
    rest = body[len(standing) :]
    question = rest[-1:] if rest and rest[-1].role == "user" else []
    spoken = rest[: len(rest) - len(question)]
    passing: list[ChatMessage] = []
    while spoken and spoken[-1].role == "system":
        passing.insert(0, spoken.pop())
    items = [Item(message) for message in (*standing, *spoken)]
    if passing:
        words = "\n".join(message.content for message in passing)
        items.append(Item(ChatMessage("system", words), passing=True))
    items += [Item(message) for message in question]
    return messages[0].content if leads else "", tuple(items)


def said(text: str) -> Item:
    """The model's own answer, as the next prompt will hold it."""
    return Item(ChatMessage("assistant", text))


def withdrawal() -> Item:
    """Takes back what was given for an earlier message, when nothing is given for this one."""
    return Item(ChatMessage("system", WITHDRAWN), passing=True)


def body(
    prompt: Prompt, items: Iterable[Item], aside_role: str, *, previous: str = "", more: bytes = b""
) -> bytes:
    """The JSON of one request. `more` are further members, each followed by a comma."""
    chained = b'"previous_response_id":' + msgspec.json.encode(previous) + b"," if previous else b""
    encoded = b",".join(_encoded(item, aside_role) for item in items)
    return b"".join([b"{", more, prompt.fields[1:-1], b",", chained, b'"input":[', encoded, b"]}"])


def headers(spec: EndpointSpec, request: ModelRequest) -> dict[str, str]:
    """Identity coding: a compressing proxy would hold tokens back."""
    made = {"accept": "text/event-stream", "accept-encoding": "identity", "content-type": "application/json"}
    made.update(spec.quirks.headers)
    if spec.quirks.cache_key_header and request.cache_key:
        made[spec.quirks.cache_key_header] = request.cache_key
    return made


def _fields(spec: EndpointSpec, request: ModelRequest, instructions: str) -> bytes:
    quirks = spec.quirks
    fields: dict[str, Any] = {"model": spec.model}
    if instructions:
        fields["instructions"] = instructions
    fields["tools"] = [_handoff_tool(request.teams)]
    fields["store"] = spec.keep_responses
    fields["max_output_tokens"] = min(spec.max_output_tokens, request.max_output_tokens)
    if quirks.quiet_padding:
        fields["stream_options"] = {"include_obfuscation": False}
    if quirks.cache_key_field and request.cache_key:
        fields[quirks.cache_key_field] = request.cache_key
    fields.update(msgspec.json.decode(spec.extra_body))
    return msgspec.json.encode(fields)


def _handoff_tool(teams: tuple[str, ...]) -> dict[str, Any]:
    return {
        "type": "function",
        "name": HANDOFF,
        "description": DESCRIPTION,
        "parameters": parameters(teams),
        "strict": False,  # a strict schema may have no optional member
    }


def _encoded(item: Item, aside_role: str) -> bytes:
    message = item.message
    if message.role != "system":
        return message.json
    words = (
        f"{PASSING}{message.content}" if item.passing and message.content != WITHDRAWN else message.content
    )
    return msgspec.json.encode({"role": aside_role, "content": words})
