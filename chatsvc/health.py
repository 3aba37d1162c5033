"""Alive, ready, and how it goes: the three pages machines read."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from ipaddress import ip_address
from typing import Final

from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse, HttpResponseForbidden, JsonResponse
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from apps.stores.database import in_database
from apps.stores.redis import Unreachable, connect

CHECK_DEADLINE_S: Final = 1.0
_FORWARDED: Final = ("Forwarded", "X-Forwarded-For", "X-Real-Ip")


async def healthz(request: HttpRequest) -> JsonResponse:
    """The process answers. Says nothing of what stands behind it, so that a lost database restarts nobody."""
    return JsonResponse({"status": "ok"})


async def readyz(request: HttpRequest) -> JsonResponse:
    """Whether traffic should come here: database and Redis, side by side, each within 1 s. 503 when red."""
    database, redis = await asyncio.gather(_verdict(_database()), _verdict(_redis()))
    ready = database == redis == "ok"
    checks = {"database": database, "redis": redis}
    return JsonResponse(
        {"status": "ok" if ready else "failing", "checks": checks}, status=200 if ready else 503
    )


async def metrics(request: HttpRequest) -> HttpResponse:
    """Prometheus text of this process, for collectors on the same machine or private network.

    A request that came through a proxy is refused: behind one, the whole world looks like the machine itself.
    """
    if not _from_near(request):
        return HttpResponseForbidden(
            "metrics are served to private addresses only\n", content_type="text/plain"
        )
    return HttpResponse(generate_latest(), content_type=CONTENT_TYPE_LATEST)


async def _verdict(check: Awaitable[None]) -> str:
    try:
        async with asyncio.timeout(CHECK_DEADLINE_S):
            await check
    except TimeoutError:
        return "late"
    except (DatabaseError, *Unreachable):
        return "failed"
    return "ok"


async def _database() -> None:
    await in_database(_select_one)


def _select_one() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


async def _redis() -> None:
    redis = connect()
    try:
        await redis.ping()
    finally:
        await redis.aclose()


def _from_near(request: HttpRequest) -> bool:
    if any(header in request.headers for header in _FORWARDED):
        return False
    try:
        address = ip_address(request.META.get("REMOTE_ADDR", ""))
    except ValueError:
        return False
    return address.is_loopback or address.is_private
