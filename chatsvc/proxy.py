"""What a proxy in front tells of the customer's own connection, taken only where the installation says there is one."""

from __future__ import annotations

from typing import Any

_SECURE = {"http": "https", "websocket": "wss"}


def behind_tls_proxy(application: Any) -> Any:
    """An ASGI application that sees the scheme and the address that the proxy saw.

    Of `X-Forwarded-For` the last address counts: proxies append, and what stands before it may be a stranger's own.
    """

    async def seen_through_proxy(scope: dict[str, Any], receive: Any, send: Any) -> None:
        await application(_as_the_proxy_saw(scope), receive, send)

    return seen_through_proxy


def _as_the_proxy_saw(scope: dict[str, Any]) -> dict[str, Any]:
    forwarded = {name: value.decode("latin-1") for name, value in scope["headers"]}
    seen = dict(scope)
    if forwarded.get(b"x-forwarded-proto", "").rpartition(",")[2].strip() in ("https", "wss"):
        seen["scheme"] = _SECURE[scope["type"]]  # daphne names no scheme of a socket, as ASGI allows
    address = forwarded.get(b"x-forwarded-for", "").rpartition(",")[2].strip()
    if address:
        seen["client"] = [address, 0]
    return seen
