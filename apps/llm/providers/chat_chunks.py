"""The chunks of a Chat Completions stream, typed and folded into what the engine wants. Pure: bytes in, values out."""

from __future__ import annotations

from typing import Any

import msgspec

from apps.engine.events import Done, HandoffCall, ModelEvent
from apps.engine.types import Usage
from apps.llm.errors import (
    AuthRefused,
    BadData,
    BrokenStream,
    ContentFiltered,
    LlmError,
    NoAnswer,
    QuotaExhausted,
    RateLimited,
    RequestRefused,
    ServerFailed,
)

HANDOFF = "handoff"
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


class _Error(msgspec.Struct):
    message: Any = ""
    type: Any = None
    code: Any = None


class _Chunk(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: _Error | str | None = None


class _Handoff(msgspec.Struct):
    reason: str = ""
    team: str | None = None


_chunks = msgspec.json.Decoder(_Chunk)
_handoffs = msgspec.json.Decoder(_Handoff)


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
            _handoff("".join(arguments), teams)
            for _, (names, arguments) in sorted(self._calls.items())
            if "".join(names) == HANDOFF
        ]
        if not handoffs and not self._said:
            raise NoAnswer(f"finished ({self.finish or 'no reason given'}) without a word or an action")
        return [*handoffs[:1], Done(self.finish or "stop", self.usage, endpoint)]


def _handoff(arguments: str, teams: tuple[str, ...]) -> HandoffCall:
    """The wish for a human counts even when its details are garbled."""
    try:
        call = _handoffs.decode(arguments or "{}")
    except msgspec.MsgspecError:
        call = _Handoff()
    known = {team.casefold(): team for team in teams}
    return HandoffCall(call.reason[:500], known.get((call.team or "").casefold(), ""))


def error_in_words(error: _Error | str, status: int = 0, retry_after_s: float | None = None) -> LlmError:
    """The typed failure behind a provider's error object, by its code and the HTTP status (0 inside a stream)."""
    given = _Error(message=error) if isinstance(error, str) else error
    words = f"{given.code or ''} {given.type or ''}".casefold()
    code = given.code if isinstance(given.code, int) else status
    message = str(given.message)[:300] or f"HTTP {status}"
    if "insufficient_quota" in words or code == 402:
        return QuotaExhausted(message)
    if code in (401, 403) or "invalid_api_key" in words or "authentication" in words:
        return AuthRefused(message)
    if code == 429 or "rate_limit" in words:
        return RateLimited(message, retry_after_s)
    if "content_filter" in words or "content_policy" in words:
        return ContentFiltered(message)
    if 300 <= code < 500 or "invalid_request" in words:
        return RequestRefused(message)
    return ServerFailed(message)


class _ErrorBody(msgspec.Struct):
    error: _Error | str | None = None
    message: Any = ""
    detail: Any = ""


_error_bodies = msgspec.json.Decoder(_ErrorBody)


def error_of_response(status: int, body: bytes, retry_after_s: float | None) -> LlmError:
    """The typed failure behind a response that is not a stream. Any body will do, also none."""
    try:
        given = _error_bodies.decode(body)
    except msgspec.MsgspecError:
        return error_in_words("", status, retry_after_s)
    error = given.error or str(given.message or given.detail or "")
    return error_in_words(error, status, retry_after_s)
