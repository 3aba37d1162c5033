"""Times as the wire carries them. Pure."""

from __future__ import annotations

from datetime import datetime


def milliseconds(at: datetime) -> int:
    """Milliseconds since 1970, UTC. `at` is aware."""
    return int(at.timestamp() * 1000)
