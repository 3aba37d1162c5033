"""One endpoint as this process holds it: its warm client, its slots and its breaker. Lives on the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx

from apps.engine.events import OnModelEvent
from apps.engine.types import ModelRequest
from apps.llm import transport
from apps.llm.breaker import Breaker
from apps.llm.deadlines import Deadlines
from apps.llm.errors import AuthRefused, BrokenStream, EndpointFull, LlmError
from apps.llm.providers import chat_completions
from apps.llm.spec import EndpointSpec
from apps.telemetry import instruments

# Between two looks at an idle connection. The peer's own idle time-out is unknown (uvicorn 5 s, node 5 s, nginx 75 s),
# so the pause shrinks when a connection was found dead and grows while it is found alive.
FIRST_PAUSE_S = 20.0
SHORTEST_PAUSE_S = 4.0
LONGEST_PAUSE_S = 60.0
PAUSE_AFTER_FAILURE_S = 10.0


class Endpoint:
    """Streams answers over its own persistent client, at most `max_concurrent` at a time."""

    def __init__(self, spec: EndpointSpec, deadlines: Deadlines) -> None:
        self.spec = spec
        self.breaker = Breaker()
        self.in_flight = 0
        self.warm_due = 0.0  # loop time
        self._deadlines = deadlines
        self._slots = asyncio.Semaphore(spec.max_concurrent)
        self._opening = asyncio.Lock()
        self._client: httpx.AsyncClient | None = None
        self._connections_opened = 0
        self._pause_s = FIRST_PAUSE_S

    def allows(self) -> bool:
        """Whether the breaker lets a request through now."""
        return self.breaker.allows(_now())

    async def stream(self, request: ModelRequest, on_event: OnModelEvent, turn_ends: float) -> None:
        """One answer. Raises `LlmError` after telling the breaker, and whatever `on_event` raises."""
        try:
            async with self._slot(turn_ends):
                await self._answer(request, on_event, turn_ends)
        except LlmError as error:
            self.breaker.failed(error, _now())
            raise
        self.breaker.succeeded()
        self.warm_due = _now() + self._pause_s

    async def warm(self) -> LlmError | None:
        """Makes sure of one connection with TLS finished, by asking for the list of models. Gives the failure, if any.

        What the list says, or that there is none, does not matter; only 401 does.
        """
        before = self._connections_opened
        try:
            status = await self._ask_for_models()
        except LlmError as error:
            self.breaker.failed(error, _now())
            self.warm_due = _now() + PAUSE_AFTER_FAILURE_S
            return error
        self.breaker.reached()
        self._learn_pause(found_dead=before != 0 and self._connections_opened != before)
        self.warm_due = _now() + self._pause_s
        return AuthRefused("the key is refused") if status == httpx.codes.UNAUTHORIZED else None

    async def close(self) -> None:
        """Closes all connections, also of answers that still run."""
        if self._client is not None:
            await self._client.aclose()

    async def _answer(self, request: ModelRequest, on_event: OnModelEvent, turn_ends: float) -> None:
        client = await self._opened_client()
        try:
            await chat_completions.stream(client, self.spec, request, on_event, self._deadlines, turn_ends)
        except BrokenStream as error:
            if error.began:
                raise
            # The peer closed an idle connection just as we used it: nothing was answered, a new one will do.
            await chat_completions.stream(client, self.spec, request, on_event, self._deadlines, turn_ends)

    @asynccontextmanager
    async def _slot(self, turn_ends: float) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout_at(min(_now() + self._deadlines.slot_s, turn_ends)):
                await self._slots.acquire()
        except TimeoutError as error:
            raise EndpointFull(f"{self.spec.max_concurrent} answers are running") from error
        self.in_flight += 1
        instruments.llm_in_flight.labels(self.spec.quirks.name).inc()
        try:
            yield
        finally:
            self.in_flight -= 1
            instruments.llm_in_flight.labels(self.spec.quirks.name).dec()
            self._slots.release()

    async def _ask_for_models(self) -> int:
        client = await self._opened_client()
        due = _now() + self._deadlines.connect_s + self._deadlines.connect_s
        request = client.build_request(
            "GET", self.spec.url("models"), extensions={"trace": self._trace_http2}
        )
        response = await transport.send(client, request, due)
        try:
            await transport.read_out(response, due)
        finally:
            await transport.close(response, self._deadlines.close_s)
        return response.status_code

    async def _opened_client(self) -> httpx.AsyncClient:
        async with self._opening:
            if self._client is None:
                self._client = await transport.open_client(
                    self.spec, self._deadlines.connect_s, self._connection_opened
                )
            return self._client

    def _connection_opened(self) -> None:
        self._connections_opened += 1
        instruments.llm_connections_opened.labels(self.spec.quirks.name).inc()

    async def _trace_http2(self, event: str, _: object) -> None:
        if event == "connection.connect_tcp.complete":
            self._connection_opened()

    def _learn_pause(self, *, found_dead: bool) -> None:
        if found_dead:
            self._pause_s = max(self._pause_s / 2, SHORTEST_PAUSE_S)
        else:
            self._pause_s = min(self._pause_s * 1.25, LONGEST_PAUSE_S)


def _now() -> float:
    return asyncio.get_running_loop().time()
