"""TLS sessions kept from one connection to the next, for every client that shares the line's contexts.

Neither asyncio, aiohttp nor httpx can be given a session; the TLS object itself can. With TLS 1.3 a resumed handshake
spares the server's certificate and its signature, not a round trip: early data is not to be had in Python.
"""

from __future__ import annotations

import ssl
from collections import OrderedDict
from typing import Any, ClassVar

from apps.llm import waits
from apps.telemetry import instruments

KEPT_SESSIONS = 200
# A TLS 1.3 server sends its tickets behind the handshake, before or with its first bytes.
READS_TO_LOOK_AT = 3

_sessions: OrderedDict[tuple[ssl.SSLContext, str], ssl.SSLSession] = OrderedDict()


class ResumingTls(waits.TimedTls):
    """A client's TLS connection that begins with what the last one to the same host left."""

    resumes: ClassVar[bool] = True  # a bench switches it off

    _looks = READS_TO_LOOK_AT
    _shaken = False

    def do_handshake(self) -> None:
        """Called again for each flight of the peer; returns once, at the end."""
        if not self._shaken:
            self._shaken = True
            kept = _sessions.get(self._key) if self.resumes else None
            if kept is not None:
                self.session = kept
        super().do_handshake()
        instruments.llm_tls_handshakes.labels("resumed" if self.session_reused else "full").inc()

    def read(self, len: int = 1024, buffer: Any = None) -> Any:
        """Keeps the session once the server has sent a ticket for it."""
        data = super().read(len, buffer)
        if self._looks:
            self._looks -= 1
            self._keep()
        return data

    @property
    def _key(self) -> tuple[ssl.SSLContext, str]:
        return self.context, self.server_hostname or ""

    def _keep(self) -> None:
        session = self.session
        if session is None or not session.has_ticket:
            return
        self._looks = 0
        _sessions[self._key] = session
        _sessions.move_to_end(self._key)
        if len(_sessions) > KEPT_SESSIONS:
            _sessions.popitem(last=False)
