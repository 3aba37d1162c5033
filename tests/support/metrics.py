"""What a process says of itself on `/metrics`."""

from __future__ import annotations

import http.client
import re

from tests.support.processes import Web

# A label's value may hold blanks.
_SAMPLE = re.compile(r"^([^#\s].*) (\S+)$", re.MULTILINE)


def metrics(web: Web) -> dict[str, float]:
    """Every sample of the process by its name with its labels."""
    return metrics_at(f"127.0.0.1:{web.port}")


def metrics_at(host: str, timeout_s: float = 5.0) -> dict[str, float]:
    """The same of the process that listens there."""
    connection = http.client.HTTPConnection(host, timeout=timeout_s)
    try:
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
    finally:
        connection.close()
    return {name: float(value) for name, value in _SAMPLE.findall(text)}
