"""The connection test of the admin: one real, tiny, streamed question to an endpoint."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from apps.engine.events import Done, ModelEvent
from apps.engine.types import ChatMessage, Facts, FactsState, ModelRequest
from apps.llm.deadlines import Deadlines
from apps.llm.endpoint import Endpoint
from apps.llm.errors import LlmError, NoAnswer
from apps.llm.spec import EndpointSpec

# Somebody waits for the page. Enough for a cold model of a hosted provider.
PATIENCE = Deadlines(slot_s=1.0, connect_s=4.0, first_data_s=15.0, between_data_s=10.0, turn_s=20.0)
QUESTION = "Reply with the word: ready"
# Room for a model that thinks first.
TOKENS = 256


@dataclass(frozen=True, slots=True)
class Outcome:
    """`failure` is a label of `errors`, "" when it worked; `detail` is what the server said of it.

    `first_ms` is from the question to the first words, over a connection that was already open.
    """

    failure: str = ""
    detail: str = ""
    first_ms: float | None = None


async def probe(spec: EndpointSpec) -> Outcome:
    """Connects, asks, closes. Never raises `LlmError`; at most 24 s."""
    endpoint = Endpoint(spec, PATIENCE)
    try:
        await endpoint.warm()  # so that the time told is that of later answers, not of the handshake
        return await _ask(endpoint)
    finally:
        await endpoint.close()


async def _ask(endpoint: Endpoint) -> Outcome:
    loop = asyncio.get_running_loop()
    started, first_at = loop.time(), 0.0

    async def hear(event: ModelEvent) -> None:
        nonlocal first_at
        if not isinstance(event, Done):
            first_at = first_at or loop.time()

    message = ChatMessage("user", QUESTION)
    request = ModelRequest(
        (message,), QUESTION, "en", Facts(False, FactsState.NONE), (), max_output_tokens=TOKENS
    )
    try:
        await endpoint.stream(request, hear, started + PATIENCE.turn_s)
    except NoAnswer:
        return Outcome()  # it streamed and ended properly; it only thought for too long
    except LlmError as error:
        return Outcome(error.label, str(error))
    return Outcome(first_ms=(first_at - started) * 1000)
