"""Prompts as items, the rule by which only new ones are sent, and events that become an answer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.engine.context import Context, Marks
from apps.engine.events import Done, HandoffCall
from apps.engine.types import ChatMessage, Facts, FactsState, ModelRequest, Passage, Speaker, Usage
from apps.llm.errors import (
    AuthRefused,
    BadData,
    BrokenStream,
    ChainLost,
    ConnectionExpired,
    ContentFiltered,
    LlmError,
    NoAnswer,
    RateLimited,
    RequestRefused,
    ServerFailed,
)
from apps.llm.providers.responses_chain import STALE_BYTES, Chain, continued, sending
from apps.llm.providers.responses_events import Reply, parsed
from apps.llm.providers.responses_request import (
    PASSING,
    WITHDRAWN,
    Item,
    Prompt,
    body,
    items_of,
    prompt_of,
    said,
    withdrawal,
)
from apps.llm.spec import Api, EndpointSpec
from tests.support.any_json import any_json

SPEC = EndpointSpec("e", "https://api.openai.com/v1", "m", api=Api.RESPONSES)
POLICY, FACTS = ChatMessage("system", "Be kind."), ChatMessage("system", "tier: gold")


def system(text: str) -> ChatMessage:
    return ChatMessage("system", text)


def user(text: str) -> ChatMessage:
    return ChatMessage("user", text)


def assistant(text: str) -> ChatMessage:
    return ChatMessage("assistant", text)


def request(*messages: ChatMessage, **fields: Any) -> ModelRequest:
    return ModelRequest(messages, "q", "en", Facts(False, FactsState.NONE), (), **fields)


def sent(prompt: Prompt, role: str = "developer", **fields: Any) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(body(prompt, prompt.items, role, **fields))
    return made


def test_policy_becomes_instructions_facts_stand_first_and_articles_before_the_question() -> None:
    prompt = prompt_of(
        SPEC,
        request(POLICY, FACTS, user("hi"), assistant("hello"), system("a"), system("b"), user("boots?")),
    )
    made = sent(prompt)
    assert made["instructions"] == "Be kind."
    assert made["input"] == [
        {"role": "developer", "content": "tier: gold"},
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "hello"},
        {"role": "developer", "content": f"{PASSING}a\nb"},
        {"role": "user", "content": "boots?"},
    ]


def test_a_first_question_has_its_articles_behind_the_facts() -> None:
    _, items = items_of((POLICY, FACTS, system("a"), user("boots?")))
    assert [(item.message.content, item.passing) for item in items] == [
        ("tier: gold", False),
        ("a", True),
        ("boots?", False),
    ]


def test_what_is_known_before_a_question_ends_without_one() -> None:
    _, items = items_of((POLICY, FACTS, user("hi"), assistant("hello")))
    assert [item.message.content for item in items] == ["tier: gold", "hi", "hello"]


def test_a_prompt_without_any_policy_has_no_instructions() -> None:
    assert "instructions" not in sent(prompt_of(SPEC, request(user("hi"))))


def test_the_fields_are_those_of_the_dialect_and_of_the_endpoint() -> None:
    spec = EndpointSpec(
        "e",
        "https://api.openai.com/v1",
        "m",
        extra_body='{"reasoning":{"effort":"low"}}',
        max_output_tokens=300,
    )
    made = sent(prompt_of(spec, request(POLICY, user("q"), cache_key="c-1", teams=("Returns",))))
    assert (made["store"], made["max_output_tokens"], made["prompt_cache_key"]) == (False, 300, "c-1")
    assert made["stream_options"] == {"include_obfuscation": False}
    assert made["reasoning"] == {"effort": "low"}
    assert made["tools"][0]["parameters"]["properties"]["team"]["enum"] == ["Returns"]
    assert "stream" not in made
    assert next(reversed(made)) == "input"


def test_a_server_without_instructions_gets_the_policy_as_its_first_item() -> None:
    spec = EndpointSpec("e", "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "m")
    made = sent(prompt_of(spec, request(POLICY, FACTS, user("q"))), "system")
    assert "instructions" not in made
    assert made["input"][0] == {"role": "system", "content": "Be kind."}


WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)


class Conversation:
    """A conversation as the engine keeps it, and the server's memory of it."""

    def __init__(self) -> None:
        self.context = Context()
        self.place = 0
        self.chain: Chain | None = None
        self.read: tuple[Item, ...] = ()  # what the server has read and said

    def add(self, speaker: Speaker, text: str) -> None:
        self.place += 1
        self.context.add(self.place, speaker, text)

    def prompt(self, policy: str, facts: str, article: str) -> Prompt:
        passages = [Passage("t", article, "u", 1.0, True)] if article else []
        messages = self.context.prompt(system(policy), system(facts), passages, ())
        return prompt_of(SPEC, request(*messages))

    def turn(self, prompt: Prompt, answer: str) -> bool:
        """One turn; whether it was continued."""
        chosen = sending(prompt, self.chain)
        self.read = (*(self.read if chosen.previous else ()), *chosen.items)
        assert self.read == chosen.whole
        self.read = (*self.read, said(answer))
        self.chain = Chain("r", prompt.fields, self.read)
        self.add(Speaker.ASSISTANT, answer)
        return bool(chosen.previous)


@given(st.lists(st.tuples(WORDS, WORDS, st.sampled_from(["", "one", "two"])), min_size=2, max_size=8))
def test_an_undisturbed_conversation_is_continued_from_its_second_turn_on(
    turns: list[tuple[str, str, str]],
) -> None:
    it = Conversation()
    for number, (question, answer, article) in enumerate(turns):
        it.add(Speaker.CUSTOMER, question)
        assert it.turn(it.prompt("p", "f", article), answer) == (number > 0)


CHANGES = st.sampled_from(["nothing"] * 4 + ["policy", "facts", "agent", "removed", "shortened", "stopped"])


@given(
    st.lists(st.tuples(WORDS, WORDS, st.sampled_from(["", "one", "two"]), CHANGES), min_size=1, max_size=10)
)
def test_whatever_happens_the_model_has_read_the_prompt_and_only_superseded_articles_besides(
    turns: list[tuple[str, str, str, str]],
) -> None:
    it = Conversation()
    policy, facts = "p", "f"
    for question, answer, article, change in turns:
        if change == "policy":
            policy += "!"
        if change == "facts":
            facts += "!"
        if change == "agent":
            it.add(Speaker.AGENT, answer)
        if change == "removed" and it.context.said:
            it.context.remove(it.context.said[0].place)
        if change == "shortened" and (outgrown := it.context.outgrown(Marks(high_tokens=0, low_tokens=20))):
            it.context.shorten(outgrown, outgrown.shortened())
        if change == "stopped":
            it.chain = None
        it.add(Speaker.CUSTOMER, question)
        prompt = it.prompt(policy, facts, article)
        it.turn(prompt, answer)
        read = list(it.read[:-1])
        wanted = list(prompt.items)
        assert it.chain is not None
        assert it.chain.fields == prompt.fields
        assert [item for item in read if not item.passing] == [item for item in wanted if not item.passing]
        in_force = next((item for item in reversed(read) if item.passing), None)
        given_now = next((item for item in wanted if item.passing), None)
        assert in_force == given_now or (given_now is None and in_force == withdrawal())
        if given_now is not None:
            assert read[-2] == given_now
        assert read[-1] == wanted[-1]


@pytest.mark.parametrize("name", ["model", "instructions", "tools", "max_output_tokens", "store"])
def test_a_change_of_any_other_field_sends_everything(name: str) -> None:
    prompt = prompt_of(SPEC, request(POLICY, user("q")))
    fields = json.loads(prompt.fields)
    other = json.dumps({**fields, name: "other"}).encode()
    chain = Chain("r", prompt.fields, (*prompt.items, said("a")))
    longer = (*chain.items, Item(user("next")))
    assert continued(Prompt(prompt.fields, longer), chain) == (Item(user("next")),)
    assert continued(Prompt(other, longer), chain) is None


@pytest.mark.parametrize(
    "items",
    [
        (Item(FACTS), Item(user("q!")), said("a"), Item(user("next"))),
        (Item(FACTS), Item(user("q")), said("a!"), Item(user("next"))),
        (Item(system("other")), Item(user("q")), said("a"), Item(user("next"))),
        (Item(user("q")), said("a"), Item(user("next"))),
        (Item(FACTS), Item(user("next"))),
        (Item(FACTS), Item(user("q"))),
        (),
    ],
)
def test_an_input_that_does_not_extend_the_last_one_is_sent_whole(items: tuple[Item, ...]) -> None:
    chain = Chain("r", b"{}", (Item(FACTS), Item(system("x"), passing=True), Item(user("q")), said("a")))
    assert continued(Prompt(b"{}", items), chain) is None
    assert sending(Prompt(b"{}", items), chain).items == items


def test_what_was_given_for_an_earlier_message_is_taken_back_by_words() -> None:
    chain = Chain("r", b"{}", (Item(system("x"), passing=True), Item(user("q")), said("a")))
    prompt = Prompt(b"{}", (Item(user("q")), said("a"), Item(user("next"))))
    assert [item.message.content for item in continued(prompt, chain) or ()] == [WITHDRAWN, "next"]
    assert WITHDRAWN not in body(prompt, [withdrawal()], "system").decode().replace(WITHDRAWN, "", 1)


def test_too_many_superseded_articles_begin_a_new_chain() -> None:
    heavy = Item(system("x" * (STALE_BYTES // 2)), passing=True)
    items = (heavy, Item(user("1")), said("a"), heavy, Item(user("2")), said("b"))
    prompt = Prompt(b"{}", (*(item for item in items if not item.passing), Item(user("3"))))
    assert continued(prompt, Chain("r", b"{}", items)) is None
    assert continued(prompt, Chain("r", b"{}", items[1:])) is not None


def event(kind: str, **fields: Any) -> str:
    return json.dumps({"type": kind, "sequence_number": 1, **fields})


def ended(status: str = "completed", **response: Any) -> str:
    return event(f"response.{status}", response={"id": "r1", "status": status, **response})


def reply_of(*events: str) -> tuple[str, Reply]:
    reply = Reply()
    return "".join(reply.take(each)[0] for each in events), reply


def test_only_what_the_model_does_is_progress() -> None:
    reply = Reply()
    for kind in (
        "response.created",
        "response.in_progress",
        "response.queued",
        "ping",
        "response.mystery",
        "",
    ):
        assert reply.take(event(kind, response={"id": "r1"})) == ("", False)
    for kind in (
        "response.output_item.added",
        "response.reasoning_text.delta",
        "response.content_part.added",
    ):
        assert reply.take(event(kind)) == ("", True)
    assert reply.take(event("response.output_text.delta", delta="42")) == ("42", True)


def test_text_is_said_once_whether_in_deltas_or_only_at_the_end() -> None:
    text, _ = reply_of(
        event("response.output_text.delta", output_index=0, delta="One "),
        event("response.output_text.done", output_index=0, text="One two"),
        event("response.output_text.done", output_index=1, text=" three"),
    )
    assert text == "One two three"


def test_an_answer_ends_with_its_reason_and_usage() -> None:
    usage = {"input_tokens": 9, "output_tokens": 2, "input_tokens_details": {"cached_tokens": 4}}
    delta = event("response.output_text.delta", delta="x")
    _, reply = reply_of(delta, ended(usage=usage))
    assert reply.end("e", ()) == [Done("stop", Usage(9, 2, 4), "e")]
    assert (reply.response_id, reply.text) == ("r1", "x")
    _, reply = reply_of(delta, ended("incomplete", incomplete_details={"reason": "max_output_tokens"}))
    assert reply.end("e", ()) == [Done("length", None, "e")]
    _, reply = reply_of(delta, ended("incomplete", incomplete_details={"reason": "content_filter"}))
    assert reply.end("e", ()) == [Done("content_filter", None, "e")]


def test_a_call_of_the_handoff_is_an_action_and_of_another_function_none() -> None:
    def called(name: str) -> str:
        item = {"type": "function_call", "name": name, "arguments": '{"reason":"x","team":"returns"}'}
        return event("response.output_item.done", item=item)

    _, reply = reply_of(called("handoff"), ended())
    assert reply.end("e", ("Returns",)) == [HandoffCall("x", "Returns"), Done("tool_calls", None, "e")]
    assert reply.called
    _, reply = reply_of(called("search"), ended())
    with pytest.raises(NoAnswer):
        reply.end("e", ())


def test_an_end_without_an_answer_is_a_failure() -> None:
    for events, failure in (
        ((), BrokenStream),
        ((event("response.output_text.delta", delta="x"),), BrokenStream),
        ((ended(),), NoAnswer),
        ((ended("incomplete", incomplete_details={"reason": "content_filter"}),), ContentFiltered),
    ):
        _, reply = reply_of(*events)
        with pytest.raises(failure):
            reply.end("e", ())


NOT_FOUND = {"type": "invalid_request_error", "code": "previous_response_not_found", "message": "gone"}


@pytest.mark.parametrize(
    ("data", "failure"),
    [
        ({"type": "error", "status": 400, "error": NOT_FOUND}, ChainLost),
        ({"type": "error", "code": "previous_response_not_found", "message": "gone"}, ChainLost),
        (
            {"type": "error", "status": 400, "error": {"code": "websocket_connection_limit_reached"}},
            ConnectionExpired,
        ),
        ({"type": "error", "status_code": 401, "error": {"message": "no"}}, AuthRefused),
        ({"type": "error", "status": 429, "error": {"message": "slow"}}, RateLimited),
        ({"type": "error", "status": 400, "error": {"code": "x", "message": "no"}}, RequestRefused),
        ({"type": "error", "code": "server_error", "message": "oh", "param": None}, ServerFailed),
        ({"type": "error"}, ServerFailed),
        ({"type": "response.failed", "response": {"error": {"code": "rate_limit_exceeded"}}}, RateLimited),
        ({"type": "response.failed", "response": {"error": None}}, ServerFailed),
        ({"type": "response.failed"}, ServerFailed),
    ],
)
def test_an_error_gets_its_type_in_either_shape(data: dict[str, Any], failure: type[LlmError]) -> None:
    with pytest.raises(failure) as caught:
        Reply().take(json.dumps(data))
    assert type(caught.value) is failure


@pytest.mark.parametrize("place", ["event", "error"])
def test_an_error_brings_its_retry_after_along(place: str) -> None:
    headers = {"headers": {"retry-after": "2"}}
    error: dict[str, Any] = {"message": "slow", **(headers if place == "error" else {})}
    data = {"type": "error", "status": 429, "error": error, **(headers if place == "event" else {})}
    failure = parsed(json.dumps(data)).failure()
    assert isinstance(failure, RateLimited)
    assert failure.retry_after_s == 2.0


@pytest.mark.parametrize("data", ["", "{", "[]", "7", '{"type":7}', '{"stream_id":{}}'])
def test_what_is_no_event_is_bad_data(data: str) -> None:
    with pytest.raises(BadData):
        Reply().take(data)


NAMES = ["type", "delta", "error", "response", "item", "usage", "text", "status", "stream_id", "code"]


@given(any_json(NAMES, ["error", "response.completed"]))
def test_any_json_is_read_or_refused_by_type(value: object) -> None:
    try:
        Reply().take(json.dumps(value))
    except LlmError:
        return
