"""`/v1/responses`: POST for one response, GET with an upgrade for a connection of many."""

from __future__ import annotations

import asyncio
import random

import msgspec

from tests.fakes.transport.exchange import Exchange, Request, respond
from tests.fakes.transport.websocket import NotWebSocket, WebSocket, accepting, wants_upgrade
from tests.fakes.upstream.answer import Answer, Order
from tests.fakes.upstream.channel import Channel, StreamChannel, WholeChannel
from tests.fakes.upstream.lanes import Session
from tests.fakes.upstream.ledger import Ledger, Seen
from tests.fakes.upstream.model import Model, Refused
from tests.fakes.upstream.profile import Upgrade
from tests.fakes.upstream.responses import Context, Item, ResponseRequest, ResponseShape, http_error


class ResponsesApi:
    """Keeps what `store` asks for as long as the server runs, and the connections that are open."""

    def __init__(self, model: Model, ledger: Ledger) -> None:
        self._model = model
        self._ledger = ledger
        self._archive: dict[str, tuple[Item, ...]] = {}
        self.sessions: set[Session] = set()

    def forget(self) -> None:
        self._archive.clear()

    async def post(self, request: Request, exchange: Exchange, seen: Seen) -> None:
        """Raises `Refused`."""
        model = self._model
        wanted = self._parse(request)
        context = Context(wanted, self._before(wanted))
        seen.previous_response_id = wanted.previous_response_id or ""
        seen.input_items = len(wanted.items)
        rng = random.Random(f"{model.profile.seed}/{seen.serial}")
        plan = model.take_plan(seen.body)
        rendered = context.rendered()
        order = Order(
            prompt=context.prompt(), plan=plan, profile=model.profile, rng=rng, stream=wanted.stream,
            thinking_s=model.begin(rendered, wanted.prompt_cache_key, plan, seen, rng),
            cached_tokens=seen.cached_tokens, prompt_tokens=seen.prompt_tokens,
        )  # fmt: skip
        shape = ResponseShape(f"resp_{rng.getrandbits(96):024x}", context, order.dialect)
        channel: Channel = (
            StreamChannel(exchange, order.dialect, rng, named=True)
            if wanted.stream
            else WholeChannel(exchange, order.dialect, rng)
        )
        answer = Answer(order, shape, channel, self._ledger, seen, model.released)
        await answer.give(computed=lambda: model.remember(rendered, wanted.prompt_cache_key))
        if seen.ended:
            return
        items = context.continued(answer.reply)
        model.remember(Context(wanted, items).rendered(), wanted.prompt_cache_key)
        if wanted.store:
            self._archive[shape.id] = items

    def _parse(self, request: Request) -> ResponseRequest:
        try:
            wanted = msgspec.json.decode(request.body, type=ResponseRequest)
        except msgspec.DecodeError as error:
            raise Refused(400, "invalid_request", str(error)) from error
        self._model.serves(wanted.model)
        for name in ("stream_id", "generate"):
            if f'"{name}":' in request.body.decode(errors="replace"):
                raise Refused(400, "unknown_parameter", f"Unknown parameter: '{name}'.", name)
        if not wanted.items and not wanted.previous_response_id:
            raise Refused(400, "missing_required_parameter", "Missing 'input'.", "input")
        return wanted

    def _before(self, wanted: ResponseRequest) -> tuple[Item, ...]:
        if not wanted.previous_response_id:
            return ()
        if wanted.previous_response_id not in self._archive:
            told = f"Previous response with id '{wanted.previous_response_id}' not found."
            raise Refused(400, "previous_response_not_found", told, "previous_response_id")
        return self._archive[wanted.previous_response_id]

    async def connect(self, request: Request, exchange: Exchange, seen: Seen) -> None:
        """Answers the upgrade. Raises `Refused` for a plain GET. `converse` carries it on."""
        profile = self._model.profile
        if not wants_upgrade(request):
            raise Refused(426, "upgrade_required", "Connect with a WebSocket, or POST.")
        if profile.ws_refusal:
            seen.ended = f"refused {profile.ws_refusal}"
            self._ledger.socket_refused()
            body = http_error("websocket_refused", "No WebSocket here.", kind="invalid_request_error")
            headers = {"retry-after": profile.ws_retry_after} if profile.ws_retry_after else {}
            await respond(exchange, profile.ws_refusal, msgspec.json.encode(body), headers=headers)
            return
        if profile.ws_upgrade is Upgrade.STALL:
            with self._ledger.standing():
                await self._model.released()
        headers = accepting(request)
        if profile.ws_upgrade is Upgrade.MANGLE:
            headers["sec-websocket-accept"] = "bm90IHRoZSByaWdodCBvbmU="
        await exchange.upgrade(headers)
        seen.ended = "upgraded"

    async def converse(self, request: Request, exchange: Exchange) -> None:
        """From the upgrade to the connection's end."""
        socket = WebSocket(exchange)
        with self._ledger.socket():
            if self._model.profile.ws_upgrade is Upgrade.DIE:
                await socket.receive()
                await exchange.close()
                return
            session = Session(socket, request, self._model, self._ledger, self._archive)
            self.sessions.add(session)
            try:
                await session.run()
            except* NotWebSocket:
                await socket.close(1002)
            finally:
                self.sessions.discard(session)

    async def expire(self) -> None:
        async with asyncio.TaskGroup() as group:
            for session in self.sessions:
                group.create_task(session.expire())

    async def push(self, text: str, close: int) -> None:
        async with asyncio.TaskGroup() as group:
            for session in self.sessions:
                group.create_task(session.tell(text.encode(), close))
