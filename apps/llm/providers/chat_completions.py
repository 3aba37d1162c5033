"""Chat Completions over server-sent events: one request, one stream, the engine's model events."""

from __future__ import annotations

from apps.engine.events import OnModelEvent
from apps.engine.types import ModelRequest
from apps.llm.deadlines import Deadlines
from apps.llm.http_line import HttpLine
from apps.llm.providers import chat_request
from apps.llm.providers.chat_chunks import Reply
from apps.llm.providers.http_stream import Listener, receive
from apps.llm.providers.provider import HttpProvider
from apps.llm.spec import EndpointSpec


class ChatCompletions(HttpProvider):
    """Every turn sends its whole prompt; equal prefixes are for the server to find."""

    def __init__(self, spec: EndpointSpec, http: HttpLine, deadlines: Deadlines) -> None:
        super().__init__(spec, http)
        self._deadlines = deadlines

    async def attempt(
        self, request: ModelRequest, on_event: OnModelEvent, first_due: float, turn_ends: float
    ) -> None:
        client = await self.http.client()
        sent = client.build_request(
            "POST", self.spec.url("chat/completions"), content=chat_request.body(self.spec, request),
            headers=chat_request.headers(self.spec, request),
        )  # fmt: skip
        listener = Listener(on_event, self.spec.name, request.teams, first_due, turn_ends)
        await receive(client, sent, Reply(), listener, self._deadlines)
