"""The HTTP line to one endpoint: its persistent client, opened once, and the look that keeps it warm."""

from __future__ import annotations

import asyncio

import httpx

from apps.llm import transport
from apps.llm.deadlines import Deadlines
from apps.llm.errors import AuthRefused
from apps.llm.spec import EndpointSpec
from apps.telemetry import instruments


class HttpLine:
    """Lives on the event loop; connects on first use."""

    def __init__(self, spec: EndpointSpec, deadlines: Deadlines) -> None:
        self.connections_opened = 0
        self._spec = spec
        self._deadlines = deadlines
        self._opening = asyncio.Lock()
        self._client: httpx.AsyncClient | None = None

    async def client(self) -> httpx.AsyncClient:
        """The one client of this endpoint."""
        async with self._opening:
            if self._client is None:
                self._client = await transport.open_client(
                    self._spec, self._deadlines.connect_s, self._connection_opened
                )
            return self._client

    async def warm(self) -> None:
        """Makes sure of one connection with TLS finished, by asking for the list of models. Raises `LlmError`.

        What the list says, or that there is none, does not matter; only 401 does.
        """
        client = await self.client()
        due = asyncio.get_running_loop().time() + self._deadlines.connect_s + self._deadlines.connect_s
        request = client.build_request(
            "GET", self._spec.url("models"), extensions={"trace": self._trace_http2}
        )
        response = await transport.send(client, request, due)
        try:
            await transport.read_out(response, due)
        finally:
            await transport.close(response, self._deadlines.close_s)
        if response.status_code == httpx.codes.UNAUTHORIZED:
            raise AuthRefused("the key is refused")

    async def close(self) -> None:
        """Closes all connections, also of answers that still run."""
        if self._client is not None:
            await self._client.aclose()

    def _connection_opened(self) -> None:
        self.connections_opened += 1
        instruments.llm_connections_opened.labels(self._spec.quirks.name).inc()

    async def _trace_http2(self, event: str, _: object) -> None:
        if event == "connection.connect_tcp.complete":
            self._connection_opened()
