"""The Responses shape: requests in, events and whole responses out, in the order that is documented."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from tests.fakes.upstream.chat import Part
from tests.fakes.upstream.faults import Fault
from tests.fakes.upstream.profile import Dialect, Reporting
from tests.fakes.upstream.script import CallArguments, CallStarted, Prompt, Reply, Step, Thought, Word
from tests.fakes.upstream.shape import CREATED, Json, Tokens


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """An item of the input, or of a response that is continued."""

    type: str = "message"
    role: str = ""
    content: str | tuple[Part, ...] = ""
    call_id: str = ""
    name: str = ""
    arguments: str = ""
    output: str = ""

    @property
    def text(self) -> str:
        if isinstance(self.content, tuple):
            return "".join(part.text for part in self.content)
        return self.content or self.output

    def rendered(self) -> bytes:
        head = f"<|{self.role or self.type}|{self.call_id}>"
        return f"{head}{self.text}{self.name}{self.arguments}<|end|>".encode()


class Tool(msgspec.Struct, frozen=True):
    type: str
    name: str = ""


class ResponseRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The fields that change what this server does; the others are taken and ignored."""

    model: str
    input: str | tuple[Item, ...] = ()
    instructions: str | None = None
    tools: msgspec.Raw = msgspec.Raw(b"[]")
    stream: bool = False
    background: bool = False
    store: bool = True
    previous_response_id: str | None = None
    conversation: str | None = None
    max_output_tokens: int | None = None
    prompt_cache_key: str = ""
    # Only over WebSocket.
    type: str = ""
    stream_id: str | None = None
    generate: bool = True

    @property
    def items(self) -> tuple[Item, ...]:
        return (Item(role="user", content=self.input),) if isinstance(self.input, str) else self.input


@dataclass(frozen=True, slots=True)
class Context:
    """Everything the model reads for one response: what it continues, and the request itself."""

    request: ResponseRequest
    before: tuple[Item, ...] = ()

    @property
    def items(self) -> tuple[Item, ...]:
        return (*self.before, *self.request.items)

    def rendered(self) -> bytes:
        """What the prefix cache sees. Instructions are never carried over: they are the request's own."""
        request = self.request
        head = [request.model.encode(), b"\n", bytes(request.tools), (request.instructions or "").encode()]
        return b"".join([*head, *(item.rendered() for item in self.items)])

    def continued(self, reply: Reply) -> tuple[Item, ...]:
        """What a response that continues this one stands on."""
        return (*self.items, *output_items(reply))

    def prompt(self) -> Prompt:
        request = self.request
        texts = [request.instructions or "", *(item.text for item in self.items)]
        lines = [line.strip() for text in texts for line in text.splitlines()]
        asked = [item.text for item in self.items if item.role == "user"]
        question = next((line for line in reversed("\n".join(asked).splitlines()) if line.strip()), "")
        tools = msgspec.json.decode(request.tools, type=tuple[Tool, ...] | None) or ()
        return Prompt(
            question=question.strip(),
            lines=tuple(line for line in lines if line),
            tools=tuple(tool.name for tool in tools),
            max_tokens=request.max_output_tokens,
        )


def output_items(reply: Reply) -> list[Item]:
    """A reply as the items that a next input stands on. Reasoning is not kept."""
    items = [Item(role="assistant", content=reply.text)] if reply.text else []
    calls = [step for step in reply.steps if isinstance(step, CallStarted)]
    arguments = "".join(step.text for step in reply.steps if isinstance(step, CallArguments))
    items += [
        Item(type="function_call", call_id=call.call_id, name=call.name, arguments=arguments)
        for call in calls
    ]
    return items


@dataclass(slots=True)
class _Open:
    """The output item being written."""

    kind: str  # message | reasoning | function_call
    index: int
    id: str
    text: str = ""
    call_id: str = ""
    name: str = ""


@dataclass(slots=True)
class ResponseShape:
    """Makes the events of one response. `socket` gives errors the form they have over a WebSocket."""

    id: str
    context: Context
    dialect: Dialect
    socket: bool = False
    last_line: bytes = b""
    _sequence: int = 0
    _open: _Open | None = None
    _output: list[Json] = field(default_factory=list)

    def accepted(self) -> list[Json]:
        snapshot = self._response("in_progress")
        return [
            self.event("response.created", response=snapshot),
            self.event("response.in_progress", response=snapshot),
        ]

    def opening(self) -> list[Json]:
        return []

    def step(self, step: Step) -> list[Json]:
        match step:
            case Word():
                return [*self._turn_to("message"), self._delta(step.text)]
            case Thought():
                return [*self._turn_to("reasoning"), self._delta(step.text)]
            case CallStarted():
                closed = self._close()
                self._open = _Open(
                    "function_call",
                    len(self._output),
                    self._item_id("fc"),
                    call_id=step.call_id,
                    name=step.name,
                )
                return [*closed, self._added()]
            case CallArguments():
                return [self._delta(step.text)]

    def empty(self) -> list[Json]:
        return [self._delta("")] if self._open is not None else []

    def closing(self, reply: Reply, tokens: Tokens) -> list[Json]:
        closed = self._close()
        if not self.dialect.finish:
            return closed
        status, reason = _ended(reply.finish)
        response = self._response(status, tokens, reason)
        return [*closed, self.event(f"response.{status}", response=response)]

    def whole(self, reply: Reply, tokens: Tokens) -> Json:
        for step in reply.steps:
            self.step(step)
        self._close()
        status, reason = _ended(reply.finish)
        return self._response(status, tokens, reason)

    def refusal(self, fault: Fault) -> Json:
        return self._socket_error(fault) if self.socket else http_error(fault.code, fault.message)

    def error(self, fault: Fault) -> Json:
        if not self.socket:
            return self.event("error", code=fault.code, message=fault.message, param=None)
        return {**self._socket_error(fault), "sequence_number": self._number()}

    def failed(self, fault: Fault) -> list[Json]:
        response = self._response("failed")
        response["error"] = {"code": fault.code, "message": fault.message}
        return [self.event("response.failed", response=response)]

    def event(self, kind: str, **fields: object) -> Json:
        """Any event of this response, in its sequence."""
        value: Json = {"type": kind, "sequence_number": self._number(), **fields}
        if self.dialect.unknown_fields:
            value["x_queue"] = {"depth": 3, "tags": [None, True]}
        return value

    def _socket_error(self, fault: Fault) -> Json:
        value = socket_error(fault.status, fault.code, fault.message, retry_after=fault.retry_after)
        return {**value, "stream_id": None} if fault.laneless else value

    def _turn_to(self, kind: str) -> list[Json]:
        if self._open is not None and self._open.kind == kind:
            return []
        closed = self._close()
        prefix = "msg" if kind == "message" else "rs"
        self._open = _Open(kind, len(self._output), self._item_id(prefix))
        return [*closed, self._added(), self._part("added", "")]

    def _added(self) -> Json:
        item = self._opened()
        return self.event("response.output_item.added", output_index=item.index, item=_item(item, done=False))

    def _delta(self, text: str) -> Json:
        item = self._opened()
        item.text += text
        more: Json = {"logprobs": []} if item.kind == "message" else {}
        return self.event(f"{self._kind()}.delta", **self._place(), delta=text, **more)

    def _close(self) -> list[Json]:
        item = self._open
        if item is None:
            return []
        name = "arguments" if item.kind == "function_call" else "text"
        more: Json = {"logprobs": []} if item.kind == "message" else {}
        if item.kind == "function_call":
            more = {"name": item.name}
        events = [self.event(f"{self._kind()}.done", **self._place(), **{name: item.text}, **more)]
        if item.kind != "function_call":
            events.append(self._part("done", item.text))
        value = _item(item, done=True)
        events.append(self.event("response.output_item.done", output_index=item.index, item=value))
        self._output.append(value)
        self._open = None
        return events

    def _part(self, what: str, text: str) -> Json:
        item = self._opened()
        if item.kind == "reasoning" and not self._raw_reasoning:
            part: Json = {"type": "summary_text", "text": text}
            return self.event(f"response.reasoning_summary_part.{what}", **self._place(), part=part)
        part = {"type": "reasoning_text" if item.kind == "reasoning" else "output_text", "text": text}
        if item.kind == "message":
            part["annotations"] = []
        return self.event(f"response.content_part.{what}", **self._place(), part=part)

    def _kind(self) -> str:
        match self._opened().kind:
            case "message":
                return "response.output_text"
            case "function_call":
                return "response.function_call_arguments"
            case _:
                return f"response.{'reasoning_text' if self._raw_reasoning else 'reasoning_summary_text'}"

    def _place(self) -> Json:
        item = self._opened()
        place: Json = {"item_id": item.id, "output_index": item.index}
        if item.kind == "function_call":
            return place
        summary = item.kind == "reasoning" and not self._raw_reasoning
        return {**place, "summary_index" if summary else "content_index": 0}

    @property
    def _raw_reasoning(self) -> bool:
        """Open models tell their thoughts; hosted ones a summary of them."""
        return self.dialect.reasoning_field == "reasoning"

    def _opened(self) -> _Open:
        assert self._open is not None
        return self._open

    def _item_id(self, prefix: str) -> str:
        return f"{prefix}_{len(self._output)}_{self.id.removeprefix('resp_')}"

    def _number(self) -> int:
        self._sequence += 1
        return self._sequence - 1

    def _response(self, status: str, tokens: Tokens | None = None, reason: str = "") -> Json:
        request = self.context.request
        reports = tokens is not None and self.dialect.usage is not Reporting.NEVER
        return {
            "id": self.id,
            "object": "response",
            "created_at": CREATED,
            "status": status,
            "background": False,
            "error": None,
            "incomplete_details": {"reason": reason} if reason else None,
            "instructions": request.instructions,
            "max_output_tokens": request.max_output_tokens,
            "model": request.model,
            "output": list(self._output),
            "parallel_tool_calls": True,
            "previous_response_id": request.previous_response_id,
            "store": request.store,
            "tool_choice": "auto",
            "tools": request.tools,
            "usage": _usage(tokens) if tokens is not None and reports else None,
            "metadata": {},
        }


def _ended(finish: str) -> tuple[str, str]:
    """The status and, when it is incomplete, the reason."""
    if finish == "length":
        return "incomplete", "max_output_tokens"
    return ("incomplete", finish) if finish in ("steered", "content_filter") else ("completed", "")


def _item(item: _Open, *, done: bool) -> Json:
    status = "completed" if done else "in_progress"
    match item.kind:
        case "message":
            part: Json = {"type": "output_text", "text": item.text, "annotations": []}
            content = [part] if done else []
            return {
                "id": item.id,
                "type": "message",
                "role": "assistant",
                "status": status,
                "content": content,
            }
        case "function_call":
            call: Json = {"id": item.id, "type": "function_call", "status": status, "call_id": item.call_id}
            return {**call, "name": item.name, "arguments": item.text if done else ""}
        case _:
            summary = [{"type": "summary_text", "text": item.text}] if done else []
            return {"id": item.id, "type": "reasoning", "status": status, "summary": summary}


def _usage(tokens: Tokens) -> Json:
    return {
        "input_tokens": tokens.prompt,
        "input_tokens_details": {"cached_tokens": tokens.cached, "cache_write_tokens": 0},
        "output_tokens": tokens.completion,
        "output_tokens_details": {"reasoning_tokens": tokens.reasoning},
        "total_tokens": tokens.prompt + tokens.completion,
    }


def http_error(code: str, message: str, param: str | None = None, kind: str = "server_error") -> Json:
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def socket_error(
    status: int, code: str, message: str, param: str | None = None, *, retry_after: str = ""
) -> Json:
    """The error frame of a WebSocket, still without its stream."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    error: Json = {"type": kind, "code": code, "message": message, "param": param}
    if retry_after:
        error["headers"] = {"retry-after": retry_after}
    return {"type": "error", "status": status, "error": error}
