"""HTTP clients towards model servers, and the translation of their failures. See decision 0002 for the choice."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncGenerator, Iterator
from functools import cache
from typing import Protocol

import aiohttp
import httpx
from django.conf import settings
from httpx_aiohttp import AiohttpTransport

from apps.engine.deadlines import Until
from apps.llm import waits
from apps.llm.errors import BrokenStream, ConnectFailed, LlmError, Stage, Stalled, TlsFailed
from apps.llm.resumption import ResumingTls
from apps.llm.spec import EndpointSpec

# httpx's own default of 5 s would close the warm connection before the next question.
KEEPALIVE_S = 600.0
READS_ALL = "chatsvc.reads_all"  # extension of a response: a read takes all that has come, up to `READ_BYTES`
READ_BYTES = 16 * 1024  # what httpx-aiohttp reads at most
NAMES_LIVE_S = 60  # a look-up is used again for so long
SPARE_CONNECTIONS = 4  # warm-ups and tests run beside the answers
# What a client can raise on its way: httpx's errors, aiohttp's that its transport does not map, the system's.
CLIENT_ERRORS = (
    httpx.HTTPError,
    httpx.StreamError,
    httpx.InvalidURL,
    aiohttp.ClientError,
    OSError,
    ValueError,
)


@cache
def _tls_context(http2: bool, ca_file: str) -> ssl.SSLContext:
    """One a protocol: httpx writes its ALPN list into the context it is given, and aiohttp must not offer h2."""
    context = httpx.create_ssl_context()
    context.sslobject_class = ResumingTls
    if ca_file:
        context.load_verify_locations(ca_file)
    context.set_alpn_protocols(["h2", "http/1.1"] if http2 else ["http/1.1"])
    return context


async def tls_context(*, http2: bool = False) -> ssl.SSLContext:
    """The shared context. Building one blocks for 29 ms, so that happens once and in a thread."""
    return await asyncio.to_thread(_tls_context, http2, settings.ENVIRONMENT.llm_ca_file)


class Census(Protocol):
    """Who counts an endpoint's connections."""

    def opened(self) -> None:
        """A connection over HTTP/1.1 is complete, with TLS."""

    def changed(self, by: int) -> None:
        """A socket was made, or closed."""


async def open_client(spec: EndpointSpec, connect_s: float, census: Census) -> httpx.AsyncClient:
    """A client for one endpoint; whoever opens it closes it. Of HTTP/2 the census hears nothing."""
    context = await tls_context(http2=spec.http2)
    count = spec.max_concurrent + SPARE_CONNECTIONS
    # The limits must go to the transport: those of the client reach only httpx's own.
    limits = httpx.Limits(
        max_connections=count, max_keepalive_connections=count, keepalive_expiry=KEEPALIVE_S
    )
    transport: httpx.AsyncBaseTransport
    if spec.http2:
        transport = httpx.AsyncHTTPTransport(verify=context, http1=True, http2=True, limits=limits)
    else:
        transport = _JoiningTransport(client=lambda: _session(context, count, census))
    authorization = {"authorization": f"Bearer {spec.api_key}"} if spec.api_key else {}
    # Only connecting has a time-out here. The others would be re-armed by keep-alive comments.
    timeout = httpx.Timeout(None, connect=connect_s)
    return httpx.AsyncClient(transport=transport, headers=authorization, timeout=timeout)


class _JoiningTransport(AiohttpTransport):
    """Gives whatever has come in one read, up to `READ_BYTES`, and says so. httpx itself gives it frame by frame."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await super().handle_async_request(request)
        response.extensions[READS_ALL] = True
        return response


def _session(context: ssl.SSLContext, count: int, census: Census) -> aiohttp.ClientSession:
    trace = aiohttp.TraceConfig()

    async def count_connection(*_: object) -> None:
        census.opened()

    trace.on_connection_create_end.append(count_connection)
    connector = aiohttp.TCPConnector(
        ssl=context,
        limit=count,
        keepalive_timeout=KEEPALIVE_S,
        ttl_dns_cache=NAMES_LIVE_S,
        socket_factory=lambda address: _CountedSocket(census, *address[:3]),
    )
    return aiohttp.ClientSession(
        connector=connector, trace_configs=[trace, waits.aiohttp_trace()], cookie_jar=aiohttp.DummyCookieJar()
    )


class _CountedSocket(socket.socket):
    """Tells when it is made and when it is closed, whoever closes it."""

    def __init__(self, census: Census, family: int, kind: int, protocol: int) -> None:
        super().__init__(family, kind, protocol)
        self._census: Census | None = census
        census.changed(+1)

    def close(self) -> None:
        census, self._census = self._census, None
        if census is not None:
            census.changed(-1)
        super().close()


async def send(client: httpx.AsyncClient, request: httpx.Request, due: float) -> httpx.Response:
    """Sends and waits for the response's head until `due` (loop time). Raises `LlmError`."""
    request.extensions.setdefault("trace", waits.httpcore_trace)
    try:
        async with Until(due):
            return await client.send(request, stream=True)
    except TimeoutError as error:
        raise Stalled(Stage.FIRST_DATA) from error
    except CLIENT_ERRORS as error:
        raise _failure_to_send(error) from error


async def read(chunks: AsyncGenerator[bytes, None], due: float, stage: Stage) -> bytes | None:
    """The next bytes of a body, None at its end. Raises `Stalled` at `due` and `BrokenStream`."""
    try:
        async with Until(due):
            return await anext(chunks, None)
    except TimeoutError as error:
        raise Stalled(stage) from error
    except CLIENT_ERRORS as error:
        raise BrokenStream(f"cut: {type(error).__name__}") from error


async def read_out(response: httpx.Response, due: float) -> None:
    """Reads a body to its end and drops it. Raises `LlmError`."""
    try:
        async with Until(due):
            async for _ in response.aiter_raw():
                pass
    except TimeoutError as error:
        raise Stalled(Stage.BETWEEN_DATA) from error
    except CLIENT_ERRORS as error:
        raise BrokenStream(f"cut: {type(error).__name__}") from error


async def close(response: httpx.Response, close_s: float) -> None:
    """Frees the connection, or closes it when the body was not read to its end. Not interrupted by cancellation."""
    await asyncio.shield(_close(response, close_s))


async def _close(response: httpx.Response, close_s: float) -> None:
    try:
        async with asyncio.timeout(close_s):
            await response.aclose()
    except CLIENT_ERRORS:
        return  # the peer was faster: the connection is gone all the same


def _failure_to_send(error: Exception) -> LlmError:
    """By the causes, because httpx-aiohttp calls a refused connection a `ConnectTimeout`."""
    causes = list(_causes(error))
    if any(isinstance(cause, ssl.SSLError | ssl.CertificateError) for cause in causes):
        return TlsFailed(str(causes[-1]) or "the TLS handshake failed")
    if any(isinstance(cause, TimeoutError) for cause in causes):
        return Stalled(Stage.CONNECT)
    if any(isinstance(cause, aiohttp.ClientConnectorError | httpx.ConnectError) for cause in causes):
        return ConnectFailed(str(error) or "no connection")
    if any(isinstance(cause, httpx.UnsupportedProtocol | httpx.InvalidURL | ValueError) for cause in causes):
        return ConnectFailed(f"not an address: {error}")
    return BrokenStream(f"cut before an answer: {type(causes[-1]).__name__}", began=False)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
