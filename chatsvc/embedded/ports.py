"""Questions about TCP ports of this machine, and to what listens on them."""

from __future__ import annotations

import http.client
import socket

ANSWER_S = 5.0


def free_port(host: str = "127.0.0.1") -> int:
    """A port nobody listens on now; whoever wants it binds it soon."""
    with socket.socket(_family(host)) as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def is_free(host: str, port: int) -> bool:
    try:
        try_bind(host, port)
    except OSError:
        return False
    return True


def try_bind(host: str, port: int) -> None:
    """Raises the OSError that listening there would raise."""
    with socket.socket(_family(host)) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, port))


def answers_http(host: str, port: int, path: str, named: str | None = None) -> bool:
    """Whether GET is answered with 200. `named` is the host to ask for, where it is not the address."""
    connection = http.client.HTTPConnection(host, port, timeout=ANSWER_S)
    try:
        connection.request("GET", path, headers={"Host": named or host})
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET
