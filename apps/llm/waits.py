"""What a request waited for before it could be sent: DNS, TCP, TLS, a free slot. Told to whoever listens, if anybody.

The listener travels in a context variable, because between the turn and the connection stand libraries.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import aiohttp

# The stage's name, and its monotonic times in seconds.
Listener = Callable[[str, float, float], None]


@dataclass(slots=True)
class _Waits:
    listener: Listener
    connecting: float = 0.0
    resolving: float = 0.0
    tls_begun: float = 0.0


_waits: ContextVar[_Waits | None] = ContextVar("waits", default=None)


@contextmanager
def told_to(listener: Listener) -> Iterator[None]:
    """Whatever a request of this task, or of a task it starts, waits for is told to `listener`."""
    token = _waits.set(_Waits(listener))
    try:
        yield
    finally:
        _waits.reset(token)


@contextmanager
def waiting(stage: str) -> Iterator[None]:
    """Times a block, also when it raises."""
    begun = time.monotonic()
    try:
        yield
    finally:
        if (waits := _waits.get()) is not None:
            waits.listener(stage, begun, time.monotonic())


class TimedTls(ssl.SSLObject):
    """A TLS connection that tells how long its handshake took: for every client that shares the context."""

    _begun = 0.0

    def do_handshake(self) -> None:
        """Called again for each flight of the peer; returns once, at the end."""
        waits = _waits.get()
        if not self._begun:
            self._begun = time.monotonic()
            if waits is not None:
                waits.tls_begun = self._begun
        super().do_handshake()
        if waits is not None:
            waits.listener("tls", self._begun, time.monotonic())


def aiohttp_trace() -> aiohttp.TraceConfig:
    """Tells DNS and TCP of connections over HTTP/1.1."""
    trace = aiohttp.TraceConfig()

    async def connecting(*_: object) -> None:
        if (waits := _waits.get()) is not None:
            waits.connecting, waits.tls_begun = time.monotonic(), 0.0

    async def resolving(*_: object) -> None:
        if (waits := _waits.get()) is not None:
            waits.resolving = time.monotonic()

    async def resolved(*_: object) -> None:
        if (waits := _waits.get()) is not None:
            waits.connecting = time.monotonic()
            waits.listener("dns", waits.resolving, waits.connecting)

    async def connected(*_: object) -> None:
        if (waits := _waits.get()) is not None:
            waits.listener("tcp", waits.connecting, waits.tls_begun or time.monotonic())

    trace.on_connection_create_start.append(connecting)
    trace.on_dns_resolvehost_start.append(resolving)
    trace.on_dns_resolvehost_end.append(resolved)
    trace.on_connection_create_end.append(connected)
    return trace


async def httpcore_trace(event: str, _: Any) -> None:
    """Tells TCP of connections over HTTP/2; the look-up of the name is a part of it."""
    waits = _waits.get()
    if waits is None:
        return
    if event == "connection.connect_tcp.started":
        waits.connecting = time.monotonic()
    elif event == "connection.connect_tcp.complete":
        waits.listener("tcp", waits.connecting, time.monotonic())
