"""A mail server over a real socket, with STARTTLS, that keeps what it took and can hold its answers back."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path

from tests.fakes.transport.tls import Authority


class Mailbox:
    """`taken` holds every mail that was accepted, also where the answer never reached the sender."""

    def __init__(self, port: int, ca_file: Path) -> None:
        self.taken: list[EmailMessage] = []
        self.holding = threading.Event()  # an answer is being held back
        self._held = ""
        self._let_go = threading.Event()
        self._let_go.set()
        self.variables = {"MAIL_HOST": "127.0.0.1", "MAIL_PORT": str(port), "SSL_CERT_FILE": str(ca_file)}

    @property
    def ids(self) -> list[str]:
        return [str(mail["Message-ID"]) for mail in self.taken]

    def hold(self, verb: str) -> None:
        """From now on nobody gets an answer to this: RCPT is before a mail is taken, DATA after."""
        self._held = verb
        self.holding.clear()
        self._let_go.clear()

    def let_go(self) -> None:
        """Whoever waits gets his answer, if he is still there."""
        self._held = ""
        self._let_go.set()

    def pause(self, verb: str) -> None:
        if verb == self._held:
            self.holding.set()
            self._let_go.wait()


@contextmanager
def open_mailbox(folder: Path) -> Iterator[Mailbox]:
    """Listens on a port of its own while the block runs."""
    authority = Authority(folder / "mail-tls", alpn=())
    with _Server(authority) as server:
        server.mailbox = Mailbox(server.server_address[1], authority.ca_file)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield server.mailbox
        finally:
            server.mailbox.let_go()
            server.shutdown()
            thread.join()


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    server_address: tuple[str, int]
    mailbox: Mailbox

    def __init__(self, authority: Authority) -> None:
        super().__init__(("127.0.0.1", 0), _Session)
        self.context = authority.context()


class _Session(socketserver.StreamRequestHandler):
    server: _Server

    def handle(self) -> None:
        try:
            self._talk()
        except OSError:
            return  # the sender is gone

    def _talk(self) -> None:
        self._say("220 ready")
        while verb := self.rfile.readline().decode().strip()[:8].upper().partition(" ")[0]:
            match verb:
                case "STARTTLS":
                    self._say("220 go ahead")
                    self._wrap()
                case "EHLO":
                    self._say("250-localhost\r\n250 STARTTLS")
                case "DATA":
                    self._take()
                case "QUIT":
                    self._say("221 bye")
                    return
                case _:
                    self.server.mailbox.pause(verb)
                    self._say("250 ok")

    def _wrap(self) -> None:
        self.connection = self.server.context.wrap_socket(self.connection, server_side=True)
        self.rfile, self.wfile = self.connection.makefile("rb"), self.connection.makefile("wb", 0)

    def _take(self) -> None:
        self._say("354 go on")
        lines = list(iter(self.rfile.readline, b".\r\n"))
        self.server.mailbox.taken.append(message_from_bytes(b"".join(lines), policy=policy.default))
        self.server.mailbox.pause("DATA")
        self._say("250 taken")

    def _say(self, line: str) -> None:
        self.wfile.write(f"{line}\r\n".encode())
        self.wfile.flush()
