"""A model server in this process, on a thread of its own."""

from __future__ import annotations

import tempfile
from pathlib import Path
from types import TracebackType

import msgspec

from tests.fakes.transport.thread import ServerThread
from tests.fakes.transport.tls import ALPN, Authority
from tests.fakes.upstream.control import Command, Control, Wait
from tests.fakes.upstream.ledger import Counts, Seen
from tests.fakes.upstream.profile import INSTANT, Profile
from tests.fakes.upstream.server import UpstreamServer

MARGIN_S = 20.0  # beyond a wait's own limit, before the thread itself is taken for dead


class Upstream(Control):
    """Listens from construction to `stop`. With `tls` clients trust `ca_file`; `alpn` is what is offered."""

    def __init__(
        self,
        profile: Profile = INSTANT,
        *,
        tls: bool = True,
        alpn: tuple[str, ...] = ALPN,
        port: int = 0,
    ) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="fake-ca-")
        authority = Authority(Path(self._folder.name), alpn) if tls else None
        self._server = UpstreamServer(profile, certificates=authority, port=port)
        self._thread = ServerThread(self._server, "fake-upstream")
        self.ca_file = str(authority.ca_file) if authority else ""
        self.port = self._server.listener.port
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"

    def send(self, command: Command) -> Counts:
        patience_s = command.timeout_s if isinstance(command, Wait) else 0.0
        return self._thread.call(lambda: self._server.obey(command), patience_s + MARGIN_S)

    def requests(self) -> list[Seen]:
        return self._thread.call(self._copy_requests)

    def counts(self) -> Counts:
        return self._thread.call(self._copy_counts)

    def stop(self) -> None:
        """Ends the server. Raises `AssertionError` when the fake itself had a bug meanwhile."""
        self._thread.stop()
        self._folder.cleanup()
        assert not self._server.ledger.crashes, self._server.ledger.crashes

    def __enter__(self) -> Upstream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def _copy_requests(self) -> list[Seen]:
        return [msgspec.structs.replace(seen) for seen in self._server.ledger.requests]

    async def _copy_counts(self) -> Counts:
        return msgspec.structs.replace(self._server.ledger.counts)
