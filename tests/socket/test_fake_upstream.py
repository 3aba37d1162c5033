"""The model server as a good server: protocols, answers, prefix cache, usage, its books."""

from __future__ import annotations

import json
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import msgspec
import pytest

from tests.fakes.transport.listener import Leave
from tests.fakes.upstream.control_http import RemoteUpstream
from tests.fakes.upstream.faults import Action, Place, Plan, fault
from tests.fakes.upstream.handle import Upstream
from tests.fakes.upstream.profile import BRIEF, INSTANT, Dialect
from tests.fakes.upstream.script import Filler, Text, ToolCall
from tests.support.events import Stream, Usage
from tests.support.raw_http import Http2Client, connect, post, receive_until

CHAT = "/v1/chat/completions"
HANDOFF = [{"type": "function", "function": {"name": "handoff", "parameters": {"type": "object"}}}]


def question(text: str, *, system: str = "You are kind.", **fields: object) -> dict[str, object]:
    messages = [{"role": "system", "content": system}, {"role": "user", "content": text}]
    return {"model": "m", "messages": messages, "stream": True, **fields}


@contextmanager
def client(upstream: Upstream, http: str = "1.1") -> Iterator[httpx.Client]:
    trust = ssl.create_default_context(cafile=upstream.ca_file)
    with httpx.Client(base_url=upstream.url, verify=trust, http1=http == "1.1", http2=http == "2") as it:
        yield it


def ask(it: httpx.Client, body: dict[str, object]) -> Stream:
    answer = it.post(CHAT, json=body)
    assert answer.status_code == 200, answer.text
    return Stream(answer.content)


def usage(it: httpx.Client, body: dict[str, object]) -> Usage:
    found = ask(it, {**body, "stream_options": {"include_usage": True}}).usage
    assert found is not None
    return found


def cached(it: httpx.Client, body: dict[str, object]) -> int:
    details = usage(it, body).prompt_tokens_details
    assert details is not None
    return details.cached_tokens


@pytest.mark.parametrize("http", ["1.1", "2"])
def test_streams_the_scripted_text_over_one_kept_connection(upstream: Upstream, http: str) -> None:
    upstream.next(Plan(script=Text("In transit, 明天到。")), Plan(script=Text("Delivered.")))
    with client(upstream, http) as it:
        first, second = ask(it, question("1042?")), ask(it, question("1017?"))

    assert (first.text, second.text) == ("In transit, 明天到。", "Delivered.")
    assert first.finish == second.finish == ["stop"]
    assert first.done
    counts = upstream.counts()
    assert (counts.connections_opened, counts.tls_handshakes, counts.finished) == (1, 1, 2)
    assert {seen.http for seen in upstream.requests()} == {http}


def test_answers_whole_when_no_stream_is_asked_for(upstream: Upstream) -> None:
    upstream.next(Plan(script=Text("Yes.", reasoning="Hm.")))
    with client(upstream) as it:
        answer = it.post(CHAT, json=question("Really?", stream=False)).json()

    assert answer["choices"][0]["message"] == {
        "role": "assistant",
        "content": "Yes.",
        "reasoning_content": "Hm.",
    }
    assert answer["choices"][0]["finish_reason"] == "stop"
    assert answer["usage"]["completion_tokens"] == 2


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ("Where is my order 1042?", "From what I have: order 1042: in_transit, arrives 2026-12-02"),
        ("我的订单1042到哪了", "根据记录：order 1042: in_transit, arrives 2026-12-02"),
        ("Do you sell kayaks?", "I have nothing on that."),
    ],
)
def test_answers_from_the_facts_in_the_prompt(upstream: Upstream, asked: str, answer: str) -> None:
    facts = "order 1017: delivered\norder 1042: in_transit, arrives 2026-12-02"
    with client(upstream) as it:
        assert ask(it, question(asked, system=facts)).text == answer


def test_calls_the_offered_handoff_when_a_person_is_asked_for(upstream: Upstream) -> None:
    with client(upstream) as it:
        answer = ask(it, question("I want to talk to a human", tools=HANDOFF))

    assert answer.finish == ["tool_calls"]
    assert [call.function.name for call in answer.calls if call.function.name] == ["handoff"]
    assert list(json.loads("".join(call.function.arguments for call in answer.calls))) == ["reason"]


def test_sends_tool_arguments_in_pieces(upstream: Upstream) -> None:
    upstream.next(
        Plan(script=ToolCall(arguments='{"team":"Returns","reason":"退货"}', pieces=4, text="One moment."))
    )
    with client(upstream) as it:
        answer = ask(it, question("refund"))

    pieces = [call.function.arguments for call in answer.calls if call.function.arguments]
    assert answer.text == "One moment."
    assert len(pieces) == 4
    assert json.loads("".join(pieces)) == {"team": "Returns", "reason": "退货"}


def test_stops_at_the_token_limit(upstream: Upstream) -> None:
    upstream.next(Plan(script=Filler(50)))
    with client(upstream) as it:
        answer = ask(it, question("Tell me.", max_completion_tokens=7))

    assert answer.finish == ["length"]
    assert upstream.requests()[0].tokens_sent == 7


def test_reports_usage_in_one_extra_chunk_only_when_asked(upstream: Upstream) -> None:
    with client(upstream) as it:
        silent = ask(it, question("Hi"))
        telling = ask(it, question("Hi", stream_options={"include_usage": True}))

    assert silent.usage is None
    assert [len(chunk.choices) for chunk in telling.chunks][-2:] == [1, 0]
    assert sum(chunk.usage is not None for chunk in telling.chunks) == 1


def test_caches_the_shared_prefix_in_whole_blocks(upstream: Upstream) -> None:
    policy = "Boots may be returned within thirty days. " * 20
    with client(upstream) as it:
        assert cached(it, question("Hello", system=policy)) == 0
        shared = cached(it, question("Where is 1042?", system=policy))
        again = usage(it, question("Where is 1042?", system=policy))
        spoiled = cached(it, question("Where is 1042?", system="12:01 " + policy))

    assert shared > 200
    assert shared % INSTANT.cache_block_tokens == 0
    assert again.prompt_tokens_details is not None
    assert again.prompt_tokens - again.prompt_tokens_details.cached_tokens < INSTANT.cache_block_tokens
    assert spoiled == 0


def test_caches_the_answer_as_a_prefix_of_the_next_turn(upstream: Upstream) -> None:
    said = "Your order is on its way and will arrive on Wednesday. " * 5
    upstream.next(Plan(script=Text(said)))
    first = question("Where is 1042?")
    messages = [{"role": "system", "content": "You are kind."}, {"role": "user", "content": "Where is 1042?"}]
    with client(upstream) as it:
        ask(it, first)
        repeated = cached(it, first)
        messages += [{"role": "assistant", "content": said}, {"role": "user", "content": "Thanks"}]
        continued = cached(it, {"model": "m", "stream": True, "messages": messages})

    assert continued >= repeated + len(said) // 4 - INSTANT.cache_block_tokens


def test_a_prompt_that_was_never_computed_is_not_cached(upstream: Upstream) -> None:
    upstream.next(fault(Action.STALL, Place.HEADERS))
    with client(upstream) as it, pytest.raises(httpx.ReadTimeout):
        it.post(CHAT, json=question("x" * 400), timeout=httpx.Timeout(10, read=0.05))
    upstream.wait("aborts", 1)
    with client(upstream) as it:
        assert cached(it, question("x" * 400)) == 0


def test_another_cache_key_may_land_on_another_replica() -> None:
    with Upstream(INSTANT.but(cache_replicas=1_000_000)) as upstream, client(upstream) as it:
        body = question("Where is 1042?", system="Be kind. " * 50)
        assert cached(it, {**body, "prompt_cache_key": "a"}) == 0
        assert cached(it, {**body, "prompt_cache_key": "a"}) > 0
        assert cached(it, {**body, "prompt_cache_key": "b"}) == 0


def test_counts_a_client_that_leaves_and_what_it_had_got(upstream: Upstream) -> None:
    upstream.next(fault(Action.STALL))
    connection = connect(upstream.port, upstream.ca_file)
    connection.sendall(post(CHAT, question("Where is my order?")))
    upstream.wait("stalled", 1)
    connection.close()

    counts = upstream.wait("aborts", 1)
    assert (counts.requests_open, counts.finished) == (0, 0)
    seen = upstream.requests()[0]
    assert (seen.ended, seen.tokens_sent) == ("aborted", 2)


def test_counts_a_reset_stream_while_the_others_go_on(upstream: Upstream) -> None:
    upstream.next(fault(Action.STALL), fault(Action.STALL))
    connection = Http2Client(upstream.port, upstream.ca_file)
    left, kept = connection.post(CHAT, question("One?")), connection.post(CHAT, question("Two?"))
    upstream.wait("stalled", 2)
    connection.reset(left)
    upstream.wait("aborts", 1)
    upstream.release()
    connection.read_until(lambda: connection.ended(kept))

    assert Stream(connection.body(kept)).done
    assert [seen.ended for seen in upstream.requests()] == ["aborted", "finished"]
    assert upstream.counts().connections_opened == 1


def test_waits_for_a_client_that_does_not_read(upstream: Upstream) -> None:
    upstream.next(Plan(script=Filler(200_000)))
    connection = connect(upstream.port, upstream.ca_file)
    connection.sendall(post(CHAT, question("Tell me everything.")))
    receive_until(connection, b"data:")
    before = upstream.wait("tokens_sent", 10)
    connection.close()
    upstream.wait("aborts", 1)

    assert before.finished == 0
    assert upstream.requests()[0].tokens_sent < 200_000


def test_keeps_to_the_flow_control_windows_of_http2(upstream: Upstream) -> None:
    upstream.next(Plan(script=Text("灯" * 600)))
    connection = Http2Client(upstream.port, upstream.ca_file)
    stream = connection.post(CHAT, question("Lamps?"))
    connection.read_until(lambda: connection.ended(stream))

    assert Stream(connection.body(stream)).text == "灯" * 600


@pytest.mark.parametrize("how", [Leave.CLOSE, Leave.GOAWAY])
def test_closes_idle_connections_on_demand(upstream: Upstream, how: Leave) -> None:
    connection = Http2Client(upstream.port, upstream.ca_file)
    stream = connection.post(CHAT, question("Hi"))
    connection.read_until(lambda: connection.ended(stream))
    upstream.wait("requests_open", 0, exactly=True)
    upstream.end_connections(how)
    connection.read_to_the_end()

    assert (connection.last_stream_of_goaway() is not None) == (how is Leave.GOAWAY)
    upstream.wait("connections_open", 0, exactly=True)


def test_closes_a_connection_that_was_idle_for_too_long() -> None:
    with Upstream(INSTANT.but(idle_close_s=0.05)) as upstream:
        connection = connect(upstream.port, upstream.ca_file)
        assert connection.recv(1) == b""


def test_the_same_seed_sends_the_same_bytes() -> None:
    def bodies(seed: int) -> list[bytes]:
        profile = INSTANT.but(seed=seed, dialect=Dialect(obfuscation=True))
        with Upstream(profile) as upstream, client(upstream) as it:
            upstream.always(Plan(script=Filler(20)))
            return [it.post(CHAT, json=question("Go on.")).content for _ in range(2)]

    assert bodies(1) == bodies(1)
    assert bodies(1) != bodies(2)


def test_a_distant_server_costs_its_round_trips() -> None:
    profile = BRIEF.but(
        rtt_s=0.04, setup_s=0.0, auth_s=0.0, gateway_s=0.0, first_token_s=0.0, tokens_per_s=0.0
    )
    with Upstream(profile) as upstream, client(upstream) as it:
        cold, warm = (it.post(CHAT, json=question("Hi")).elapsed for _ in range(2))

    # Floors, not limits: TCP, TLS and the request take one each; a kept connection only the last.
    assert cold.total_seconds() >= 3 * 0.04
    assert warm.total_seconds() >= 0.04


def test_counts_resumed_tls_sessions(upstream: Upstream) -> None:
    context = ssl.create_default_context(cafile=upstream.ca_file)
    session = None
    for _ in range(2):
        raw = socket.create_connection(("127.0.0.1", upstream.port), 10)
        with context.wrap_socket(raw, server_hostname="127.0.0.1", session=session) as connection:
            connection.sendall(post(CHAT, question("Hi")))
            receive_until(connection, b"[DONE]")
            session = connection.session  # tickets come behind the handshake

    counts = upstream.counts()
    assert (counts.tls_handshakes, counts.tls_resumed) == (2, 1)


def test_refuses_what_a_real_server_refuses() -> None:
    profile = INSTANT.but(api_keys=("good", "narrow"), forbidden_keys=("narrow",), models=("m",))
    with Upstream(profile) as upstream, client(upstream) as it:

        def status(key: str, body: dict[str, object], path: str = CHAT) -> tuple[int, str]:
            answer = it.post(path, json=body, headers={"authorization": f"Bearer {key}"})
            return answer.status_code, answer.json()["error"]["code"]

        assert status("bad", question("Hi")) == (401, "invalid_api_key")
        assert status("narrow", question("Hi")) == (403, "permission_denied")
        assert status("good", question("Hi", model="x")) == (404, "model_not_found")
        assert status("good", {"model": "m"}) == (400, "invalid_request")
        assert status("good", {}, "/v1/nothing") == (404, "unknown_url")
        listed = it.get("/v1/models", headers={"authorization": "Bearer good"}).json()
        assert [model["id"] for model in listed["data"]] == ["m"]


def test_a_plan_can_wait_for_its_own_request(upstream: Upstream) -> None:
    upstream.next(Plan(script=Text("for boots"), match="boots", times=2))
    with client(upstream) as it:
        answers = [ask(it, question(text, system="")).text for text in ("boots", "tent", "boots", "boots")]

    assert answers[0] == answers[2] == "for boots"
    assert answers[1] == answers[3] == "I have nothing on that."


def test_runs_as_a_process_of_its_own_and_obeys_over_http(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.fakes.upstream", "--tls", str(tmp_path), "--profile", "instant"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        remote = RemoteUpstream(told["url"], told["control"], told["ca"])
        try:
            remote.next(Plan(script=Text("From afar.")))
            trust = ssl.create_default_context(cafile=remote.ca_file)
            answer = httpx.post(f"{remote.base_url}/chat/completions", json=question("Hi"), verify=trust)
            assert Stream(answer.content).text == "From afar."
            assert remote.wait("finished", 1).connections_opened == 1
            assert json.loads(remote.requests()[0].body) == question("Hi")
            with pytest.raises(TimeoutError):
                remote.wait("aborts", 1, timeout_s=0.01)
            refused = httpx.post(f"{told['control']}/_control/next", json={"plans": [{"typo": 1}]})
            assert refused.status_code == 400
            remote.refuse()
            with pytest.raises(httpx.ConnectError):
                httpx.post(f"{remote.base_url}/chat/completions", json=question("Hi"), verify=trust)
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0


def test_the_books_survive_a_round_trip_as_json(upstream: Upstream) -> None:
    counts = upstream.counts()
    assert msgspec.json.decode(msgspec.json.encode(counts), type=type(counts)) == counts
