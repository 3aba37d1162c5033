"""The errors of every provider in our words: by code, type and status, in whatever wrapping they come. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from apps.llm.errors import (
    AuthRefused,
    ChainLost,
    ConnectionExpired,
    ContentFiltered,
    LlmError,
    QuotaExhausted,
    RateLimited,
    RequestRefused,
    ServerFailed,
)


class ErrorObject(msgspec.Struct):
    """An error as providers send it. `code` is a word at some and a number at others."""

    message: Any = ""
    type: Any = None
    code: Any = None


def error_in_words(error: ErrorObject | str, status: int = 0, retry_after_s: float | None = None) -> LlmError:
    """The typed failure behind a provider's error object, by its code and the HTTP status (0 inside a stream)."""
    given = ErrorObject(message=error) if isinstance(error, str) else error
    words = f"{given.code or ''} {given.type or ''}".casefold()
    code = given.code if isinstance(given.code, int) else status
    message = str(given.message)[:300] or f"HTTP {status}"
    if "previous_response_not_found" in words:
        return ChainLost(message)
    if "websocket_connection_limit_reached" in words:
        return ConnectionExpired(message)
    return _of_a_request(words, code, message, retry_after_s)


def _of_a_request(words: str, code: int, message: str, retry_after_s: float | None) -> LlmError:
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
    return ServerFailed(message, retry_after_s)


class _ErrorBody(msgspec.Struct):
    error: ErrorObject | str | None = None
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
