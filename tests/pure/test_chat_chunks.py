"""Chunks of servers that deviate: what is read, what is dropped, what is a failure."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.engine.events import Done, HandoffCall
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
from apps.llm.providers.chat_chunks import Reply
from apps.llm.providers.refusals import error_of_response
from tests.support.any_json import any_json


def chunk(finish: str | None = None, **delta: Any) -> str:
    return json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})


def reply_of(*data: str) -> tuple[str, Reply]:
    reply = Reply()
    return "".join(reply.take(each)[0] for each in data), reply


def test_reasoning_is_progress_and_no_text() -> None:
    reply = Reply()
    assert reply.take(chunk(reasoning_content="hm")) == ("", True)
    assert reply.take(chunk(reasoning="hm")) == ("", True)
    assert reply.take(chunk(role="assistant", content="")) == ("", False)
    assert reply.take(chunk(content="42")) == ("42", True)
    assert reply.take('{"choices": []}') == ("", False)
    assert reply.take('{"choices": null, "usage": null}') == ("", False)


def test_usage_comes_in_a_chunk_without_choices_in_either_dialect() -> None:
    _, reply = reply_of(
        chunk(content="x", finish="stop"),
        '{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4}}}',
    )
    assert reply.end("e", ()) == [Done("stop", Usage(9, 2, 4), "e")]
    _, reply = reply_of(
        chunk(content="x", finish="stop"),
        '{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"prompt_cache_hit_tokens":3}}',
    )
    assert reply.usage == Usage(9, 2, 3)


def test_calls_are_put_together_by_index_and_only_the_handoff_counts() -> None:
    pieces = [
        (0, {"name": "weather", "arguments": '{"city"'}), (1, {"name": "handoff", "arguments": '{"reas'}),
        (0, {"arguments": ': "Ulm"}'}), (1, {"arguments": 'on": "angry"}'}),
    ]  # fmt: skip
    chunks = [chunk(tool_calls=[{"index": index, "function": function}]) for index, function in pieces]
    _, reply = reply_of(*chunks, chunk(finish="tool_calls"))
    assert reply.end("e", ())[0] == HandoffCall("angry", "")


def test_a_call_of_an_unknown_tool_alone_is_no_answer() -> None:
    call = {"index": 0, "function": {"name": "weather", "arguments": "{}"}}
    _, reply = reply_of(chunk(tool_calls=[call]), chunk(finish="tool_calls"))
    with pytest.raises(NoAnswer):
        reply.end("e", ())


def test_a_second_choice_is_not_mixed_into_the_first() -> None:
    both = {
        "choices": [{"index": 0, "delta": {"content": "a"}}, {"index": 1, "delta": {"content": "b"}}],
    }
    assert reply_of(json.dumps(both))[0] == "a"


@pytest.mark.parametrize(
    ("data", "failure"),
    [
        ([chunk(content="half")], BrokenStream), ([chunk(finish="length")], NoAnswer), (["[DONE]"], NoAnswer),
        ([chunk(finish="content_filter")], ContentFiltered),
    ],
)  # fmt: skip
def test_an_end_that_is_none_is_named(data: list[str], failure: type[LlmError]) -> None:
    _, reply = reply_of(*data)
    with pytest.raises(failure):
        reply.end("e", ())


def test_a_filter_behind_words_is_an_end_and_done_without_a_reason_too() -> None:
    _, reply = reply_of(chunk(content="So"), chunk(finish="content_filter"))
    assert reply.end("e", ()) == [Done("content_filter", None, "e")]
    _, reply = reply_of(chunk(content="So"), "[DONE]")
    assert reply.end("e", ()) == [Done("stop", None, "e")]


@pytest.mark.parametrize(
    "data", ["", "{", "[]", "null", '{"choices": 3}', '{"choices": [{"delta": {"content": 7}}]}']
)
def test_what_is_no_chunk_is_bad_data(data: str) -> None:
    with pytest.raises(BadData):
        Reply().take(data)


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        ({"message": "busy", "type": "server_error"}, ServerFailed), ("just words", ServerFailed),
        ({"message": "x", "code": "rate_limit_exceeded"}, RateLimited), ({"message": "x", "code": 429}, RateLimited),
        ({"message": "x", "type": "insufficient_quota", "code": 429}, QuotaExhausted),
        ({"message": "x", "code": "invalid_api_key"}, AuthRefused),
        ({"message": {"deep": 1}, "code": 400}, RequestRefused),
        ({"message": "x", "code": "content_filter"}, ContentFiltered),
    ],
)  # fmt: skip
def test_an_error_inside_a_stream_gets_its_type(error: object, failure: type[LlmError]) -> None:
    with pytest.raises(failure):
        Reply().take(json.dumps({"error": error}))


@pytest.mark.parametrize(
    ("status", "body", "failure"),
    [
        (401, b"", AuthRefused), (403, b"<html>", AuthRefused), (402, b'{"error": null}', QuotaExhausted),
        (429, b'{"error": {"message": "slow"}}', RateLimited), (404, b'{"detail": "no model"}', RequestRefused),
        (307, b"", RequestRefused), (500, b"{", ServerFailed), (200, b'{"error": "odd"}', ServerFailed),
        (400, b'{"error": {"code": "content_filter", "message": "no"}}', ContentFiltered),
    ],
)  # fmt: skip
def test_a_refusal_gets_its_type_by_status_and_code(
    status: int, body: bytes, failure: type[LlmError]
) -> None:
    assert type(error_of_response(status, body, None)) is failure


@given(st.binary(max_size=200), st.integers(200, 599))
def test_any_refusal_becomes_a_failure(body: bytes, status: int) -> None:
    assert isinstance(error_of_response(status, body, None), LlmError)


NAMES = ["choices", "delta", "error", "usage", "content", "tool_calls", "function", "index"]


@given(any_json(NAMES))
def test_any_json_is_read_or_refused_by_type(value: object) -> None:
    try:
        Reply().take(json.dumps(value))
    except LlmError:
        return
