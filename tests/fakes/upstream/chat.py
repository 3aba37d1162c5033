"""The Chat Completions shape: requests in, chunks and whole answers out, as JSON values."""

from __future__ import annotations

import msgspec

from tests.fakes.upstream.faults import Fault
from tests.fakes.upstream.profile import Dialect, Reporting
from tests.fakes.upstream.script import CallArguments, CallStarted, Prompt, Reply, Step, Thought, Word
from tests.fakes.upstream.shape import CREATED, Json, Tokens


class Part(msgspec.Struct, frozen=True):
    type: str
    text: str = ""


class Message(msgspec.Struct, frozen=True):
    role: str
    content: str | tuple[Part, ...] | None = None
    tool_calls: msgspec.Raw = msgspec.Raw(b"")
    tool_call_id: str = ""

    @property
    def text(self) -> str:
        if isinstance(self.content, tuple):
            return "".join(part.text for part in self.content)
        return self.content or ""


class Function(msgspec.Struct, frozen=True):
    name: str


class Tool(msgspec.Struct, frozen=True):
    type: str
    function: Function


class StreamOptions(msgspec.Struct, frozen=True):
    include_usage: bool = False


class ChatRequest(msgspec.Struct, frozen=True):
    """The fields that change what this server does; the others are taken and ignored."""

    model: str
    messages: tuple[Message, ...]
    stream: bool = False
    stream_options: StreamOptions | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    tools: msgspec.Raw = msgspec.Raw(b"[]")
    prompt_cache_key: str = ""

    def rendered(self) -> bytes:
        """The prompt as a chat template lays it out: tools, then messages. What the prefix cache sees."""
        return b"".join([self.model.encode(), b"\n", bytes(self.tools), *map(_render, self.messages)])

    def continued(self, reply: Reply) -> bytes:
        """The prompt with the answer behind it: a prefix of the next turn's prompt."""
        return self.rendered() + _render(Message("assistant", reply.text))

    def prompt(self) -> Prompt:
        lines = [line.strip() for message in self.messages for line in message.text.splitlines()]
        asked = [message.text for message in self.messages if message.role == "user"]
        question = next((line for line in reversed("\n".join(asked).splitlines()) if line.strip()), "")
        tools = msgspec.json.decode(self.tools, type=tuple[Tool, ...] | None) or ()
        return Prompt(
            question=question.strip(),
            lines=tuple(line for line in lines if line),
            tools=tuple(tool.function.name for tool in tools),
            max_tokens=self.max_completion_tokens or self.max_tokens,
        )


def _render(message: Message) -> bytes:
    head = f"<|{message.role}|{message.tool_call_id}>".encode()
    return b"".join([head, message.text.encode(), bytes(message.tool_calls), b"<|end|>"])


def _usage(tokens: Tokens, dialect: Dialect) -> Json:
    usage: Json = {
        "prompt_tokens": tokens.prompt,
        "completion_tokens": tokens.completion,
        "total_tokens": tokens.prompt + tokens.completion,
        "completion_tokens_details": {"reasoning_tokens": tokens.reasoning},
    }
    if dialect.deepseek_usage:
        usage["prompt_cache_hit_tokens"] = tokens.cached
        usage["prompt_cache_miss_tokens"] = tokens.prompt - tokens.cached
    else:
        usage["prompt_tokens_details"] = {"cached_tokens": tokens.cached}
    return usage


class ChatShape:
    """Makes the JSON of one answer."""

    def __init__(self, answer_id: str, request: ChatRequest, dialect: Dialect) -> None:
        self.last_line = b"[DONE]" if dialect.done else b""
        self._id = answer_id
        self._model = request.model
        self._dialect = dialect
        self._reports = _reports(request, dialect)
        self._usage = self._reports and request.stream
        self._calls = -1  # index of the call being written

    def accepted(self) -> list[Json]:
        return []

    def opening(self) -> list[Json]:
        return [self._chunk({"role": "assistant", "content": ""})]

    def step(self, step: Step) -> list[Json]:
        return [self._step(step)]

    def empty(self) -> list[Json]:
        return [self._chunk({}), self._step(Word(""))]

    def closing(self, reply: Reply, tokens: Tokens) -> list[Json]:
        finish = [self._chunk({}, reply.finish)] if self._dialect.finish else []
        if not self._reports:
            return finish
        usage = _usage(tokens, self._dialect)
        return [*finish, {**self._head("chat.completion.chunk"), "choices": [], "usage": usage}]

    def refusal(self, fault: Fault) -> Json:
        return error(fault.message, fault.code)

    def error(self, fault: Fault) -> Json:
        return error(fault.message, fault.code)

    def failed(self, fault: Fault) -> list[Json]:
        return []

    def _step(self, step: Step) -> Json:
        match step:
            case Word():
                return self._chunk({"content": step.text})
            case Thought():
                return self._chunk({self._dialect.reasoning_field: step.text})
            case CallStarted():
                self._calls += 1
                function = {"name": step.name, "arguments": ""}
                call = {"index": self._calls, "id": step.call_id, "type": "function", "function": function}
                return self._chunk({"tool_calls": [call]})
            case CallArguments():
                return self._chunk(
                    {"tool_calls": [{"index": self._calls, "function": {"arguments": step.text}}]}
                )

    def whole(self, reply: Reply, tokens: Tokens) -> Json:
        """The answer of a request that did not ask for a stream."""
        message: Json = {"role": "assistant", "content": reply.text or None}
        if reply.reasoning:
            message[self._dialect.reasoning_field] = reply.reasoning
        if calls := _calls(reply):
            message["tool_calls"] = calls
        choice = {"index": 0, "message": message, "finish_reason": reply.finish, "logprobs": None}
        return {
            **self._head("chat.completion"),
            "choices": [choice],
            "usage": _usage(tokens, self._dialect),
        }

    def _chunk(self, delta: Json, finish: str | None = None) -> Json:
        choice: Json = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        chunk = {**self._head("chat.completion.chunk"), "choices": [choice]}
        if self._usage:
            chunk["usage"] = None
        if self._dialect.unknown_fields:
            chunk["system_fingerprint"] = "fp_0"
            chunk["x_queue"] = {"depth": 3, "tags": [None, True]}
            choice["content_filter_results"] = {}
        return chunk

    def _head(self, kind: str) -> Json:
        return {"id": self._id, "object": kind, "created": CREATED, "model": self._model}


def _reports(request: ChatRequest, dialect: Dialect) -> bool:
    if dialect.usage is Reporting.ASKED:
        return request.stream_options is not None and request.stream_options.include_usage
    return dialect.usage is Reporting.ALWAYS


def error(message: str, code: str, kind: str = "server_error") -> Json:
    """OpenAI's error body; the same object is what servers put inside a stream."""
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def models(names: tuple[str, ...]) -> Json:
    """The answer of `GET /v1/models`."""
    listed = [{"id": name, "object": "model", "created": CREATED, "owned_by": "fake"} for name in names]
    return {"object": "list", "data": listed}


def _calls(reply: Reply) -> list[Json]:
    calls: list[tuple[CallStarted, list[str]]] = []
    for step in reply.steps:
        if isinstance(step, CallStarted):
            calls.append((step, []))
        elif isinstance(step, CallArguments):
            calls[-1][1].append(step.text)
    return [
        {
            "id": start.call_id,
            "type": "function",
            "function": {"name": start.name, "arguments": "".join(pieces)},
        }
        for start, pieces in calls
    ]
