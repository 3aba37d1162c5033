"""The shop's API over HTTP: one client for the loop, one for the worker. No database, no Redis."""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

import aiohttp
import httpx
import msgspec
from httpx_aiohttp import AiohttpTransport

from apps.customers.shop import (
    REPLY_LIMIT_BYTES,
    ShopGarbled,
    ShopRefused,
    ShopUnreachable,
    parse_orders,
    parse_profile,
)
from apps.engine.deadlines import within
from apps.engine.types import Order, Profile

WORKER_TIMEOUT_S: Final = 5.0
# A connection kept for the next question; httpx's own default lets it go after 5 s.
KEEPALIVE_S: Final = 600
CONNECTIONS: Final = 100
# Identity: the limit on the reply's size must count the bytes that arrive, not what they inflate to.
_HEADERS: Final = {"Accept": "application/json", "Accept-Encoding": "identity"}

# The transport passes on what it does not translate, such as a malformed status line.
_HttpError: Final = (httpx.HTTPError, httpx.InvalidURL, aiohttp.ClientError)

# Building one blocks for some 30 ms: once a process, before the port listens.
_tls = ssl.create_default_context()


@dataclass(frozen=True, slots=True)
class ShopAccount:
    """Where and as whom to ask: the site's profile source and the customer's id there."""

    base_url: str
    api_key: str
    external_id: str

    def __repr__(self) -> str:
        return f"ShopAccount({self.base_url!r}, {self.external_id!r})"

    @property
    def profile_url(self) -> str:
        return f"{self.base_url.rstrip('/')}/customers/{quote(self.external_id, safe='')}"

    @property
    def orders_url(self) -> str:
        return f"{self.profile_url}/orders"

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.api_key}"} if self.api_key else {}


class ShopData(msgspec.Struct, frozen=True, array_like=True):
    """What the shop tells of a customer; `profile` is None when it does not know them."""

    profile: Profile | None
    orders: tuple[Order, ...] = ()


class ShopClient:
    """The web process's client: opened at start, its connections kept between questions."""

    def __init__(self) -> None:
        self._http: httpx.AsyncClient | None = None

    async def open(self) -> None:
        """Call it on the loop that will ask. Connects to nobody yet: see `warm`."""
        limits = httpx.Limits(
            max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS, keepalive_expiry=KEEPALIVE_S
        )
        self._http = httpx.AsyncClient(
            transport=AiohttpTransport(verify=_tls, limits=limits),
            headers=_HEADERS,
            timeout=httpx.Timeout(None),
        )

    async def close(self) -> None:
        if self._http is not None:
            await self._http.aclose()
            self._http = None

    async def warm(self, base_url: str, deadline_s: float) -> bool:
        """Opens a connection to the shop so that the first question finds one. Whether it answered at all."""
        try:
            async with asyncio.timeout(deadline_s):
                await self._reply(base_url, {})
        except (TimeoutError, *_HttpError, ShopGarbled):
            return False
        return True

    async def fetch(self, account: ShopAccount, deadline_s: float) -> ShopData:
        """Profile and orders, asked for together. Raises `ShopError`."""
        try:
            async with within(deadline_s), asyncio.TaskGroup() as both:
                profile = both.create_task(self._reply(account.profile_url, account.headers))
                orders = both.create_task(self._reply(account.orders_url, account.headers))
        except TimeoutError as error:
            raise ShopUnreachable("no answer in time") from error
        except ExceptionGroup as group:
            raise _translated(group.exceptions[0]) from group
        return _read(account, profile.result(), orders.result())

    async def _reply(self, url: str, headers: dict[str, str]) -> tuple[int, bytes]:
        if self._http is None:
            raise ShopUnreachable("the client is not open")
        async with self._http.stream("GET", url, headers=headers) as response:
            _check_encoding(response)
            body = bytearray()
            async for piece in response.aiter_raw():
                _extend(body, piece)
            return response.status_code, bytes(body)


def fetch_sync(account: ShopAccount, timeout_s: float = WORKER_TIMEOUT_S) -> ShopData:
    """The same in the worker, over the process's pool. Raises `ShopError`."""
    try:
        profile = _reply_sync(account.profile_url, account.headers, timeout_s)
        return _read(account, profile, _reply_sync(account.orders_url, account.headers, timeout_s))
    except _HttpError as error:
        raise _translated(error) from error


# httpx clients are safe between threads; a forked worker process opens its own connections on first use.
_worker = httpx.Client(
    verify=_tls,
    headers=_HEADERS,
    trust_env=False,
    limits=httpx.Limits(max_connections=CONNECTIONS, keepalive_expiry=KEEPALIVE_S),
)


def _reply_sync(url: str, headers: dict[str, str], timeout_s: float) -> tuple[int, bytes]:
    with _worker.stream("GET", url, headers=headers, timeout=timeout_s) as response:
        _check_encoding(response)
        body = bytearray()
        for piece in response.iter_raw():
            _extend(body, piece)
        return response.status_code, bytes(body)


def _check_encoding(response: httpx.Response) -> None:
    if response.headers.get("Content-Encoding", "identity") != "identity":
        raise ShopGarbled("a compressed answer that was not asked for")


def _extend(body: bytearray, piece: bytes) -> None:
    body += piece
    if len(body) > REPLY_LIMIT_BYTES:
        raise ShopGarbled(f"more than {REPLY_LIMIT_BYTES} bytes")


def _read(account: ShopAccount, profile: tuple[int, bytes], orders: tuple[int, bytes]) -> ShopData:
    for status, _ in (profile, orders):
        _check_status(status)
    if profile[0] == httpx.codes.NOT_FOUND:
        return ShopData(profile=None)
    known_orders = parse_orders(orders[1]) if orders[0] != httpx.codes.NOT_FOUND else ()
    return ShopData(parse_profile(profile[1], account.external_id), known_orders)


def _check_status(status: int) -> None:
    if status in (httpx.codes.OK, httpx.codes.NOT_FOUND):
        return
    if status in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
        raise ShopRefused(f"HTTP {status}")
    if status >= httpx.codes.INTERNAL_SERVER_ERROR or status == httpx.codes.TOO_MANY_REQUESTS:
        raise ShopUnreachable(f"HTTP {status}")
    raise ShopGarbled(f"HTTP {status}")


def _translated(error: BaseException) -> BaseException:
    if isinstance(error, _HttpError):
        return ShopUnreachable(str(error) or type(error).__name__)
    return error
