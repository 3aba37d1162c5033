"""The shop's two end-points, its key, and its bad days."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from enum import StrEnum
from urllib.parse import unquote

import msgspec

from tests.fakes.shop.catalog import Customer
from tests.fakes.transport.exchange import Exchange, Request, respond
from tests.fakes.transport.listener import Listener, Serving

CONTROL = "/_control/"


class Mood(StrEnum):
    """How the shop answers."""

    GOOD = "good"
    SLOW = "slow"  # after `seconds`
    STALL = "stall"  # not until released
    ERROR = "error"  # 500
    UNAUTHORIZED = "unauthorized"  # 401 whatever the key
    GARBLE = "garble"  # 200, but the JSON breaks off
    RESET = "reset"  # TCP RST instead of an answer


class Behave(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """From the next request on, for `times` requests (0: until told otherwise) whose path contains `path`."""

    mood: Mood = Mood.GOOD
    seconds: float = 0.0
    times: int = 0
    path: str = ""


class ShopCounts(msgspec.Struct, kw_only=True):
    """Since the start. `paths` holds every request's path in order."""

    connections_opened: int = 0
    connections_open: int = 0
    requests: int = 0
    stalled: int = 0  # standing at a stall right now
    unauthorized: int = 0
    crashes: int = 0
    paths: list[str] = []


class ShopServer(Serving):
    """Its mood and its counts are read on its loop."""

    def __init__(self, key: str, customers: Mapping[str, Customer], *, port: int = 0) -> None:
        self.counts = ShopCounts()
        super().__init__(Listener(self.serve, self, port=port))
        self._key = key
        self._customers = customers
        self._behaviour = Behave()
        self._release = asyncio.Event()
        self._changed = asyncio.Event()

    async def behave(self, behaviour: Behave) -> None:
        self._behaviour = behaviour

    async def release(self) -> None:
        """Lets every request that stands at a stall go on, and has a good day from now on."""
        self._behaviour = Behave()
        self._release.set()
        self._release = asyncio.Event()

    async def wait(self, met: Callable[[ShopCounts], bool], timeout_s: float) -> None:
        """Raises `TimeoutError`."""
        async with asyncio.timeout(timeout_s):
            while not met(self.counts):
                self._changed.clear()
                await self._changed.wait()

    async def serve(self, request: Request, exchange: Exchange) -> None:
        """The listener's application."""
        if request.path.startswith(CONTROL):
            await self._control(request, exchange)
            return
        self.counts.requests += 1
        self.counts.paths.append(request.path)
        self._changed.set()
        mood = await self._suffer(request)
        if mood is Mood.RESET:
            await exchange.reset()
        elif mood is Mood.ERROR:
            await _say(exchange, 500, {"detail": "Internal error."})
        elif mood is Mood.UNAUTHORIZED or request.headers.get("authorization") != f"Bearer {self._key}":
            self.counts.unauthorized += 1
            await _say(exchange, 401, {"detail": "Unknown key."})
        else:
            await self._look_up(request, exchange, garble=mood is Mood.GARBLE)

    def connection_opened(self) -> int:
        self.counts.connections_opened += 1
        self.counts.connections_open += 1
        return self.counts.connections_opened

    def connection_closed(self) -> None:
        self.counts.connections_open -= 1
        self._changed.set()

    def handshake_finished(self, *, resumed: bool) -> None:
        """Never: the shop speaks no TLS."""

    def handshake_failed(self) -> None:
        """Never: the shop speaks no TLS."""

    def crashed(self, error: BaseException) -> None:
        self.counts.crashes += 1

    async def _suffer(self, request: Request) -> Mood:
        """Waits as the mood wants and tells which it is."""
        behaviour = self._behaviour
        if behaviour.path not in request.path:
            return Mood.GOOD
        if behaviour.times:
            left = behaviour.times - 1
            self._behaviour = msgspec.structs.replace(behaviour, times=left) if left else Behave()
        if behaviour.mood is Mood.SLOW:
            await asyncio.sleep(behaviour.seconds)
        if behaviour.mood is Mood.STALL:
            await self._stall()
        return behaviour.mood

    async def _stall(self) -> None:
        self.counts.stalled += 1
        self._changed.set()
        try:
            await self._release.wait()
        finally:
            self.counts.stalled -= 1
            self._changed.set()

    async def _look_up(self, request: Request, exchange: Exchange, *, garble: bool) -> None:
        parts = [unquote(part) for part in request.path.partition("?")[0].strip("/").split("/")]
        customer = self._customers.get(parts[1]) if len(parts) > 1 and parts[0] == "customers" else None
        if request.method != "GET" or customer is None or parts[2:] not in ([], ["orders"]):
            await _say(exchange, 404, {"detail": "Not found."})
            return
        await _say(exchange, 200, _orders(customer) if parts[2:] else _profile(customer), garble=garble)

    async def _control(self, request: Request, exchange: Exchange) -> None:
        """`POST /_control/behave`, `POST /_control/release`, `GET /_control/counts`."""
        try:
            if request.path == CONTROL + "behave":
                await self.behave(msgspec.json.decode(request.body, type=Behave))
            elif request.path == CONTROL + "release":
                await self.release()
        except msgspec.DecodeError as error:
            await _say(exchange, 400, {"detail": str(error)})
            return
        await respond(exchange, 200, msgspec.json.encode(self.counts))


def _profile(customer: Customer) -> dict[str, object]:
    shown: dict[str, object] = msgspec.to_builtins(customer)
    del shown["orders"]
    return shown


def _orders(customer: Customer) -> dict[str, object]:
    return {"orders": msgspec.to_builtins(customer.orders)}


async def _say(exchange: Exchange, status: int, value: dict[str, object], *, garble: bool = False) -> None:
    body = msgspec.json.encode(value)
    headers = {"www-authenticate": "Bearer"} if status == 401 else {}
    await respond(exchange, status, body[: len(body) // 2] if garble else body, headers=headers)
