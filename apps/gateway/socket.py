"""A client's frames over a WebSocket: subprotocol, codec, close codes."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any

from channels.exceptions import StopConsumer
from channels.generic.websocket import AsyncWebsocketConsumer
from channels.utils import await_many_dispatch

from apps.gateway.outbound import Close
from apps.gateway.peer import Peer
from apps.wire import protocol as wire

logger = logging.getLogger(__name__)

INTERNAL_ERROR = 1011


class Socket(AsyncWebsocketConsumer):  # type: ignore[misc]  # channels has no types
    """One task writes what the peer is told; what comes in is carried out one frame after the other."""

    def __init__(self, *, peer: type[Peer]) -> None:
        super().__init__()
        self._peer_class = peer

    async def __call__(
        self, scope: dict[str, Any], receive: Callable[..., Any], send: Callable[..., Any]
    ) -> None:
        self.scope, self.base_send = scope, send
        self._peer = self._peer_class(scope, scope["connections"])
        self._peer.too_slow = self._write_anew
        self._writer: asyncio.Task[None] | None = None
        self._binary = False
        try:
            await await_many_dispatch([receive], self.dispatch)
        except StopConsumer:
            pass
        finally:
            self._end()

    async def dispatch(self, message: dict[str, Any]) -> None:
        """One event at a time, in order: what takes long must be a task of the owner."""
        match message["type"]:
            case "websocket.connect":
                await self.connect()
            case "websocket.receive":
                # When its bytes were read; servers that do not say it have not let it wait.
                await self._hear(message.get("text"), message.get("arrived", time.monotonic()))
            case "websocket.disconnect":
                self._end()
                raise StopConsumer

    async def connect(self) -> None:
        if not self._peer.may_connect():
            await self.close()  # before accept: an HTTP 403
            return
        offered = self.scope.get("subprotocols", [])
        chosen = next((name for name in wire.SUBPROTOCOLS if name in offered), None)
        # An unknown one is accepted as asked, or a browser would never see the close code.
        await self.accept(subprotocol=chosen or (offered[0] if offered else None))
        self._binary = chosen == wire.MSGPACK_SUBPROTOCOL
        self._write_anew()
        if chosen is None and offered:
            self._peer.refuse(
                wire.ErrorCode.UNKNOWN_SUBPROTOCOL, "offer chatsvc.v1.json or chatsvc.v1.msgpack"
            )
            self._peer.hang_up(wire.CloseCode.UNKNOWN_SUBPROTOCOL, "unknown subprotocol")
            return
        self._peer.opened()

    async def _hear(self, text: str | None, arrived: float) -> None:
        if text is None:
            self._peer.refuse(wire.ErrorCode.BAD_FRAME, "frames to the server are JSON text")
        else:
            await self._peer.hear(text, arrived)

    def _write_anew(self) -> None:
        """A writer that waits for a peer which does not read gives way to one with the last word."""
        if self._writer is not None:
            self._writer.cancel()
        self._writer = self._peer.office.runtime.spawn(self._write(), "socket writer")

    async def _write(self) -> None:
        try:
            await self._send_queued()
        except Exception:
            # A socket that cannot be written to any more must not seem alive.
            logger.exception("a frame could not be sent")
            await self.close(code=INTERNAL_ERROR)

    async def _send_queued(self) -> None:
        while True:
            item = await self._peer.next()
            if isinstance(item, Close):
                await self.close(code=item.code, reason=item.reason)
                return
            if self._binary:
                await self.send(bytes_data=item.binary)
            else:
                await self.send(text_data=item.text)

    def _end(self) -> None:
        if self._writer is not None:
            self._writer.cancel()
            self._writer = None
        self._peer.end()
