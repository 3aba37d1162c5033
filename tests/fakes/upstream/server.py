"""The model server: routes, refusals of its own, and what it keeps between requests."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import msgspec

from tests.fakes.transport.exchange import Exchange, Request, respond
from tests.fakes.transport.listener import Certificates, Listener, Network
from tests.fakes.upstream import chat
from tests.fakes.upstream.answer import Answer, Order
from tests.fakes.upstream.cache import PrefixCache, count_tokens
from tests.fakes.upstream.control import (
    Accept,
    Always,
    Break,
    Command,
    EndConnections,
    Forget,
    Next,
    Refuse,
    Release,
    SetProfile,
    Wait,
)
from tests.fakes.upstream.faults import Plan
from tests.fakes.upstream.ledger import Counts, Ledger, Seen
from tests.fakes.upstream.profile import INSTANT, Profile


class Refused(Exception):
    """A request this server would not answer on a good day either."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.body = chat.error(message, code, "invalid_request_error")


class UpstreamServer:
    """Everything lives on one loop; `obey` is called there."""

    def __init__(
        self, profile: Profile = INSTANT, *, certificates: Certificates | None = None, port: int = 0
    ) -> None:
        self.ledger = Ledger()
        self.listener = Listener(self.serve, self.ledger, port=port, certificates=certificates)
        self._cache = PrefixCache()
        self._plans: list[Plan] = []
        self._always: Plan | None = None
        self._release = asyncio.Event()
        self._stop = asyncio.Event()
        self._last_used = float("-inf")
        self._set_profile(profile)

    async def run(self, ready: Callable[[], None]) -> None:
        """Serves until `stop`."""
        async with asyncio.TaskGroup() as group:
            await self.listener.open(group)
            ready()
            await self._stop.wait()
            self.listener.stop()

    def stop(self) -> None:
        self._stop.set()

    async def obey(self, command: Command) -> Counts:
        """Raises `TimeoutError`."""
        match command:
            case Break() | EndConnections() | Refuse() | Accept():
                await self._obey_connections(command)
            case Next():
                self._plans.extend(command.plans)
            case Always():
                self._always = command.plan
            case SetProfile():
                self._set_profile(command.profile)
            case Release():
                self._release.set()
                self._release = asyncio.Event()
            case Forget():
                self._forget()
            case Wait():
                await self._wait(command)
        return msgspec.structs.replace(self.ledger.counts)

    async def _obey_connections(self, command: Break | EndConnections | Refuse | Accept) -> None:
        match command:
            case Break():
                self.listener.faults.extend(command.faults)
            case EndConnections():
                await self.listener.leave(command.how, idle_only=command.idle_only)
            case Refuse():
                self.listener.refuse()
            case Accept():
                await self.listener.accept()

    # ------------------------------------------------------------ requests

    async def serve(self, request: Request, exchange: Exchange) -> None:
        """The listener's application."""
        with self.ledger.watching(request, exchange) as seen:
            await asyncio.sleep(self._gateway_s(request))
            try:
                await self._route(request, exchange, seen)
            except Refused as refused:
                seen.ended = f"refused {refused.status}"
                await respond(exchange, refused.status, msgspec.json.encode(refused.body))

    async def _route(self, request: Request, exchange: Exchange, seen: Seen) -> None:
        self._admit(request)
        match (request.method, request.path.partition("?")[0]):
            case ("GET", "/v1/models"):
                await self._models(exchange)
            case ("POST", "/v1/chat/completions"):
                await self._chat(request, exchange, seen)
            case _:
                raise Refused(404, "unknown_url", f"Unknown request URL: {request.path}")

    async def _models(self, exchange: Exchange) -> None:
        names = self.profile.models or ("fake-model",)
        await respond(exchange, 200, msgspec.json.encode(chat.models(names)))

    async def _chat(self, request: Request, exchange: Exchange, seen: Seen) -> None:
        wanted = self._parse(request)
        profile = self.profile
        rng = random.Random(f"{profile.seed}/{seen.serial}")
        rendered = wanted.rendered()
        now = asyncio.get_running_loop().time()
        seen.prompt_tokens = count_tokens(rendered)
        seen.cached_tokens = self._cache.cached_tokens(rendered, wanted.prompt_cache_key, profile, now)
        plan = self._take_plan(request)
        order = Order(
            request=wanted,
            plan=plan,
            profile=profile,
            rng=rng,
            thinking_s=self._thinking_s(plan, profile, rng, seen, now),
            cached_tokens=seen.cached_tokens,
            prompt_tokens=seen.prompt_tokens,
        )
        self._last_used = now

        def remember(computed: bytes) -> None:
            when = asyncio.get_running_loop().time()
            self._cache.remember(computed, wanted.prompt_cache_key, profile, when)

        answer = Answer(order, exchange, self.ledger, seen, self._released)
        await answer.give(computed=lambda: remember(rendered))
        if not seen.ended:
            remember(wanted.continued(answer.reply))

    def _admit(self, request: Request) -> None:
        scheme, _, key = request.headers.get("authorization", "").partition(" ")
        if key in self.profile.forbidden_keys:
            raise Refused(403, "permission_denied", "This key may not use this model.")
        if self.profile.api_keys and (scheme != "Bearer" or key not in self.profile.api_keys):
            raise Refused(401, "invalid_api_key", "Incorrect API key provided.")

    def _parse(self, request: Request) -> chat.ChatRequest:
        try:
            wanted = msgspec.json.decode(request.body, type=chat.ChatRequest)
        except msgspec.DecodeError as error:
            raise Refused(400, "invalid_request", str(error)) from error
        if self.profile.models and wanted.model not in self.profile.models:
            raise Refused(404, "model_not_found", f"The model `{wanted.model}` does not exist.")
        if not wanted.messages:
            raise Refused(400, "invalid_request", "[] is too short - 'messages'")
        return wanted

    def _take_plan(self, request: Request) -> Plan:
        body = request.body.decode(errors="replace")
        for at, plan in enumerate(self._plans):
            if plan.match in body:
                left = plan.times - 1
                self._plans[at : at + 1] = [msgspec.structs.replace(plan, times=left)] if left > 0 else []
                return plan
        return self._always if self._always is not None and self._always.match in body else Plan()

    # ------------------------------------------------------------ time

    def _gateway_s(self, request: Request) -> float:
        first = request.number_on_connection == 1
        return self.profile.gateway_s + (self.profile.auth_s if first else 0.0)

    def _thinking_s(self, plan: Plan, profile: Profile, rng: random.Random, seen: Seen, now: float) -> float:
        first = profile.first_token_s
        if profile.first_token_high_s:
            first = rng.triangular(profile.first_token_low_s, profile.first_token_high_s, first)
        if plan.first_token_s is not None:
            first = plan.first_token_s
        asleep = now - self._last_used > profile.unload_after_s
        uncached = seen.prompt_tokens - seen.cached_tokens
        return first + uncached * profile.prefill_s_per_token + (profile.load_s if asleep else 0.0)

    async def _released(self) -> None:
        await self._release.wait()

    # ------------------------------------------------------------ orders

    def _set_profile(self, profile: Profile) -> None:
        self.profile = profile
        self.listener.network = Network(
            rtt_s=profile.rtt_s,
            # TCP's own handshake is a round trip that the kernel does not take on one machine.
            setup_s=profile.setup_s + profile.rtt_s,
            idle_close_s=profile.idle_close_s,
            max_streams=profile.max_streams,
        )

    def _forget(self) -> None:
        self._plans.clear()
        self._always = None
        self._cache.clear()
        self.listener.faults.clear()
        self.ledger.forget()

    async def _wait(self, command: Wait) -> None:
        async with asyncio.timeout(command.timeout_s):
            while not command.met(self.ledger.counts):
                await self.ledger.next_change()
