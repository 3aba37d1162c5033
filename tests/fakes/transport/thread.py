"""Runs a fake server on a thread and loop of its own, so that a test's loop may block or die."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Protocol, TypeVar

T = TypeVar("T")
CALL_TIMEOUT_S = 30.0


class Server(Protocol):
    """Something that listens until `stop` is called on its loop."""

    async def run(self, ready: Callable[[], None]) -> None: ...

    def stop(self) -> None: ...


class ServerThread:
    """Started on construction, listening when the constructor returns."""

    def __init__(self, server: Server, name: str) -> None:
        self._server = server
        self._started: Future[asyncio.AbstractEventLoop] = Future()
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)
        self._thread.start()
        self._loop = self._started.result(CALL_TIMEOUT_S)

    def call(self, act: Callable[[], Awaitable[T]], timeout_s: float = CALL_TIMEOUT_S) -> T:
        """Runs a coroutine on the server's loop and returns its result. Not from that loop."""

        async def acting() -> T:
            return await act()

        return asyncio.run_coroutine_threadsafe(acting(), self._loop).result(timeout_s)

    def stop(self) -> None:
        """Returns when the thread has ended."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._server.stop)
            self._thread.join(CALL_TIMEOUT_S)

    def _main(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:
            if self._started.done():
                raise
            self._started.set_exception(error)

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        await self._server.run(lambda: self._started.set_result(loop))
