"""What a process counts, as it says on `/metrics`."""

from __future__ import annotations

import http.client
import re

from prometheus_client import REGISTRY

from tests.support.processes import Web

# A label's value may hold blanks.
_SAMPLE = re.compile(r"^([^#\s].*) (\S+)$", re.MULTILINE)


def counted(web: Web, name: str, **labels: str) -> float:
    """One sample of the process, 0 before it is first counted."""
    told = ",".join(f'{label}="{value}"' for label, value in sorted(labels.items()))
    return metrics(web).get(f"{name}{{{told}}}", 0.0)


def counted_here(name: str, **labels: str) -> float:
    """The same of the process that runs the test."""
    return REGISTRY.get_sample_value(name, labels) or 0.0


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
