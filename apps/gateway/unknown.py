"""A socket on a path that does not exist: told so, instead of a traceback in the log."""

from __future__ import annotations

from typing import Any


async def unknown_path(scope: dict[str, Any], receive: Any, send: Any) -> None:
    await receive()
    await send({"type": "websocket.close"})  # before accept: an HTTP 403
