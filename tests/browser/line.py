"""The network between a page and the server of its socket: it can hold frames up, break, and be mended."""

from __future__ import annotations

import re

from playwright.sync_api import Page, Route, WebSocketRoute

GOING_AWAY = 1001
# Where a line goes that has no socket.
HTTP = re.compile(r"/api/v1/(stream|poll|frames)/")


class Line:
    """Give `route` to a page before it goes anywhere. `refused` counts the sockets that it let not through."""

    def __init__(self, address: str) -> None:
        self.refused = 0
        self._address = address
        self._open: list[tuple[WebSocketRoute, WebSocketRoute]] = []
        self._held: list[tuple[WebSocketRoute, str | bytes]] | None = None
        self._broken = False
        self._swallows = False

    def route(self, page: Page) -> None:
        page.route_web_socket(self._address, self._connect)
        page.route(HTTP, self._over_http)

    def hold(self) -> None:
        """What the server says from now on is on its way."""
        self._held = []

    def release(self) -> None:
        """It arrives."""
        held, self._held = self._held or [], None
        for page, message in held:
            page.send(message)

    def swallow(self) -> None:
        """What the pages say from now on does not arrive; they hear on."""
        self._swallows = True

    def cut(self) -> None:
        """Breaks the connections of now and lets none through until `mend`."""
        self._broken = True
        for page, server in self._open:
            page.close(code=GOING_AWAY)
            server.close()
        self._open = []

    def mend(self) -> None:
        """From now on all gets through; what was on its way is lost."""
        self._broken = self._swallows = False
        self._held = None

    def _connect(self, page: WebSocketRoute) -> None:
        if self._broken:
            self.refused += 1
            page.close(code=GOING_AWAY)
            return
        server = page.connect_to_server()
        self._open.append((page, server))
        server.on_message(lambda message: self._hear(page, message))
        page.on_message(lambda message: self._say(server, message))

    def _over_http(self, route: Route) -> None:
        if self._broken:
            route.abort()
        else:
            route.continue_()

    def _say(self, server: WebSocketRoute, message: str | bytes) -> None:
        if not self._swallows:
            server.send(message)

    def _hear(self, page: WebSocketRoute, message: str | bytes) -> None:
        if self._held is None:
            page.send(message)
        else:
            self._held.append((page, message))
