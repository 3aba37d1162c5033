"""What a process says of itself on `/metrics`."""

from __future__ import annotations

import http.client
import re

from tests.support.processes import Web


def metrics(web: Web) -> dict[str, float]:
    """Every sample of the process by its name with its labels."""
    connection = http.client.HTTPConnection("127.0.0.1", web.port, timeout=5)
    try:
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
    finally:
        connection.close()
    return {name: float(value) for name, value in re.findall(r"^(chatsvc_\S+) (\S+)$", text, re.MULTILINE)}
