"""The control over HTTP: its own plain port, so that no fault and no distance touches it.

`POST /_control/<command>` with the command's fields as JSON answers the counts (408 after a vain wait);
`GET /_control/counts` and `GET /_control/requests` read. Commands are the structs of `control`, by their tag.
"""

from __future__ import annotations

import http.client
import json
from typing import get_args

import msgspec

from tests.fakes.transport.exchange import Exchange, Request, respond
from tests.fakes.upstream.control import Command, Control, Wait
from tests.fakes.upstream.ledger import Counts, Seen
from tests.fakes.upstream.server import UpstreamServer

PREFIX = "/_control/"
COMMANDS: dict[str, type[Command]] = {kind.__struct_config__.tag: kind for kind in get_args(Command)}
MARGIN_S = 20.0


class ControlServer:
    """The listener's application for the control port."""

    def __init__(self, upstream: UpstreamServer) -> None:
        self._upstream = upstream

    async def serve(self, request: Request, exchange: Exchange) -> None:
        try:
            status, answer = 200, await self._answer(request)
        except (msgspec.DecodeError, LookupError) as error:
            status, answer = 400, {"error": str(error)}
        except TimeoutError:
            status, answer = 408, {"error": "waited in vain", "counts": self._upstream.ledger.counts}
        await respond(exchange, status, msgspec.json.encode(answer))

    async def _answer(self, request: Request) -> object:
        name = request.path.removeprefix(PREFIX)
        if request.method == "POST":
            command: Command = msgspec.json.decode(request.body or b"{}", type=COMMANDS[name])
            return await self._upstream.obey(command)
        return {"counts": self._upstream.ledger.counts, "requests": list(self._upstream.ledger.requests)}[
            name
        ]


class RemoteUpstream(Control):
    """A model server in another process, by what it printed when it was ready."""

    def __init__(self, url: str, control_url: str, ca_file: str = "") -> None:
        self.url = url
        self.ca_file = ca_file
        self._control = control_url.removeprefix("http://")

    def send(self, command: Command) -> Counts:
        patience_s = command.timeout_s if isinstance(command, Wait) else 0.0
        tag = str(command.__struct_config__.tag)
        body = self._call("POST", tag, msgspec.json.encode(command), patience_s)
        return msgspec.json.decode(body, type=Counts)

    def requests(self) -> list[Seen]:
        return msgspec.json.decode(self._call("GET", "requests"), type=list[Seen])

    def counts(self) -> Counts:
        return msgspec.json.decode(self._call("GET", "counts"), type=Counts)

    def _call(self, method: str, name: str, body: bytes = b"", patience_s: float = 0.0) -> bytes:
        connection = http.client.HTTPConnection(self._control, timeout=patience_s + MARGIN_S)
        try:
            connection.request(method, PREFIX + name, body)
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        if answer.status == http.client.REQUEST_TIMEOUT:
            raise TimeoutError(json.loads(text))
        if answer.status != http.client.OK:
            raise ValueError(text.decode())
        return text
