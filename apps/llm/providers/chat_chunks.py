"""The chunks of a Chat Completions stream, typed and folded into what the engine wants. Pure: bytes in, values out."""

from __future__ import annotations

import msgspec

from apps.engine.events import Done, ModelEvent
from apps.engine.types import Usage
from apps.llm.errors import BadData, BrokenStream, ContentFiltered, NoAnswer
from apps.llm.providers.handoff import HANDOFF, call_of
from apps.llm.providers.refusals import ErrorObject, error_in_words

END = "[DONE]"


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: str | None = None


class _ToolCall(msgspec.Struct):
    index: int = 0
    function: _Function | None = None


class _Delta(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[_ToolCall] | None = None


class _Choice(msgspec.Struct):
    index: int = 0
    delta: _Delta | None = None
    finish_reason: str | None = None


class _CachedTokens(msgspec.Struct):
    cached_tokens: int | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _CachedTokens | None = None
    prompt_cache_hit_tokens: int | None = None  # DeepSeek

    def parsed(self) -> Usage:
        details = self.prompt_tokens_details
        cached = (details.cached_tokens if details else None) or self.prompt_cache_hit_tokens or 0
        return Usage(self.prompt_tokens or 0, self.completion_tokens or 0, cached)


class _Chunk(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: ErrorObject | str | None = None


_chunks = msgspec.json.Decoder(_Chunk)


class Reply:
    """One answer as it arrives. `take` each event's data, then `end` once for what comes after the text."""

    def __init__(self) -> None:
        self.finish = ""  # the finish reason, once it is known
        self.closed = False  # nothing more will come
        self.usage: Usage | None = None
        self._said = False
        self._calls: dict[int, tuple[list[str], list[str]]] = {}  # index → pieces of name, of arguments

    def take(self, data: str) -> tuple[str, bool]:
        """The text in this chunk, and whether the model moved on. Raises `LlmError` for an error inside the stream."""
        if data.strip() == END:
            self.closed = True
            return "", False
        try:
            chunk = _chunks.decode(data)
        except msgspec.MsgspecError as error:
            raise BadData(f"a chunk is not as agreed: {error}") from error
        if chunk.error:
            raise error_in_words(chunk.error)
        if chunk.usage is not None:
            self.usage = chunk.usage.parsed()
        text, moved = "", False
        for choice in chunk.choices or ():
            if choice.index == 0:
                more, progress = self._take_choice(choice)
                text, moved = text + more, moved or progress
        return text, moved

    def _take_choice(self, choice: _Choice) -> tuple[str, bool]:
        if choice.finish_reason:
            self.finish = choice.finish_reason
        delta = choice.delta
        if delta is None:
            return "", bool(choice.finish_reason)
        for call in delta.tool_calls or ():
            names, arguments = self._calls.setdefault(call.index, ([], []))
            if call.function is not None:
                names.append(call.function.name or "")
                arguments.append(call.function.arguments or "")
        # A refusal is the model's own words to the customer; reasoning is not meant for anyone's eyes.
        text = delta.content or delta.refusal or ""
        self._said = self._said or bool(text)
        thought = delta.reasoning_content or delta.reasoning
        return text, bool(text or thought or delta.tool_calls or choice.finish_reason)

    def end(self, endpoint: str, teams: tuple[str, ...]) -> list[ModelEvent]:
        """The action, if the model chose one, and `Done`. Raises `BrokenStream`, `ContentFiltered` or `NoAnswer`."""
        if not self.finish and not self.closed:
            raise BrokenStream("the stream ended without a finish reason")
        if self.finish == "content_filter" and not self._said:
            raise ContentFiltered("the provider's filter stopped the answer")
        handoffs = [
            call_of("".join(arguments), teams)
            for _, (names, arguments) in sorted(self._calls.items())
            if "".join(names) == HANDOFF
        ]
        if not handoffs and not self._said:
            raise NoAnswer(f"finished ({self.finish or 'no reason given'}) without a word or an action")
        return [*handoffs[:1], Done(self.finish or "stop", self.usage, endpoint)]
