"""What resuming a TLS session spares: `python -m bench.tls`. No network; client and server in one thread."""

from __future__ import annotations

import ssl
import statistics
import tempfile
import time
from pathlib import Path

from apps.llm.resumption import ResumingTls
from tests.fakes.transport.tls import Authority

ROUNDS = 400


def main() -> None:
    print("| handshake | client CPU, ms (median) | bytes to the client | bytes to the server |")
    print("|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        authority = Authority(Path(folder), ("http/1.1",))
        for name, resumes in (("full", False), ("resumed", True)):
            ResumingTls.resumes = resumes
            context = ssl.create_default_context(cafile=str(authority.ca_file))
            context.sslobject_class = ResumingTls
            server = authority.context()
            rounds = [_handshake(context, server) for _ in range(ROUNDS)][1:]
            cpu_ms = statistics.median(cpu for cpu, _, _ in rounds) * 1000
            print(f"| {name} | {cpu_ms:.2f} | {rounds[-1][1]} | {rounds[-1][2]} |")


def _handshake(client: ssl.SSLContext, server: ssl.SSLContext) -> tuple[float, int, int]:
    """CPU seconds of the client, and the bytes either side received, its tickets included."""
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    one = client.wrap_bio(to_client, to_server, server_hostname="localhost")
    other = server.wrap_bio(to_server, to_client, server_side=True)
    cpu_s, received, sent, done = 0.0, 0, 0, False
    while not done:
        begun = time.process_time()
        done = _stepped(one)
        cpu_s += time.process_time() - begun
        sent += to_server.pending
        _stepped(other)
        received += to_client.pending
    other.write(b"x")
    one.read(1)
    return cpu_s, received, sent


def _stepped(side: ssl.SSLObject) -> bool:
    try:
        side.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True


if __name__ == "__main__":
    main()
