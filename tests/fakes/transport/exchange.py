"""What a transport hands to an application: a request, and the exchange to answer (or betray) it on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias


class ClientGone(Exception):
    """The client left while it was being answered."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request, read to its end. Header names are lower case; `connection` counts from 1."""

    connection: int
    number_on_connection: int
    http: str  # 1.1 | 2
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class Exchange(Protocol):
    """The answer's side of one request. Every write raises `ClientGone` once the client has left.

    When the client leaves, the application's task is cancelled and `client_gone` is true; a cancel with
    `client_gone` false is the server's own shutdown.
    """

    client_gone: bool
    resting: bool  # nothing is going on; an upgraded connection's application says so itself

    async def start(self, status: int, headers: Mapping[str, str]) -> None:
        """Sends the head. Without a content-length HTTP/1.1 uses chunks."""

    async def write(self, data: bytes) -> None:
        """Sends one chunk (HTTP/1.1) or data frame (HTTP/2), waiting while the client does not read."""

    async def finish(self) -> None:
        """Ends the body properly."""

    async def close(self) -> None:
        """Closes the connection orderly (FIN) with the body unfinished."""

    async def reset(self) -> None:
        """Resets the TCP connection (RST)."""

    async def reset_stream(self) -> None:
        """HTTP/2: RST_STREAM with INTERNAL_ERROR, the connection lives. HTTP/1.1: the same as `reset`."""

    async def goaway(self, *, processed: bool) -> None:
        """HTTP/2: GOAWAY; this request counts as `processed` or not. The connection ends after its streams.

        HTTP/1.1 has no such frame: the connection closes after this exchange.
        """

    async def upgrade(self, headers: Mapping[str, str]) -> None:
        """Answers 101; from here `read` and `write` carry raw bytes. HTTP/1.1 only."""

    async def read(self) -> bytes:
        """After `upgrade`: the client's next bytes, empty once it has left."""


App: TypeAlias = Callable[[Request, Exchange], Awaitable[None]]


async def respond(
    exchange: Exchange,
    status: int,
    body: bytes,
    *,
    content_type: str = "application/json",
    headers: Mapping[str, str] | None = None,
) -> None:
    """A whole answer at once."""
    length = {"content-type": content_type, "content-length": str(len(body))}
    await exchange.start(status, {**length, **(headers or {})})
    if body:
        await exchange.write(body)
    await exchange.finish()
