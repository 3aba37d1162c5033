"""The HTTP line to one endpoint: its persistent client, opened once, and the look that keeps it warm."""

from __future__ import annotations

import asyncio

import httpx
import msgspec

from apps.llm import transport
from apps.llm.deadlines import Deadlines
from apps.llm.errors import AuthRefused
from apps.llm.spec import EndpointSpec
from apps.telemetry import instruments

# Weights come from a disk: a minute is not much.
LOAD_S = 120.0
RESIDE_AGAIN_S = 3_600.0


class HttpLine:
    """Lives on the event loop; connects on first use."""

    def __init__(self, spec: EndpointSpec, deadlines: Deadlines) -> None:
        self.connections_opened = 0
        self.connections_open = 0  # over HTTP/1.1; httpx does not tell those of HTTP/2
        self.wanted = 1  # connections to keep open beside those that are busy; of HTTP/2, in all
        self._spec = spec
        self._deadlines = deadlines
        self._opening = asyncio.Lock()
        self._clients: list[httpx.AsyncClient] = []
        self._turn = 0
        self._resides_until = 0.0

    async def client(self) -> httpx.AsyncClient:
        """A client of this endpoint: the only one, or of HTTP/2 each in turn, because a client has one connection."""
        async with self._opening:
            while len(self._clients) < (self.wanted if self._spec.http2 else 1):
                opened = await transport.open_client(self._spec, self._deadlines.connect_s, self)
                self._clients.append(opened)
            self._turn += 1
            return self._clients[self._turn % len(self._clients)]

    async def warm(self) -> None:
        """Makes sure of `wanted` connections with TLS finished, by asking for the list of models. Raises `LlmError`.

        They are asked at the same time, so that each takes a connection of its own. What the list says, or that there
        is none, does not matter; only 401 does.
        """
        looks = await asyncio.gather(*(self._look() for _ in range(self.wanted)), return_exceptions=True)
        for failure in looks:
            if failure is not None:
                raise failure

    async def reside(self) -> None:
        """Has the server load the model and keep it loaded, where it has a call for that; once an hour.

        Raises `LlmError`. What the server says to it does not matter.
        """
        path, fields = self._spec.quirks.residence
        now = asyncio.get_running_loop().time()
        if not path or now < self._resides_until:
            return
        self._resides_until = now + RESIDE_AGAIN_S
        client = await self.client()
        root = self._spec.url("").removesuffix("/").removesuffix("/v1")
        wanted = {**msgspec.json.decode(fields, type=dict[str, object]), "model": self._spec.model}
        due = now + LOAD_S
        response = await transport.send(
            client, client.build_request("POST", f"{root}/{path}", json=wanted), due
        )
        try:
            await transport.read_out(response, due)
        finally:
            await transport.close(response, self._deadlines.close_s)

    async def close(self) -> None:
        """Closes all connections, also of answers that still run."""
        for client in self._clients:
            await client.aclose()

    def opened(self) -> None:
        """Counts a new connection."""
        self.connections_opened += 1
        instruments.llm_connections_opened.labels(self._spec.quirks.name).inc()

    def changed(self, by: int) -> None:
        """Counts those that are open."""
        self.connections_open += by
        instruments.llm_connections_open.labels(self._spec.quirks.name).inc(by)

    async def _look(self) -> None:
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

    async def _trace_http2(self, event: str, _: object) -> None:
        if event == "connection.connect_tcp.complete":
            self.opened()
