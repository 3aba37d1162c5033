"""TLS by hand over a wire, so that a handshake can be spoiled and a record cut."""

from __future__ import annotations

import ssl
from contextlib import suppress

from tests.fakes.transport.exchange import ClientGone
from tests.fakes.transport.wire import READ_BYTES, Wire


class HandshakeFailed(Exception):
    """The client refused us, left, or spoke something else."""


class Link:
    """A connection as the HTTP layers see it: plain bytes in and out, encrypted or not."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.alpn = "http/1.1"
        self.resumed = False
        self._tls: ssl.SSLObject | None = None
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()

    async def handshake(self, context: ssl.SSLContext) -> None:
        """Raises `HandshakeFailed`."""
        tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        try:
            while not await self._advance(tls):
                pass
        except (ssl.SSLError, ClientGone) as error:
            raise HandshakeFailed(str(error)) from error
        self._tls = tls
        self.alpn = tls.selected_alpn_protocol() or "http/1.1"
        self.resumed = bool(tls.session_reused)

    async def read(self) -> bytes:
        """The next bytes; empty once the peer has left."""
        if self._tls is None:
            return await self.wire.read()
        while True:
            try:
                return self._tls.read(READ_BYTES)
            except ssl.SSLWantReadError:
                raw = await self.wire.read()
                if not raw:
                    return b""
                self._incoming.write(raw)
            except ssl.SSLError:
                return b""

    async def write(self, data: bytes) -> None:
        """Raises `ClientGone`."""
        if self._tls is None:
            await self.wire.write(data)
            return
        try:
            self._tls.write(data)
        except ssl.SSLError as error:
            raise ClientGone from error
        await self._flush()

    async def close(self) -> None:
        """Orderly: close_notify where there is TLS, then FIN."""
        if self._tls is not None:
            with suppress(ssl.SSLError):  # it waits for the peer's close_notify; ours is in the buffer by now
                self._tls.unwrap()
            with suppress(ClientGone):
                await self._flush()
        await self.wire.close()

    async def reset(self) -> None:
        await self.wire.reset()

    async def _advance(self, tls: ssl.SSLObject) -> bool:
        """One step of the handshake; true when it is done."""
        try:
            tls.do_handshake()
        except ssl.SSLWantReadError:
            await self._flush()
            raw = await self.wire.read()
            if not raw:
                raise ClientGone from None
            self._incoming.write(raw)
            return False
        except ssl.SSLError:
            await self._flush()  # the alert
            raise
        await self._flush()
        return True

    async def _flush(self) -> None:
        pending = self._outgoing.read()
        if pending:
            await self.wire.write(pending)
