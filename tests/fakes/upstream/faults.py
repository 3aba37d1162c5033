"""What can go wrong with an answer, and the plans by which a test orders it."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tests.fakes.upstream.profile import Chunking, Dialect, LineEnd, Reporting
from tests.fakes.upstream.script import Script, Text, ToolCall


class Place(StrEnum):
    """Where in the answer it happens."""

    HEADERS = "before_headers"
    DATA = "before_first_data"  # the head is out, no event yet
    STREAM = "mid_stream"  # when `after_tokens` tokens are out
    END = "before_end"  # all words are out, finish_reason is not


class Action(StrEnum):
    """What happens there."""

    STATUS = "status"  # only at HEADERS: refuses with `status`, `code` and `retry_after`
    STALL = "stall"  # silence until released (or for `seconds`); with `keepalive_s`, comments only
    RESET = "reset"  # TCP RST
    CLOSE = "close"  # FIN with the body unfinished
    RESET_STREAM = "reset_stream"  # HTTP/2 RST_STREAM; over HTTP/1.1 as RESET
    GOAWAY = "goaway"  # HTTP/2; at HEADERS the request is refused, later it is finished
    END = "end"  # a proper end of the body, without finish_reason and [DONE]
    ERROR = "error"  # an error object inside the 200 stream, then a proper end
    GARBAGE = "garbage"  # an event that is not JSON; then it goes on
    CUT_CHARACTER = "cut_character"  # closes in the middle of a character of three bytes
    FAILED = "failed"  # Responses: `response.failed`, then a proper end
    MISFRAME = "misframe"  # WebSocket: a frame that breaks the protocol; over HTTP as RESET


class Fault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One thing going wrong. A STREAM fault behind the answer's last token never happens."""

    action: Action
    place: Place = Place.STREAM
    after_tokens: int = 2
    status: int = 500
    code: str = "server_error"
    message: str = "The server had an error while processing your request."
    retry_after: str = ""
    seconds: float = 0.0  # 0: until released or the client leaves
    keepalive_s: float = 0.0
    laneless: bool = False  # WebSocket: the error names no stream


class Plan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the next chat request (or `times` of them) is answered; None leaves it to the profile."""

    script: Script | None = None
    faults: tuple[Fault, ...] = ()
    dialect: Dialect | None = None
    first_token_s: float | None = None  # prefill comes on top
    tokens_per_s: float | None = None
    match: str = ""  # only requests whose body contains this
    times: int = 1


def refusal(status: int, code: str, *, retry_after: str = "", times: int = 1) -> Plan:
    """An HTTP error with OpenAI's error body."""
    fault = Fault(
        action=Action.STATUS, place=Place.HEADERS, status=status, code=code, retry_after=retry_after
    )
    return Plan(faults=(fault,), times=times)


def fault(action: Action, place: Place = Place.STREAM, *, keepalive_s: float = 0.0) -> Plan:
    """One fault in an otherwise good answer."""
    return Plan(faults=(Fault(action=action, place=place, keepalive_s=keepalive_s),))


def dialect(**fields: object) -> Plan:
    """A good answer in another dialect."""
    return Plan(dialect=msgspec.structs.replace(Dialect(), **fields))


# Answers that fail. A client has to end each with its typed error, in bounded time, and leak nothing.
FAILING: dict[str, Plan] = {
    "reset_before_headers": fault(Action.RESET, Place.HEADERS),
    "reset_before_first_data": fault(Action.RESET, Place.DATA),
    "reset_mid_stream": fault(Action.RESET),
    "close_before_headers": fault(Action.CLOSE, Place.HEADERS),
    "close_mid_stream": fault(Action.CLOSE),
    "reset_stream_mid_stream": fault(Action.RESET_STREAM),
    "stall_before_headers": fault(Action.STALL, Place.HEADERS),
    "stall_before_first_data": fault(Action.STALL, Place.DATA),
    "stall_before_first_data_with_comments": fault(Action.STALL, Place.DATA, keepalive_s=0.02),
    "stall_mid_stream": fault(Action.STALL),
    "stall_mid_stream_with_comments": fault(Action.STALL, keepalive_s=0.02),
    "cut_mid_character": fault(Action.CUT_CHARACTER),
    "error_first": fault(Action.ERROR, Place.DATA),
    "error_mid_stream": fault(Action.ERROR),
    "end_without_anything": fault(Action.END, Place.DATA),
    "end_mid_stream": fault(Action.END),
    "end_without_finish_and_done": fault(Action.END, Place.END),
    "unauthorized": refusal(401, "invalid_api_key"),
    "forbidden": refusal(403, "permission_denied"),
    "unknown_model": refusal(404, "model_not_found"),
    "rate_limited": refusal(429, "rate_limit_exceeded"),
    "rate_limited_with_retry_after": refusal(429, "rate_limit_exceeded", retry_after="2"),
    "server_error": refusal(500, "server_error"),
    "overloaded": refusal(503, "overloaded", retry_after="1"),
}

# Answers that are good in spite of how they look. A client has to read each to its end.
ODD: dict[str, Plan] = {
    "done_missing": dialect(done=False),
    "empty_deltas": dialect(empty_deltas=True),
    "unknown_events": dialect(unknown_events=True),
    "unknown_fields": dialect(unknown_fields=True),
    "comments": dialect(comments=True),
    "crlf": dialect(line_end=LineEnd.CRLF),
    "cr": dialect(line_end=LineEnd.CR),
    "no_space": dialect(space=False),
    "two_data_lines": dialect(two_lines=True),
    "single_bytes": dialect(chunking=Chunking.BYTES),
    "single_bytes_crlf": dialect(chunking=Chunking.BYTES, line_end=LineEnd.CRLF),
    "random_chunks": dialect(chunking=Chunking.RANDOM),
    "burst": dialect(chunking=Chunking.BURST),
    "obfuscation": dialect(obfuscation=True),
    "usage_missing": dialect(usage=Reporting.NEVER),
    "usage_unasked": dialect(usage=Reporting.ALWAYS),
    "usage_deepseek": dialect(deepseek_usage=True),
    "line_separator_in_text": Plan(script=Text("one\u2028two\u2029three\u0085four")),
    "reasoning_content": Plan(script=Text("42.", reasoning="Six times seven.")),
    "reasoning": Plan(
        script=Text("42.", reasoning="Six times seven."), dialect=Dialect(reasoning_field="reasoning")
    ),
    "tool_call": Plan(script=ToolCall()),
}

# A client may take these as answers or as failures, but it has to end them and say which.
DEBATABLE: dict[str, Plan] = {
    "goaway_mid_stream": fault(Action.GOAWAY),  # clients built on h2 cannot read on after it
    "finish_missing": dialect(finish=False),
    "garbage_event": fault(Action.GARBAGE),
}
