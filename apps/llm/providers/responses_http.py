"""The Responses API over server-sent events. Only what is new is sent where the server keeps responses."""

from __future__ import annotations

from collections import OrderedDict

from apps.engine.events import OnModelEvent
from apps.engine.types import ModelRequest, Usage
from apps.llm.deadlines import Deadlines
from apps.llm.errors import RequestRefused
from apps.llm.http_line import HttpLine
from apps.llm.providers import responses_request
from apps.llm.providers.http_stream import Listener, receive
from apps.llm.providers.provider import HttpProvider
from apps.llm.providers.responses_chain import Chain, Sending, sending
from apps.llm.providers.responses_events import Reply
from apps.llm.providers.responses_request import Prompt, prompt_of, said
from apps.llm.spec import EndpointSpec
from apps.telemetry import instruments

# Conversations whose last response is remembered. One that was forgotten is sent in full, and nothing else happens.
KEPT_CHAINS = 2_000


class ResponsesHttp(HttpProvider):
    """A request a turn. What a server stores is continued; what it no longer knows is sent again in full, once."""

    def __init__(self, spec: EndpointSpec, http: HttpLine, deadlines: Deadlines) -> None:
        super().__init__(spec, http)
        self._deadlines = deadlines
        self._continues = spec.continue_chains and spec.keep_responses and spec.quirks.stored_responses
        self._chains: OrderedDict[str, Chain] = OrderedDict()

    async def attempt(
        self, request: ModelRequest, on_event: OnModelEvent, first_due: float, turn_ends: float
    ) -> None:
        prompt = prompt_of(self.spec, request)
        chosen = sending(prompt, self._chains.pop(request.cache_key, None))
        listener = Listener(on_event, self.spec.name, request.teams, first_due, turn_ends)
        try:
            await self._send(request, prompt, chosen, listener)
        except RequestRefused:
            # Not every server has a word of its own for a chain it does not know.
            if not chosen.previous:
                raise
            note_sent(self.spec, "again", 0, 0)
            await self._send(request, prompt, sending(prompt, None), listener)

    async def prepare(self, request: ModelRequest) -> Usage | None:
        """Nothing where the server keeps responses: it has read them already."""
        return None if self._continues else await super().prepare(request)

    async def _send(self, request: ModelRequest, prompt: Prompt, chosen: Sending, listener: Listener) -> None:
        client = await self.http.client()
        aside_role = self.spec.quirks.aside_role
        content = responses_request.body(
            prompt, chosen.items, aside_role, previous=chosen.previous, more=b'"stream":true,'
        )
        note_sent(self.spec, "continued" if chosen.previous else "full", len(chosen.items), len(chosen.whole))
        sent = client.build_request(
            "POST", self.spec.url("responses"), content=content,
            headers=responses_request.headers(self.spec, request),
        )  # fmt: skip
        reply = Reply()
        await receive(client, sent, reply, listener, self._deadlines)
        if self._continues and request.cache_key and reply.response_id and not reply.called:
            self._keep(
                request.cache_key, Chain(reply.response_id, prompt.fields, (*chosen.whole, said(reply.text)))
            )

    def _keep(self, key: str, chain: Chain) -> None:
        self._chains[key] = chain
        if len(self._chains) > KEPT_CHAINS:
            self._chains.popitem(last=False)


def note_sent(spec: EndpointSpec, how: str, items: int, whole: int) -> None:
    """Counts a request by how it went out, and the items it spared."""
    instruments.llm_requests.labels(spec.quirks.name, how).inc()
    instruments.llm_input_items.labels("sent").inc(items)
    instruments.llm_input_items.labels("spared").inc(whole - items)
