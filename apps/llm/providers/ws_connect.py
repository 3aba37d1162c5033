"""Opening a WebSocket to a model server, and what a refusal means. See decision 0015 for the client."""

from __future__ import annotations

import asyncio
import ssl

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus, WebSocketException

from apps.llm import transport
from apps.llm.errors import AuthRefused, ConnectFailed, LlmError, Stage, Stalled, TlsFailed, UpgradeRefused
from apps.llm.providers.http_stream import retry_after_s
from apps.llm.spec import EndpointSpec

# The last event of a response repeats all of it, the prompt's policy and tools included.
LARGEST_EVENT_BYTES = 8 * 1024 * 1024
CLOSE_S = 1.0


class _Connect(connect):
    """Follows no redirect: it would take the key to whoever it names."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        return exc


async def open_socket(spec: EndpointSpec, connect_s: float) -> ClientConnection:
    """A connection to `…/responses`. Raises `UpgradeRefused` where HTTP may still do, else another `LlmError`.

    The library pings an idle connection every 20 s, which is how a dead one is found before it is needed.
    """
    url = spec.url("responses").replace("http", "ws", 1)
    secure = await transport.tls_context() if url.startswith("wss:") else None
    headers = {"authorization": f"Bearer {spec.api_key}"} if spec.api_key else {}
    try:
        async with asyncio.timeout(connect_s):
            return await _Connect(
                url, ssl=secure, additional_headers=headers, compression=None, proxy=None,
                max_size=LARGEST_EVENT_BYTES, open_timeout=None, close_timeout=CLOSE_S,
            )  # fmt: skip
    except TimeoutError as error:
        raise Stalled(Stage.CONNECT) from error
    except (WebSocketException, OSError, ValueError) as error:
        raise _failure_to_open(error) from error


def _failure_to_open(error: Exception) -> LlmError:
    if isinstance(error, InvalidStatus):
        response = error.response
        if response.status_code == 401:
            return AuthRefused("the key is refused")
        wait_s = retry_after_s(response.headers.get("retry-after", ""))
        return UpgradeRefused(f"no WebSocket: HTTP {response.status_code}", wait_s)
    if isinstance(error, WebSocketException):
        return UpgradeRefused(f"no WebSocket: {error}")
    if isinstance(error, ssl.SSLError | ssl.CertificateError):
        return TlsFailed(str(error) or "the TLS handshake failed")
    return ConnectFailed(str(error) or "no connection")
