"""A shop in this process, on a thread of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, date, datetime
from types import TracebackType

import msgspec

from tests.fakes.shop.catalog import Customer, lantern
from tests.fakes.shop.server import Behave, Mood, ShopCounts, ShopServer
from tests.fakes.transport.listener import Leave
from tests.fakes.transport.thread import ServerThread

WAIT_S = 10.0


class Shop:
    """Listens from construction to `stop`. `url` and `key` are what a connector is configured with."""

    def __init__(
        self,
        *,
        key: str = "shop-key",
        customers: Mapping[str, Customer] | None = None,
        today: date | None = None,
        port: int = 0,
    ) -> None:
        if customers is None:
            customers = lantern(today or datetime.now(UTC).date())
        self.key = key
        self._server = ShopServer(key, customers, port=port)
        self._thread = ServerThread(self._server, "fake-shop")
        self.port = self._server.listener.port
        self.url = f"http://127.0.0.1:{self.port}"

    def behave(self, mood: Mood, *, seconds: float = 0.0, times: int = 0, path: str = "") -> None:
        """See `Behave`."""
        self._thread.call(
            lambda: self._server.behave(Behave(mood=mood, seconds=seconds, times=times, path=path))
        )

    def release(self) -> None:
        """Lets stalled requests go on and ends the bad mood."""
        self._thread.call(self._server.release)

    def refuse(self) -> None:
        """Closes the port and every connection: connection refused."""
        self._thread.call(self._refuse)

    def accept(self) -> None:
        """Opens the port again."""
        self._thread.call(self._server.listener.accept)

    def counts(self) -> ShopCounts:
        return self._thread.call(self._copy_counts)

    def wait(self, count: str, value: int, *, timeout_s: float = WAIT_S) -> None:
        """Blocks until a count is at least `value`. Raises `TimeoutError`."""
        self._thread.call(
            lambda: self._server.wait(lambda counts: getattr(counts, count) >= value, timeout_s)
        )

    async def until(self, count: str, value: int, *, timeout_s: float = WAIT_S) -> None:
        """`wait` without blocking the caller's loop."""
        await asyncio.to_thread(self.wait, count, value, timeout_s=timeout_s)

    def stop(self) -> None:
        """Ends the server. Raises `AssertionError` when the fake itself had a bug meanwhile."""
        self._thread.stop()
        assert self._server.counts.crashes == 0

    def __enter__(self) -> Shop:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def _refuse(self) -> None:
        self._server.listener.refuse()
        await self._server.listener.leave(Leave.CLOSE, idle_only=False)

    async def _copy_counts(self) -> ShopCounts:
        counts = self._server.counts
        return msgspec.structs.replace(counts, paths=list(counts.paths))
