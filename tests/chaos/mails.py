"""The mail server of the town: takes everything, keeps who was sent what, and says when a delivery is under way."""

from __future__ import annotations

import asyncio
import email
import email.policy
from dataclasses import dataclass, field

from tests.fakes.transport.tls import Authority


@dataclass(frozen=True, slots=True)
class Mail:
    """One delivery: whoever gets the same `message_id` again drops it."""

    message_id: str
    to: str
    text: str


@dataclass(eq=False)
class Mailbox:
    """An SMTP server on a port of its own, with STARTTLS under `authority`. `received` is its journal; it answers each
    mail after `pause_s`.
    """

    authority: Authority
    received: list[Mail] = field(default_factory=list)
    pause_s: float = 0.0
    _begun: asyncio.Event = field(default_factory=asyncio.Event)
    _server: asyncio.Server | None = None

    @property
    def port(self) -> int:
        assert self._server
        return int(self._server.sockets[0].getsockname()[1])

    async def __aenter__(self) -> Mailbox:
        self._server = await asyncio.start_server(self._session, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server
        self._server.close()

    async def delivery(self, within_s: float) -> bool:
        """Waits for a mail that has come and is not answered yet; whether there was one."""
        self._begun.clear()
        try:
            async with asyncio.timeout(within_s):
                await self._begun.wait()
        except TimeoutError:
            return False
        return True

    async def _session(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._talk(reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass  # the worker was killed
        finally:
            writer.close()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 town\r\n")
        while line := await reader.readline():
            match line[:4].upper():
                case b"EHLO":
                    writer.write(b"250-town\r\n250 STARTTLS\r\n")
                case b"STAR":
                    writer.write(b"220 go on\r\n")
                    await writer.start_tls(self.authority.context())
                    continue
                case b"DATA":
                    writer.write(b"354 go on\r\n")
                    self._keep(await reader.readuntil(b"\r\n.\r\n"))
                    await asyncio.sleep(self.pause_s)
                    writer.write(b"250 taken\r\n")
                case b"QUIT":
                    writer.write(b"221 bye\r\n")
                    return
                case _:
                    writer.write(b"250 town\r\n")
            await writer.drain()

    def _keep(self, data: bytes) -> None:
        mail = email.message_from_bytes(data[:-5].replace(b"\r\n..", b"\r\n."), policy=email.policy.default)
        text = mail.get_body(("plain",))
        assert text is not None
        self.received.append(Mail(mail["Message-ID"], mail["To"], text.get_content()))
        self._begun.set()
