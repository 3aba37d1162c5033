"""The model server as a bad one: every fault does what its name says, seen from the client's end."""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator

import httpx
import msgspec
import pytest

from tests.fakes.transport.listener import ConnectionFault
from tests.fakes.upstream.faults import (
    DEBATABLE,
    FAILING,
    ODD,
    Action,
    Fault,
    Place,
    Plan,
    dialect,
    fault,
    refusal,
)
from tests.fakes.upstream.handle import Upstream
from tests.fakes.upstream.profile import INSTANT, Chunking, Dialect, LineEnd
from tests.fakes.upstream.script import Filler, Text, ToolCall
from tests.support.events import Stream
from tests.support.raw_http import Http2Client, connect, post, receive_all, receive_until

CHAT = "/v1/chat/completions"
QUESTION = {
    "model": "m",
    "stream": True,
    "stream_options": {"include_usage": True},
    "messages": [{"role": "user", "content": "Where is my order?"}],
}
ANSWER = "It is on its way, 明天就到。"


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    with Upstream() as server:
        server.always(Plan(script=Text(ANSWER)))
        yield server


def client(upstream: Upstream, http: str = "1.1", read_s: float = 10.0) -> httpx.Client:
    trust = ssl.create_default_context(cafile=upstream.ca_file)
    return httpx.Client(
        base_url=upstream.url,
        verify=trust,
        http1=http == "1.1",
        http2=http == "2",
        timeout=httpx.Timeout(10.0, read=read_s),
    )


def body_of(upstream: Upstream, plan: Plan) -> bytes:
    """What one good-natured client receives of a plan."""
    upstream.next(said(plan))
    with client(upstream) as it:
        answer = it.post(CHAT, json=QUESTION)
    assert answer.status_code == 200
    return answer.content


def said(plan: Plan) -> Plan:
    """The plan, saying ANSWER where it says nothing of its own."""
    return msgspec.structs.replace(plan, script=plan.script or Text(ANSWER))


@pytest.mark.parametrize("http", ["1.1", "2"])
@pytest.mark.parametrize("name", FAILING)
def test_no_failing_answer_looks_whole(upstream: Upstream, name: str, http: str) -> None:
    upstream.next(said(FAILING[name]))
    received = b""
    status = 0
    with client(upstream, http, read_s=0.1 if "stall" in name else 10.0) as it:
        try:
            with it.stream("POST", CHAT, json=QUESTION) as answer:
                status = answer.status_code
                for piece in answer.iter_raw():
                    received += piece
                    if b": keep-alive" in piece and "stall" in name:
                        raise httpx.ReadTimeout("nothing but comments")
        except httpx.TransportError as error:
            assert ("stall" in name) == isinstance(error, httpx.ReadTimeout)  # noqa: PT017 the half matters
        else:
            assert status >= 400 or "end" in name or "error" in name
    assert b"[DONE]" not in received
    assert b'"finish_reason":"stop"' not in received
    upstream.wait("requests_open", 0, exactly=True)


@pytest.mark.parametrize("http", ["1.1", "2"])
@pytest.mark.parametrize("name", ODD)
def test_every_odd_answer_is_whole_to_a_reader_of_the_standard(
    upstream: Upstream, name: str, http: str
) -> None:
    upstream.next(said(ODD[name]))
    with client(upstream, http) as it:
        stream = Stream(it.post(CHAT, json=QUESTION).content)

    script = said(ODD[name]).script
    expected = script.text if isinstance(script, Text | ToolCall) else ""
    assert stream.text == expected
    assert stream.finish in (["stop"], ["tool_calls"])
    assert stream.done == (name != "done_missing")
    assert (stream.usage is None) == (name == "usage_missing")


def test_a_closed_port_refuses_until_it_is_opened_again(upstream: Upstream) -> None:
    upstream.refuse()
    with client(upstream) as it:
        with pytest.raises(httpx.ConnectError):
            it.post(CHAT, json=QUESTION)
        upstream.accept()
        assert it.post(CHAT, json=QUESTION).status_code == 200


def test_a_closed_port_leaves_live_connections_alone(upstream: Upstream) -> None:
    with client(upstream) as it:
        it.post(CHAT, json=QUESTION)
        upstream.refuse()
        assert it.post(CHAT, json=QUESTION).status_code == 200


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        (ConnectionFault.RESET, "reset|Broken pipe"),
        (ConnectionFault.CLOSE, "EOF|reset"),
        (ConnectionFault.TLS_ALERT, "(?i)handshake.failure"),
        (ConnectionFault.NOT_TLS, "(?i)wrong.version.number|record layer"),
        (ConnectionFault.STRANGER, "(?i)certificate.verify.failed"),
    ],
)
def test_a_new_connection_can_be_spoiled(upstream: Upstream, how: ConnectionFault, reason: str) -> None:
    upstream.break_connections(how)
    with pytest.raises(OSError, match=reason):
        connect(upstream.port, upstream.ca_file).recv(1)
    with client(upstream) as it:
        assert it.post(CHAT, json=QUESTION).status_code == 200


def test_a_new_connection_can_be_met_with_silence(upstream: Upstream) -> None:
    upstream.break_connections(ConnectionFault.STALL)
    with client(upstream) as it, pytest.raises(httpx.ConnectTimeout):
        it.post(CHAT, json=QUESTION, timeout=httpx.Timeout(10.0, connect=0.05))
    counts = upstream.wait("connections_open", 0, exactly=True)
    assert counts.tls_handshakes == 0


# Without TLS, because Python's TLS sockets report a reset as an end.


def test_resets_before_the_head(plain_upstream: Upstream) -> None:
    plain_upstream.next(FAILING["reset_before_headers"])
    connection = connect(plain_upstream.port)
    connection.sendall(post(CHAT, QUESTION))
    with pytest.raises(ConnectionResetError):
        receive_all(connection)


def test_resets_between_two_tokens_and_loses_none_before(plain_upstream: Upstream) -> None:
    plain_upstream.next(said(FAILING["reset_mid_stream"]))
    connection = connect(plain_upstream.port)
    connection.sendall(post(CHAT, QUESTION))
    received = receive_until(connection, b'"content":" is"')
    with pytest.raises(ConnectionResetError):
        receive_all(connection)
    assert received.startswith(b"HTTP/1.1 200")
    assert [seen.ended for seen in plain_upstream.requests()] == ["reset"]


def test_closes_without_the_last_chunk(upstream: Upstream) -> None:
    upstream.next(FAILING["close_mid_stream"])
    connection = connect(upstream.port, upstream.ca_file)
    connection.sendall(post(CHAT, QUESTION))
    assert not receive_all(connection).endswith(b"0\r\n\r\n")


def test_closes_behind_all_it_has_said_though_the_client_speaks_on(plain_upstream: Upstream) -> None:
    plain_upstream.next(Plan(script=Filler(1500), faults=(Fault(action=Action.CLOSE, place=Place.END),)))
    connection = connect(plain_upstream.port, receives_bytes=4_096)
    connection.sendall(post(CHAT, QUESTION))
    plain_upstream.wait("connections_open", 0, exactly=True)
    connection.sendall(b"more")
    connection.sendall(b"and more")
    assert receive_all(connection).count(b'"content":') >= 1500


def test_cuts_in_the_middle_of_a_character(upstream: Upstream) -> None:
    upstream.next(said(FAILING["cut_mid_character"]))
    connection = connect(upstream.port, upstream.ca_file)
    connection.sendall(post(CHAT, QUESTION))
    body = receive_all(connection).rstrip(b"\r\n")
    with pytest.raises(UnicodeDecodeError, match="unexpected end of data"):
        body.decode()


def test_sends_an_error_object_inside_a_good_status(upstream: Upstream) -> None:
    stream = Stream(body_of(upstream, FAILING["error_mid_stream"]))
    assert stream.text == "It is"
    assert stream.events[-1].startswith('{"error":{"message":"The server had an error')
    assert not stream.finish


def test_ends_properly_without_finish_reason_and_done(upstream: Upstream) -> None:
    stream = Stream(body_of(upstream, FAILING["end_without_finish_and_done"]))
    assert (stream.text, stream.finish, stream.done) == (ANSWER, [], False)


def test_says_done_without_a_finish_reason(upstream: Upstream) -> None:
    stream = Stream(body_of(upstream, DEBATABLE["finish_missing"]))
    assert (stream.text, stream.finish, stream.done) == (ANSWER, [], True)


def test_slips_in_what_is_not_json(upstream: Upstream) -> None:
    stream = Stream(body_of(upstream, DEBATABLE["garbage_event"]))
    assert '{"choices":[{"delta":{"content":"tor' in stream.events
    assert (stream.text, stream.done) == (ANSWER, True)


@pytest.mark.parametrize(
    "name", ["reset_mid_stream", "close_mid_stream", "cut_mid_character", "stall_mid_stream"]
)
def test_faults_travel_behind_the_bytes_before_them(name: str) -> None:
    with Upstream(INSTANT.but(rtt_s=0.01), tls=False) as distant:
        distant.next(said(FAILING[name]))
        connection = connect(distant.port)
        connection.sendall(post(CHAT, QUESTION))
        receive_until(connection, b'"content":" is"')
        if name == "stall_mid_stream":
            distant.wait("stalled", 1)
            connection.close()
            assert distant.wait("aborts", 1).tokens_sent == 2
        elif name == "reset_mid_stream":
            with pytest.raises(ConnectionResetError):
                receive_all(connection)
        else:
            assert b"[DONE]" not in receive_all(connection)


def test_goaway_refuses_the_request_it_meets(upstream: Upstream) -> None:
    upstream.next(fault(Action.GOAWAY, Place.HEADERS))
    connection = Http2Client(upstream.port, upstream.ca_file)
    stream = connection.post(CHAT, QUESTION)
    connection.read_to_the_end()
    assert connection.last_stream_of_goaway() == 0
    assert not connection.answered(stream)


def test_goaway_lets_the_stream_under_way_finish_and_then_closes(upstream: Upstream) -> None:
    upstream.next(said(DEBATABLE["goaway_mid_stream"]))
    connection = Http2Client(upstream.port, upstream.ca_file)
    stream = connection.post(CHAT, QUESTION)
    connection.read_to_the_end()
    assert connection.last_stream_of_goaway() == stream
    assert Stream(connection.body(stream)).text == ANSWER
    assert connection.ended(stream)


def test_a_reset_stream_spares_its_connection(upstream: Upstream) -> None:
    upstream.next(FAILING["reset_stream_mid_stream"])
    connection = Http2Client(upstream.port, upstream.ca_file)
    broken = connection.post(CHAT, QUESTION)
    connection.read_until(lambda: connection.reset_by_server(broken))
    whole = connection.post(CHAT, QUESTION)
    connection.read_until(lambda: connection.ended(whole))
    assert Stream(connection.body(whole)).text == ANSWER
    assert upstream.counts().connections_opened == 1


@pytest.mark.parametrize(("place", "got"), [(Place.DATA, b""), (Place.STREAM, b'"content":" is"')])
def test_stalls_in_silence_until_it_is_released(upstream: Upstream, place: Place, got: bytes) -> None:
    upstream.next(said(fault(Action.STALL, place)))
    connection = connect(upstream.port, upstream.ca_file)
    connection.sendall(post(CHAT, QUESTION))
    upstream.wait("stalled", 1)
    before = receive_until(connection, got or b"\r\n\r\n")
    assert upstream.requests()[0].ended == ""
    upstream.release()
    after = receive_until(connection, b"[DONE]")
    assert b"[DONE]" not in before
    assert "明".encode() in after


def test_stalls_with_signs_of_life(upstream: Upstream) -> None:
    upstream.next(FAILING["stall_before_first_data_with_comments"])
    connection = connect(upstream.port, upstream.ca_file)
    connection.sendall(post(CHAT, QUESTION))
    received = b""
    while received.count(b": keep-alive\n\n") < 3:
        received += receive_until(connection, b"\n\n")
    assert b"data:" not in received
    upstream.release()
    assert b"[DONE]" in receive_until(connection, b"[DONE]")


def test_gives_signs_of_life_while_it_thinks(upstream: Upstream) -> None:
    slow = Plan(script=Text("At last."), first_token_s=0.1, dialect=Dialect(keepalive_s=0.01))
    assert body_of(upstream, slow).startswith(b": keep-alive\n\n")
    upstream.next(slow)
    with client(upstream) as it:
        whole = it.post(CHAT, json={**QUESTION, "stream": False})
    assert whole.content.startswith(b"\n")
    assert whole.json()["choices"][0]["message"]["content"] == "At last."


def test_refuses_with_and_without_advice_when_to_come_back(upstream: Upstream) -> None:
    upstream.next(FAILING["rate_limited"], FAILING["rate_limited_with_retry_after"])
    with client(upstream) as it:
        first, second = it.post(CHAT, json=QUESTION), it.post(CHAT, json=QUESTION)
    assert (first.status_code, first.headers.get("retry-after")) == (429, None)
    assert (second.status_code, second.headers.get("retry-after")) == (429, "2")
    assert first.json()["error"]["code"] == "rate_limit_exceeded"


def test_a_burst_of_errors_passes(upstream: Upstream) -> None:
    upstream.next(refusal(503, "overloaded", times=3))
    with client(upstream) as it:
        assert [it.post(CHAT, json=QUESTION).status_code for _ in range(4)] == [503, 503, 503, 200]


def test_ends_lines_as_told(upstream: Upstream) -> None:
    crlf = body_of(upstream, dialect(line_end=LineEnd.CRLF))
    cr = body_of(upstream, dialect(line_end=LineEnd.CR))
    assert crlf.count(b"\r\n") == crlf.count(b"\n") == crlf.count(b"\r")
    assert b"\n" not in cr
    assert cr.endswith(b"data: [DONE]\r\r")


@pytest.mark.parametrize("http", ["1.1", "2"])
def test_sends_single_bytes(upstream: Upstream, http: str) -> None:
    upstream.next(Plan(script=Text("你"), dialect=Dialect(chunking=Chunking.BYTES)))
    if http == "2":
        connection = Http2Client(upstream.port, upstream.ca_file)
        stream = connection.post(CHAT, QUESTION)
        connection.read_until(lambda: connection.ended(stream))
        sizes = {len(frame.data) for frame in connection.data_frames(stream)}
        assert sizes == {0, 1}  # the end has none
        return
    connection_1 = connect(upstream.port, upstream.ca_file)
    connection_1.sendall(post(CHAT, QUESTION))
    body = receive_until(connection_1, b"\r\n0\r\n\r\n").partition(b"\r\n\r\n")[2]
    assert re.fullmatch(rb"(1\r\n[\s\S]\r\n)+0\r\n\r\n", body)


def test_bursts_everything_in_one_write(upstream: Upstream) -> None:
    upstream.next(Plan(script=Filler(5_000), dialect=Dialect(chunking=Chunking.BURST)))
    connection = connect(upstream.port, upstream.ca_file)
    connection.sendall(post(CHAT, QUESTION))
    raw = receive_until(connection, b"0\r\n\r\n")
    rest = raw.partition(b"\r\n\r\n")[2]
    size = int(rest.partition(b"\r\n")[0], 16)
    assert len(rest) > size > 500_000


def test_puts_text_that_some_readers_take_for_line_ends_into_one_event(upstream: Upstream) -> None:
    body = body_of(upstream, ODD["line_separator_in_text"])
    assert "\u2028".encode() in body
    assert Stream(body).text == "one\u2028two\u2029three\u0085four"


def test_pads_with_obfuscation(upstream: Upstream) -> None:
    chunks = Stream(body_of(upstream, ODD["obfuscation"])).chunks
    assert all(chunk.obfuscation for chunk in chunks)


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_thinks_in_the_field_of_its_dialect(upstream: Upstream, field: str) -> None:
    body = body_of(upstream, ODD[field])
    assert f'"delta":{{"{field}":'.encode() in body
    assert Stream(body).reasoning == "Six times seven."


def test_reports_cached_tokens_as_deepseek_does(upstream: Upstream) -> None:
    body_of(upstream, Plan())
    usage = Stream(body_of(upstream, ODD["usage_deepseek"])).usage
    assert usage is not None
    assert usage.prompt_tokens_details is None
    assert usage.prompt_cache_hit_tokens is not None


def test_several_faults_strike_one_answer_in_order(upstream: Upstream) -> None:
    faults = (Fault(action=Action.GARBAGE, after_tokens=1), Fault(action=Action.ERROR, after_tokens=3))
    stream = Stream(body_of(upstream, Plan(faults=faults)))
    assert [data[:10] for data in stream.events if not data.startswith('{"id"')] == [
        '{"choices"',
        '{"error":{',
    ]
    assert upstream.requests()[0].tokens_sent == 3
