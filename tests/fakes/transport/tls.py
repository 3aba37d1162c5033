"""A throw-away certificate authority in a folder, and the contexts made from it."""

from __future__ import annotations

import ssl
from pathlib import Path

import trustme

HOSTS = ("127.0.0.1", "localhost")
ALPN = ("h2", "http/1.1")


class Authority:
    """Kept in its folder, so that a restarted server is trusted by the clients of the one before.

    `ca_file` is what a client has to trust. A folder belongs to one server at a time.
    """

    def __init__(self, folder: Path, alpn: tuple[str, ...] = ALPN) -> None:
        self._alpn = alpn
        folder.mkdir(parents=True, exist_ok=True)
        self.ca_file = folder / "ca.pem"
        self._server_file = folder / "server.pem"
        self._stranger_file = folder / "stranger.pem"
        if not (self.ca_file.exists() and self._server_file.exists()):
            self._create()

    def context(self) -> ssl.SSLContext:
        """For the real server."""
        return _context(self._server_file, self._alpn)

    def stranger(self) -> ssl.SSLContext:
        """A certificate for this host that no client has a reason to trust."""
        return _context(self._stranger_file, self._alpn)

    def _create(self) -> None:
        authority = trustme.CA()
        authority.cert_pem.write_to_path(str(self.ca_file))
        authority.issue_cert(*HOSTS).private_key_and_cert_chain_pem.write_to_path(str(self._server_file))
        trustme.CA().issue_cert(*HOSTS).private_key_and_cert_chain_pem.write_to_path(str(self._stranger_file))
        self._server_file.chmod(0o600)


def _context(pem: Path, alpn: tuple[str, ...]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    context.set_alpn_protocols(list(alpn))
    return context
