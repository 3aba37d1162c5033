"""Whether a process says that it is ready."""

from __future__ import annotations

from typing import Any

import httpx

from tests.support.client import DEADLINE_S
from tests.support.processes import Web


async def ready(web: Web, query: str = "") -> tuple[int, dict[str, Any]]:
    """The status and the body of `/readyz`, beside which the process says that it lives."""
    async with httpx.AsyncClient(timeout=DEADLINE_S) as client:
        answer = await client.get(f"{web.url}/readyz{query}")
        alive = await client.get(f"{web.url}/healthz")
    assert (alive.status_code, alive.json()) == (200, {"status": "ok"})
    return answer.status_code, answer.json()
