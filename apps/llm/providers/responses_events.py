"""The events of the Responses API, typed and folded into what the engine wants. Pure: bytes in, values out.

The same objects come as server-sent events and as WebSocket messages; only errors differ (flat, or nested with a
status). Kinds that are not known are nobody's business: there are some sixty, and new ones come.
"""

from __future__ import annotations

from typing import Any

import msgspec

from apps.engine.events import Done, ModelEvent
from apps.engine.types import Usage
from apps.llm.errors import BadData, BrokenStream, ContentFiltered, LlmError, NoAnswer
from apps.llm.providers.handoff import HANDOFF, call_of
from apps.llm.providers.refusals import ErrorObject, error_in_words

_TERMINAL = frozenset({"response.completed", "response.incomplete", "response.failed", "error"})
# A model that is only accepted or queued has not moved; one that thinks, speaks or calls has.
_PROGRESS = (
    "response.output_",
    "response.content_part.",
    "response.refusal.",
    "response.reasoning",
    "response.function_call_arguments.",
)
_FINISH = {"max_output_tokens": "length", "content_filter": "content_filter"}


class _CachedTokens(msgspec.Struct):
    cached_tokens: int | None = None


class _Usage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: _CachedTokens | None = None

    def parsed(self) -> Usage:
        cached = self.input_tokens_details.cached_tokens if self.input_tokens_details else None
        return Usage(self.input_tokens or 0, self.output_tokens or 0, cached or 0)


class _Item(msgspec.Struct):
    type: str | None = None
    name: str | None = None
    arguments: str | None = None


class _Details(msgspec.Struct):
    reason: str | None = None


class _Response(msgspec.Struct):
    id: str | None = None
    error: ErrorObject | None = None
    incomplete_details: _Details | None = None
    usage: _Usage | None = None


class _NestedError(msgspec.Struct):
    message: Any = ""
    type: Any = None
    code: Any = None
    param: Any = None
    headers: dict[str, Any] | None = None


class Event(msgspec.Struct):
    """One event, whatever its kind. `stream_id` is None on the default lane, and always over HTTP."""

    type: str = ""
    stream_id: str | None = None
    delta: Any = None
    text: Any = None
    output_index: int = 0
    content_index: int = 0
    item: _Item | None = None
    response: _Response | None = None
    # Of errors: nested with a status over a WebSocket, flat over HTTP.
    error: _NestedError | None = None
    status: int | None = None
    status_code: int | None = None
    headers: dict[str, Any] | None = None
    code: Any = None
    message: Any = None
    param: Any = None

    @property
    def terminal(self) -> bool:
        """Whether its response ends with it."""
        return self.type in _TERMINAL

    @property
    def response_id(self) -> str:
        return (self.response.id if self.response else None) or ""

    def failure(self) -> LlmError:
        """The typed failure of an `error` event."""
        nested = self.error or _NestedError(self.message, None, self.code, self.param)
        given = ErrorObject(nested.message, nested.type, nested.code)
        headers = {**(self.headers or {}), **(nested.headers or {})}
        return error_in_words(
            given, self.status or self.status_code or 0, _seconds(headers.get("retry-after"))
        )

    @property
    def names_unknown_lane(self) -> bool:
        """Whether it refuses `stream_id` itself: a server of the sequential variant."""
        nested = self.error or _NestedError(param=self.param)
        return self.type == "error" and nested.param == "stream_id" and not self.stream_id


_events = msgspec.json.Decoder(Event)


def parsed(data: bytes | str) -> Event:
    """Raises `BadData` for what is no event."""
    try:
        return _events.decode(data)
    except msgspec.MsgspecError as error:
        raise BadData(f"an event is not as agreed: {error}") from error


class Reply:
    """One answer as it arrives. Feed it each event, then call `end` once for what comes after the text."""

    def __init__(self) -> None:
        self.finish = ""  # the finish reason, once it is known
        self.closed = False  # nothing more will come
        self.usage: Usage | None = None
        self.response_id = ""
        self.text = ""
        self.called = False  # a function: the response cannot be continued without its result
        self._pieces: list[str] = []
        self._parts: dict[tuple[int, int], int] = {}  # (output, content) → characters said of that part
        self._handoffs: list[str] = []  # their arguments

    def take(self, data: str) -> tuple[str, bool]:
        """The text in this event, and whether the model moved on. Raises `LlmError`."""
        return self.fold(parsed(data))

    def fold(self, event: Event) -> tuple[str, bool]:
        """The same of an event that is parsed already."""
        match event.type:
            case "response.output_text.delta" | "response.refusal.delta":
                return self._say(event, str(event.delta or "")), True
            case "response.output_text.done":
                return self._rest(event), True
            case "response.output_item.done" if event.item is not None and event.item.type == "function_call":
                self._call(event.item)
            case "response.created" | "response.in_progress":
                self.response_id = event.response_id
            case "response.completed" | "response.incomplete":
                self._finish(event)
            case "response.failed":
                raise _failure_of(event)
            case "error":
                raise event.failure()
        return "", event.terminal or event.type.startswith(_PROGRESS)

    def end(self, endpoint: str, teams: tuple[str, ...]) -> list[ModelEvent]:
        """The action, if the model chose one, and `Done`. Raises `BrokenStream`, `ContentFiltered` or `NoAnswer`."""
        self.text = "".join(self._pieces)
        if not self.closed:
            raise BrokenStream("the stream ended before the response did")
        if self.finish == "content_filter" and not self.text:
            raise ContentFiltered("the provider's filter stopped the answer")
        if not self._handoffs and not self.text:
            raise NoAnswer(f"finished ({self.finish}) without a word or an action")
        finish = "tool_calls" if self._handoffs and self.finish == "stop" else self.finish
        handoffs: list[ModelEvent] = [call_of(arguments, teams) for arguments in self._handoffs[:1]]
        return [*handoffs, Done(finish, self.usage, endpoint)]

    def _say(self, event: Event, text: str) -> str:
        # A refusal is the model's own words to the customer.
        part = (event.output_index, event.content_index)
        self._parts[part] = self._parts.get(part, 0) + len(text)
        if text:
            self._pieces.append(text)
        return text

    def _rest(self, event: Event) -> str:
        """What `done` holds beyond the deltas; all of it where a server sends none."""
        so_far = self._parts.get((event.output_index, event.content_index), 0)
        return self._say(event, str(event.text or "")[so_far:])

    def _call(self, item: _Item) -> None:
        self.called = True
        if item.name == HANDOFF:
            self._handoffs.append(item.arguments or "")

    def _finish(self, event: Event) -> None:
        response = event.response or _Response()
        self.closed = True
        self.response_id = event.response_id or self.response_id
        details = response.incomplete_details
        reason = (details.reason if details else None) or ""
        self.finish = _FINISH.get(reason, reason) or (
            "stop" if event.type == "response.completed" else "length"
        )
        if response.usage is not None:
            self.usage = response.usage.parsed()


def _failure_of(event: Event) -> LlmError:
    error = event.response.error if event.response else None
    return error_in_words(error or "the response failed")


def _seconds(value: Any) -> float | None:
    try:
        return max(0.0, float(value))
    except (TypeError, ValueError):
        return None
