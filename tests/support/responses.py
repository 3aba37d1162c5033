"""A reader of the Responses API by the letter of its documentation, for judging what a fake has sent."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

from tests.fakes.upstream.control import Control

Event = dict[str, Any]
TIMEOUT_S = 10.0
TERMINAL = ("response.completed", "response.incomplete", "response.failed", "error")


@dataclass(slots=True)
class Told:
    """One response, read back. `judge` makes it, and fails at the first event out of its documented order."""

    id: str = ""
    text: str = ""
    reasoning: str = ""
    calls: list[tuple[str, str]] = field(default_factory=list)
    response: Event = field(default_factory=dict)

    @property
    def usage(self) -> Event:
        found: Event = self.response["usage"]
        return found

    @property
    def cached(self) -> int:
        tokens: int = self.usage["input_tokens_details"]["cached_tokens"]
        return tokens


def events_of(body: bytes) -> list[Event]:
    """The events of an event stream, each of whose names must be its own type."""
    found: list[Event] = []
    for block in re.split(r"\n\n", body.decode()):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if line and not line.startswith(":"))
        if "data" not in fields:
            continue
        event = json.loads(fields["data"])
        assert fields.get("event") == event["type"]
        found.append(event)
    return found


def judge(events: list[Event]) -> Told:
    """The response whose events these are, all of them and no others."""
    told = Told()
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    rest = iter(events)
    created = _next(rest, "response.created")
    assert created["response"]["status"] == "in_progress"
    assert created["response"]["output"] == []
    told.id = created["response"]["id"]
    assert _next(rest, "response.in_progress")["response"]["id"] == told.id
    items: list[Event] = []
    for event in rest:
        if event["type"] in TERMINAL:
            told.response = event["response"]
            assert event["type"] == f"response.{told.response['status']}"
            assert told.response["id"] == told.id
            assert told.response["output"] == items
            assert list(rest) == []
            return told
        assert event["type"] == "response.output_item.added", event
        assert event["output_index"] == len(items)
        items.append(_item(event, rest, told))
    raise AssertionError("no terminal event")


def _item(added: Event, rest: Iterator[Event], told: Told) -> Event:
    item, place = added["item"], {"item_id": added["item"]["id"], "output_index": added["output_index"]}
    assert item["status"] == "in_progress"
    match item["type"]:
        case "message":
            part = {**place, "content_index": 0}
            assert _next(rest, "response.content_part.added", part)["part"]["text"] == ""
            text = _pieces(rest, "response.output_text", part, "text")
            assert _next(rest, "response.content_part.done", part)["part"]["text"] == text
            told.text += text
        case "reasoning":
            first = next(rest)
            summary = first["type"] == "response.reasoning_summary_part.added"
            part = {**place, "summary_index" if summary else "content_index": 0}
            assert first == {**first, **part}
            kind = "response.reasoning_summary_text" if summary else "response.reasoning_text"
            told.reasoning += _pieces(rest, kind, part, "text")
            _next(
                rest,
                "response.reasoning_summary_part.done" if summary else "response.content_part.done",
                part,
            )
        case "function_call":
            arguments = _pieces(rest, "response.function_call_arguments", place, "arguments")
            told.calls.append((item["name"], arguments))
        case unknown:
            raise AssertionError(unknown)
    done = _next(rest, "response.output_item.done", {"output_index": added["output_index"]})["item"]
    assert isinstance(done, dict)
    assert (done["id"], done["type"], done["status"]) == (item["id"], item["type"], "completed")
    return done


def _pieces(rest: Iterator[Event], kind: str, place: Event, name: str) -> str:
    """The deltas up to their `done`, which repeats them whole."""
    text = ""
    for event in rest:
        assert event == {**event, **place}
        if event["type"] == f"{kind}.done":
            assert event[name] == text
            return text
        assert event["type"] == f"{kind}.delta"
        text += event["delta"]
    raise AssertionError(f"no {kind}.done")


def _next(rest: Iterator[Event], kind: str, place: Event | None = None) -> Event:
    event = next(rest)
    assert event["type"] == kind, event
    assert event == {**event, **(place or {})}
    return event


class Line:
    """One WebSocket to a model server, as a client without any cleverness holds it; `dialled` opens one.

    Every wait ends after 10 s with `TimeoutError`.
    """

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket

    async def send_raw(self, text: str) -> None:
        async with asyncio.timeout(TIMEOUT_S):
            await self._socket.send(text)

    async def send(self, **event: object) -> None:
        await self.send_raw(json.dumps(event))

    async def create(self, asked: str | list[Event] = "Hello", **fields: object) -> None:
        items = [{"role": "user", "content": asked}] if isinstance(asked, str) else asked
        await self.send(type="response.create", **{"model": "m", "store": False, "input": items, **fields})

    async def event(self) -> Event:
        """The next event. Raises `ConnectionClosed`."""
        async with asyncio.timeout(TIMEOUT_S):
            found = json.loads(await self._socket.recv())
        assert isinstance(found, dict)
        return found

    async def until(self, kind: str) -> Event:
        """The next event of this kind; those before it are dropped."""
        while (event := await self.event())["type"] != kind:
            pass
        return event

    async def until_end(self, responses: int = 1) -> list[Event]:
        """Every event up to the terminal one of so many responses."""
        events: list[Event] = []
        while responses:
            events.append(await self.event())
            responses -= events[-1]["type"] in TERMINAL
        return events

    async def ask(self, asked: str | list[Event] = "Hello", **fields: object) -> Told:
        """One response, which must be in order and on its lane."""
        await self.create(asked, **fields)
        events = await self.until_end()
        lane = fields.get("stream_id")
        assert {event.pop("stream_id", None) for event in events} == {lane}
        return judge(events)

    async def refused(self, asked: str | list[Event] = "Hello", **fields: object) -> Event:
        """The error frame that is the whole answer."""
        await self.create(asked, **fields)
        event = await self.event()
        assert (event["type"], event["status"]) == ("error", 400), event
        return event


@asynccontextmanager
async def dialled(upstream: Control, key: str = "k") -> AsyncIterator[Line]:
    """A line to a server without TLS, closed at the end."""
    async with asyncio.timeout(TIMEOUT_S):
        socket = await connect(
            upstream.base_url.replace("http", "ws", 1) + "/responses", proxy=None, compression=None,
            additional_headers={"authorization": f"Bearer {key}"}, open_timeout=None, close_timeout=1.0,
        )  # fmt: skip
    try:
        yield Line(socket)
    finally:
        await socket.close()
