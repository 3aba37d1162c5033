"""One endpoint as this process holds it: its warm provider, its slots and its breaker. Lives on the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

from apps.engine.events import OnModelEvent
from apps.engine.types import ModelRequest, Usage
from apps.llm import waits
from apps.llm.breaker import Breaker
from apps.llm.deadlines import Deadlines
from apps.llm.demand import STREAMS, Demand
from apps.llm.errors import AuthRefused, EndpointFull, LlmError
from apps.llm.http_line import HttpLine
from apps.llm.providers.chat_completions import ChatCompletions
from apps.llm.providers.provider import Provider
from apps.llm.providers.responses_http import ResponsesHttp
from apps.llm.providers.responses_ws import ResponsesWs
from apps.llm.score import Form
from apps.llm.spec import Api, EndpointSpec
from apps.llm.tactics import Tactics
from apps.telemetry import instruments

# Between two looks at an idle connection. The peer's own idle time-out is unknown (uvicorn 5 s, node 5 s, nginx 75 s),
# so the pause shrinks when a connection was found dead and grows while it is found alive.
FIRST_PAUSE_S = 20.0
SHORTEST_PAUSE_S = 4.0
LONGEST_PAUSE_S = 60.0
PAUSE_AFTER_FAILURE_S = 10.0
# Prompts that are read ahead of their questions at the same time.
MOST_AHEAD = 2

_PROVIDERS: dict[Api, Callable[[EndpointSpec, HttpLine, Deadlines], Provider]] = {
    Api.CHAT_COMPLETIONS: ChatCompletions,
    Api.RESPONSES: ResponsesHttp,
    Api.RESPONSES_SOCKET: ResponsesWs,
}


@dataclass(frozen=True, slots=True)
class Standing:
    """One endpoint in one process."""

    open: int
    wanted: int
    in_flight: int
    opened: int  # since the start


class Endpoint:
    """Streams answers through its provider, at most `max_concurrent` at a time."""

    def __init__(self, spec: EndpointSpec, deadlines: Deadlines, tactics: Tactics | None = None) -> None:
        self.spec = spec
        self.breaker = Breaker()
        self.form = Form(tactics)
        self.in_flight = 0
        self.warm_due = 0.0  # loop time
        self._deadlines = deadlines
        self._slots = asyncio.Semaphore(spec.max_concurrent)
        self._demand = Demand()
        self._http = HttpLine(spec, deadlines)
        self._provider = _PROVIDERS[spec.api](spec, self._http, deadlines)
        self._pause_s = FIRST_PAUSE_S
        self._wanted = 0
        self._ahead = 0

    def allows(self) -> bool:
        """Whether the breaker lets a request through now."""
        return self.breaker.allows(_now())

    @property
    def ready(self) -> bool:
        """Whether it would be asked now. Unlike `allows` this costs nobody their trial."""
        return not self.breaker.rests(_now())

    @property
    def spare(self) -> bool:
        """Whether one that nobody asked for would leave half of the places to questions, and takes nobody's trial."""
        return self.breaker.sound and 2 * (self.in_flight + 1) <= self.spec.max_concurrent

    async def stream(
        self,
        request: ModelRequest,
        on_event: OnModelEvent,
        turn_ends: float,
        on_begun: Callable[[], None] = lambda: None,
    ) -> None:
        """One answer. `on_begun` is called once it has its place, before it is sent.

        Raises `LlmError` after telling the breaker, and whatever `on_event` raises.
        """
        try:
            async with self._slot(turn_ends):
                on_begun()
                first_due = min(_now() + self._deadlines.first_data_s, turn_ends)
                with self._measured():
                    await self._provider.answer(request, on_event, first_due, turn_ends)
        except LlmError as error:
            self.breaker.failed(error, _now())
            raise
        except asyncio.CancelledError:
            self.warm_due = 0.0  # its connection was closed: the next question shall find another
            raise
        self.breaker.succeeded()
        self._size()
        if self._wanted <= 1:
            self._look_again_in(self._pause_s)  # the one there should be was alive just now

    async def prepare(self, request: ModelRequest) -> Usage | None:
        """Has the model read what is known before the question, where its API can and may; what it has cost.

        Gives way to answers: nothing where half of what may run at a time runs. Never raises `LlmError`.
        """
        if self._ahead >= MOST_AHEAD or 2 * self.in_flight >= self.spec.max_concurrent:
            return None
        self._ahead += 1
        try:
            return await self._provider.prepare(request)
        except asyncio.CancelledError:
            self.warm_due = 0.0  # its connection was closed
            raise
        finally:
            self._ahead -= 1

    async def warm(self) -> LlmError | None:
        """Makes sure of a connection. Gives the failure, if any."""
        before = self._provider.connections_opened
        self._size()
        try:
            await self._provider.warm()
        except AuthRefused as error:
            self._reached(before)
            return error
        except LlmError as error:
            self.breaker.failed(error, _now())
            self.warm_due = _now() + PAUSE_AFTER_FAILURE_S
            return error
        self._reached(before)
        return None

    async def close(self) -> None:
        """Closes all connections, also of answers that still run."""
        self._want(0)
        await self._provider.close()

    @property
    def standing(self) -> Standing:
        """How it stands now, for people to see."""
        return Standing(
            self._http.connections_open, self._wanted, self.in_flight, self._provider.connections_opened
        )

    @contextmanager
    def _measured(self) -> Iterator[None]:
        begun = _now()
        self._demand.began(begun)
        try:
            yield
        finally:
            self._demand.ended(_now() - begun)

    def _size(self) -> None:
        """Busy connections come back by themselves: only the rest is made sure of."""
        streams = STREAMS if self.spec.http2 else 1
        wanted = self._demand.connections(_now(), self.spec.max_concurrent, streams)
        self._want(wanted)
        ahead = self.spec.prepare_prompts and self.spec.quirks.reads_ahead
        self._http.wanted = wanted if self.spec.http2 else max(1, wanted - self.in_flight) + ahead

    def _want(self, connections: int) -> None:
        gauge = instruments.llm_connections_wanted.labels(self.spec.quirks.name)
        gauge.inc(connections - self._wanted)
        self._wanted = connections

    def _reached(self, connections_before: int) -> None:
        self.breaker.reached()
        found_dead = connections_before != 0 and self._provider.connections_opened != connections_before
        self._learn_pause(found_dead=found_dead)
        self._look_again_in(self._pause_s)

    def _look_again_in(self, pause_s: float) -> None:
        self.warm_due = min(_now() + pause_s, self._provider.due())

    @asynccontextmanager
    async def _slot(self, turn_ends: float) -> AsyncIterator[None]:
        try:
            with waits.waiting("queue"):
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

    def _learn_pause(self, *, found_dead: bool) -> None:
        if found_dead:
            self._pause_s = max(self._pause_s / 2, SHORTEST_PAUSE_S)
        else:
            self._pause_s = min(self._pause_s * 1.25, LONGEST_PAUSE_S)


def _now() -> float:
    return asyncio.get_running_loop().time()
