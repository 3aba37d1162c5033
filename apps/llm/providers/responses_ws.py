"""The Responses API over WebSocket: only what is new goes out, on the lane whose end the server remembers."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict

import msgspec

from apps.engine.events import OnModelEvent, TextDelta
from apps.engine.types import ModelRequest, Usage
from apps.llm.allowance import Extra, granted
from apps.llm.deadlines import Deadlines
from apps.llm.errors import BrokenStream, LlmError, RequestRefused, Stage, Stalled, UpgradeRefused
from apps.llm.http_line import HttpLine
from apps.llm.providers import responses_request
from apps.llm.providers.http_stream import Listener
from apps.llm.providers.provider import PREPARE_S, estimated_usage
from apps.llm.providers.responses_chain import Chain, Sending, continued, sending
from apps.llm.providers.responses_events import Event, Reply
from apps.llm.providers.responses_http import KEPT_CHAINS, ResponsesHttp, note_sent
from apps.llm.providers.responses_request import Prompt, prompt_of, said
from apps.llm.providers.ws_pool import Lease, SocketPool
from apps.llm.spec import EndpointSpec
from apps.telemetry import instruments

logger = logging.getLogger(__name__)


class ResponsesWs:
    """A turn leases a lane. While no socket is to be had, the same API over HTTP answers."""

    def __init__(self, spec: EndpointSpec, http: HttpLine, deadlines: Deadlines) -> None:
        self._spec = spec
        self._http = ResponsesHttp(spec, http, deadlines)
        self._deadlines = deadlines
        self._pool = SocketPool(spec, deadlines)
        self._chains: OrderedDict[str, Chain] = OrderedDict()

    @property
    def connections_opened(self) -> int:
        return self._pool.connections_opened + self._http.connections_opened

    async def answer(
        self, request: ModelRequest, on_event: OnModelEvent, first_due: float, turn_ends: float
    ) -> None:
        listener = Listener(on_event, self._spec.name, request.teams, first_due, turn_ends)
        try:
            await self._over_sockets(request, listener)
        except UpgradeRefused:
            instruments.llm_socket_fallbacks.labels(self._spec.quirks.name).inc()
            await self._http.answer(request, on_event, first_due, turn_ends)

    async def prepare(self, request: ModelRequest) -> Usage | None:
        """Sends what is known without asking for an answer. Gives way: with no lane free at once, nothing happens."""
        key = request.cache_key
        if not (self._spec.prepare_prompts and self._spec.quirks.warm_up):
            return None
        prompt = prompt_of(self._spec, request)
        chain = self._chains.get(key) if self._pool.holds(key) else None
        if chain is not None and continued(prompt, chain) == ():
            return None  # the server has read all of it
        lease = self._pool.lease_now(key)
        if lease is None:
            return None
        try:
            return await self._prepare(key, prompt, lease) or estimated_usage(request)
        except LlmError as failure:
            # The question itself will tell, and be told, what is wrong.
            logger.info("endpoint %s: a prompt was not prepared: %s", self._spec.name, failure.label)
            return None
        finally:
            self._pool.give_back(lease)

    async def warm(self) -> None:
        if not self._pool.resting:
            try:
                await self._pool.tend()
            except UpgradeRefused:
                pass
            else:
                return
        await self._http.warm()

    def due(self) -> float:
        return self._pool.due()

    async def close(self) -> None:
        await self._pool.close()
        await self._http.close()

    async def _over_sockets(self, request: ModelRequest, listener: Listener) -> None:
        """A chain or a connection that was lost is no failure: the turn is sent again in full.

        Once; and once more where the connection was found dead, because idle ones end together.
        """
        prompt = prompt_of(self._spec, request)
        for tries_left in (2, 1, 0):
            try:
                await self._attempt(request, prompt, listener)
            except _Lost as lost:
                if tries_left < 2 and self._pool.resting:
                    raise UpgradeRefused("sockets do not last here") from lost
                again = tries_left == 2 or (tries_left == 1 and lost.found_dead)
                if not (again and granted(Extra.AGAIN)):
                    raise lost.failure from lost
                note_sent(self._spec, "again", 0, 0)
            else:
                return

    async def _attempt(self, request: ModelRequest, prompt: Prompt, listener: Listener) -> None:
        key = request.cache_key
        async with self._pool.lease(key, listener.first_due) as lease:
            chosen = self._chosen(key, prompt, lease)
            turn = _Turn(lease, listener, self._deadlines)
            try:
                await lease.send(self._message(lease, prompt, chosen), listener.first_due)
                self._note(chosen)
                await turn.answer()
            except RequestRefused as refused:
                # Not every server has a word of its own for a chain it does not know.
                if turn.heard or not chosen.previous:
                    raise
                raise _Lost(refused) from refused
            except BrokenStream as broken:
                if turn.heard:
                    raise
                raise _Lost(broken) from broken
            except Stalled:
                lease.socket.retire()  # it may be dead without knowing; whoever else speaks on it may finish
                raise
            self._pool.answered()
            self._keep(key, lease, chosen, prompt, turn.reply)

    async def _prepare(self, key: str, prompt: Prompt, lease: Lease) -> Usage | None:
        chosen = self._chosen(key, prompt, lease)
        due = asyncio.get_running_loop().time() + PREPARE_S
        await lease.send(self._message(lease, prompt, chosen, more=b'"generate":false,'), due)
        note_sent(self._spec, "prepared", len(chosen.items), len(chosen.whole))
        reply = Reply()
        while not reply.closed:
            for event in await lease.events(due, Stage.FIRST_DATA):
                reply.fold(event)
        if key:
            self._remember(key, lease, Chain(reply.response_id, prompt.fields, chosen.whole, prepared=True))
        return reply.usage

    def _chosen(self, key: str, prompt: Prompt, lease: Lease) -> Sending:
        """What to send on this lane. A chain that is sent on, or was pushed out, is no longer known."""
        if lease.forgotten and not self._spec.keep_responses:
            self._forget(lease.forgotten)
        chain = self._chains.pop(key, None)
        chosen = sending(prompt, chain if chain is not None and self._continues(chain, lease) else None)
        if chain is not None and chain.prepared:
            instruments.llm_prepared.labels("used" if chosen.previous else "wasted").inc()
        return chosen

    def _continues(self, chain: Chain, lease: Lease) -> bool:
        remembered = lease.continues and lease.lane.response_id == chain.response_id
        return self._spec.continue_chains and (remembered or self._spec.keep_responses)

    def _keep(self, key: str, lease: Lease, chosen: Sending, prompt: Prompt, reply: Reply) -> None:
        if key and reply.response_id and not reply.called:
            chain = Chain(reply.response_id, prompt.fields, (*chosen.whole, said(reply.text)))
            self._remember(key, lease, chain)

    def _remember(self, key: str, lease: Lease, chain: Chain) -> None:
        self._chains[key] = chain
        lease.keep(key, chain.response_id)
        if len(self._chains) > KEPT_CHAINS:
            self._forget(next(iter(self._chains)))

    def _forget(self, key: str) -> None:
        chain = self._chains.pop(key, None)
        if chain is not None and chain.prepared:
            instruments.llm_prepared.labels("wasted").inc()

    def _note(self, chosen: Sending) -> None:
        how = "continued" if chosen.previous else "full"
        note_sent(self._spec, how, len(chosen.items), len(chosen.whole))

    def _message(self, lease: Lease, prompt: Prompt, chosen: Sending, more: bytes = b"") -> bytes:
        name = lease.lane.name
        lane = b'"stream_id":' + msgspec.json.encode(name) + b"," if name is not None else b""
        return responses_request.body(
            prompt, chosen.items, self._spec.quirks.aside_role, previous=chosen.previous,
            more=b'"type":"response.create",' + lane + more,
        )  # fmt: skip


class _Lost(Exception):
    """The chain or the connection is gone and nothing was said yet."""

    def __init__(self, failure: LlmError) -> None:
        super().__init__(str(failure))
        self.failure = failure

    @property
    def found_dead(self) -> bool:
        """Whether the peer may not even have seen the question."""
        return isinstance(self.failure, BrokenStream) and not self.failure.began


class _Turn:
    """The loop over one answer. Only the model's progress re-arms the deadline; our own time does not count."""

    def __init__(self, lease: Lease, listener: Listener, deadlines: Deadlines) -> None:
        self.reply = Reply()
        self.heard = False  # something was said to the listener
        self._lease = lease
        self._listener = listener
        self._deadlines = deadlines
        self._due, self._stage = listener.first_due, Stage.FIRST_DATA

    async def answer(self) -> None:
        """Raises `LlmError`, and whatever the listener raises."""
        while not self.reply.closed:
            text, moved = self._fold(await self._next())
            if text:
                self.heard = True
                await self._listener.on_event(TextDelta(text))
            if moved:
                self._rearm()
        for event in self.reply.end(self._listener.endpoint, self._listener.teams):
            self.heard = True
            await self._listener.on_event(event)

    async def _next(self) -> list[Event]:
        ends = self._listener.turn_ends
        stage = self._stage if self._due < ends else Stage.TURN
        return await self._lease.events(min(self._due, ends), stage)

    def _fold(self, events: list[Event]) -> tuple[str, bool]:
        """All of one read together: an error behind a text in the same packet still leaves the text unsaid."""
        texts, moved = [], False
        for event in events:
            text, progress = self.reply.fold(event)
            texts.append(text)
            moved = moved or progress
        return "".join(texts), moved

    def _rearm(self) -> None:
        self._due = asyncio.get_running_loop().time() + self._deadlines.between_data_s
        self._stage = Stage.BETWEEN_DATA
