"""An event-stream reader by the letter of the standard, for judging a stream that a fake has sent."""

from __future__ import annotations

import re

import msgspec


class Function(msgspec.Struct):
    arguments: str = ""
    name: str = ""


class Call(msgspec.Struct):
    index: int
    function: Function


class Delta(msgspec.Struct):
    content: str | None = None
    reasoning_content: str = ""
    reasoning: str = ""
    tool_calls: list[Call] = []


class Choice(msgspec.Struct):
    delta: Delta
    finish_reason: str | None = None


class Cached(msgspec.Struct):
    cached_tokens: int


class Usage(msgspec.Struct):
    prompt_tokens: int
    completion_tokens: int
    prompt_tokens_details: Cached | None = None
    prompt_cache_hit_tokens: int | None = None


class Chunk(msgspec.Struct):
    id: str
    choices: list[Choice]
    usage: Usage | None = None
    obfuscation: str = ""


class Stream:
    """A whole answer, read back."""

    def __init__(self, body: bytes) -> None:
        self.events = events(body)
        known = [data for data in self.events if data.startswith('{"id"')]
        self.chunks = [msgspec.json.decode(data, type=Chunk) for data in known]
        self._choices = [choice for chunk in self.chunks for choice in chunk.choices]

    @property
    def text(self) -> str:
        return "".join(choice.delta.content or "" for choice in self._choices)

    @property
    def reasoning(self) -> str:
        return "".join(c.delta.reasoning_content + c.delta.reasoning for c in self._choices)

    @property
    def finish(self) -> list[str]:
        return [choice.finish_reason for choice in self._choices if choice.finish_reason]

    @property
    def usage(self) -> Usage | None:
        return next((chunk.usage for chunk in self.chunks if chunk.usage), None)

    @property
    def calls(self) -> list[Call]:
        return [call for choice in self._choices for call in choice.delta.tool_calls]

    @property
    def done(self) -> bool:
        return self.events[-1:] == ["[DONE]"]


def events(body: bytes) -> list[str]:
    """The data of each event. Lines end with CRLF, LF or CR; comments and other fields are ignored."""
    found: list[str] = []
    data: list[str] = []
    for line in re.split(r"\r\n|\n|\r", body.decode()):
        name, _, value = line.partition(":")
        if not line and data:
            found.append("\n".join(data))
            data = []
        elif name == "data":
            data.append(value.removeprefix(" "))
    return found
