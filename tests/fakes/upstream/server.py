"""The model server: routes, and what a test or a bench may order of it."""

from __future__ import annotations

import asyncio
import random

import msgspec

from tests.fakes.transport.exchange import Exchange, Request, respond
from tests.fakes.transport.listener import Certificates, Listener, Network, Serving
from tests.fakes.upstream import chat
from tests.fakes.upstream.answer import Answer, Order
from tests.fakes.upstream.channel import Channel, StreamChannel, WholeChannel
from tests.fakes.upstream.control import (
    Accept,
    Always,
    Break,
    Command,
    EndConnections,
    Expire,
    Forget,
    Next,
    Push,
    Refuse,
    Release,
    SetProfile,
    Wait,
)
from tests.fakes.upstream.ledger import Counts, Ledger, Seen
from tests.fakes.upstream.model import Model, Refused
from tests.fakes.upstream.profile import INSTANT, Profile
from tests.fakes.upstream.responses import http_error
from tests.fakes.upstream.responses_api import ResponsesApi


class UpstreamServer(Serving):
    """`obey` is called on its loop."""

    def __init__(
        self, profile: Profile = INSTANT, *, certificates: Certificates | None = None, port: int = 0
    ) -> None:
        self.ledger = Ledger()
        super().__init__(Listener(self.serve, self.ledger, port=port, certificates=certificates))
        self._model = Model(profile)
        self._responses = ResponsesApi(self._model, self.ledger)
        self._set_profile(profile)

    async def obey(self, command: Command) -> Counts:
        """Raises `TimeoutError`."""
        match command:
            case Break() | EndConnections() | Refuse() | Accept() | Push() | Expire():
                await self._obey_connections(command)
            case Next():
                self._model.expect(command.plans)
            case Always():
                self._model.always = command.plan
            case SetProfile():
                self._set_profile(command.profile)
            case Release():
                self._model.release()
            case Forget():
                self._forget()
            case Wait():
                await self._wait(command)
        return msgspec.structs.replace(self.ledger.counts)

    async def _obey_connections(
        self, command: Break | EndConnections | Refuse | Accept | Push | Expire
    ) -> None:
        match command:
            case Break():
                self.listener.faults.extend(command.faults)
            case EndConnections():
                await self.listener.leave(command.how, idle_only=command.idle_only)
            case Refuse():
                self.listener.refuse()
            case Accept():
                await self.listener.accept()
            case Push():
                await self._responses.push(command.text, command.close)
            case Expire():
                await self._responses.expire()

    async def serve(self, request: Request, exchange: Exchange) -> None:
        """The listener's application."""
        with self.ledger.watching(request, exchange) as seen:
            await asyncio.sleep(self._gateway_s(request))
            try:
                await self._route(request, exchange, seen)
            except Refused as refused:
                seen.ended = f"refused {refused.status}"
                body = http_error(refused.code, str(refused), refused.param, "invalid_request_error")
                await respond(exchange, refused.status, msgspec.json.encode(body))
        if seen.ended == "upgraded":
            await self._responses.converse(request, exchange)

    async def _route(self, request: Request, exchange: Exchange, seen: Seen) -> None:
        self._model.admit(request)
        match (request.method, request.path.partition("?")[0]):
            case ("GET", "/v1/models"):
                await self._models(exchange)
            case ("POST", "/v1/chat/completions"):
                await self._chat(request, exchange, seen)
            case ("POST", "/v1/responses"):
                await self._responses.post(request, exchange, seen)
            case ("GET", "/v1/responses"):
                await self._responses.connect(request, exchange, seen)
            case _:
                raise Refused(404, "unknown_url", f"Unknown request URL: {request.path}")

    async def _models(self, exchange: Exchange) -> None:
        names = self._model.profile.models or ("fake-model",)
        await respond(exchange, 200, msgspec.json.encode(chat.models(names)))

    async def _chat(self, request: Request, exchange: Exchange, seen: Seen) -> None:
        model = self._model
        wanted = self._parse_chat(request)
        rng = random.Random(f"{model.profile.seed}/{seen.serial}")
        rendered = wanted.rendered()
        plan = model.take_plan(seen.body)
        order = Order(
            prompt=wanted.prompt(), plan=plan, profile=model.profile, rng=rng, stream=wanted.stream,
            thinking_s=model.begin(rendered, wanted.prompt_cache_key, plan, seen, rng),
            cached_tokens=seen.cached_tokens, prompt_tokens=seen.prompt_tokens,
        )  # fmt: skip
        shape = chat.ChatShape(f"chatcmpl-{rng.getrandbits(96):024x}", wanted, order.dialect)
        channel: Channel = (StreamChannel if wanted.stream else WholeChannel)(exchange, order.dialect, rng)
        answer = Answer(order, shape, channel, self.ledger, seen, model.released)
        await answer.give(computed=lambda: model.remember(rendered, wanted.prompt_cache_key))
        if not seen.ended:
            model.remember(wanted.continued(answer.reply), wanted.prompt_cache_key)

    def _parse_chat(self, request: Request) -> chat.ChatRequest:
        try:
            wanted = msgspec.json.decode(request.body, type=chat.ChatRequest)
        except msgspec.DecodeError as error:
            raise Refused(400, "invalid_request", str(error)) from error
        self._model.serves(wanted.model)
        if not wanted.messages:
            raise Refused(400, "invalid_request", "[] is too short - 'messages'")
        return wanted

    def _gateway_s(self, request: Request) -> float:
        profile = self._model.profile
        return profile.gateway_s + (profile.auth_s if request.number_on_connection == 1 else 0.0)

    def _set_profile(self, profile: Profile) -> None:
        self._model.profile = profile
        self.listener.network = Network(
            rtt_s=profile.rtt_s,
            # TCP's own handshake is a round trip that the kernel does not take on one machine.
            setup_s=profile.setup_s + profile.rtt_s,
            idle_close_s=profile.idle_close_s,
            max_streams=profile.max_streams,
        )

    def _forget(self) -> None:
        self._model.forget()
        self._responses.forget()
        self.listener.faults.clear()
        self.ledger.forget()

    async def _wait(self, command: Wait) -> None:
        async with asyncio.timeout(command.timeout_s):
            while not command.met(self.ledger.counts):
                await self.ledger.next_change()
