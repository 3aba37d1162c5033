"""Alive, ready, and how it goes: the three pages machines read."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Awaitable
from contextlib import suppress
from ipaddress import ip_address
from math import nan
from typing import Final

from django.core.handlers.asgi import ASGIRequest
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse, HttpResponseForbidden, JsonResponse
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from apps.conversations import outbox
from apps.stores.database import in_database
from apps.stores.redis import Unreachable, connect
from apps.telemetry import instruments
from apps.telemetry.heap import heap_bytes
from apps.turns import canary
from apps.turns.between.switchboard import Hearing
from apps.turns.office import Office

CHECK_DEADLINE_S: Final = 1.0
BEHIND_S: Final = 5.0  # a commit takes milliseconds; behind a lock that is waited for, up to this
_FORWARDED: Final = ("Forwarded", "X-Forwarded-For", "X-Real-Ip")
_LIVE: Final = {Hearing.HEARS: "ok", Hearing.DEAF: "deaf", Hearing.CUT_OFF: "cut off"}
_MEANS: Final = {
    "database": "nothing can be stored, and nobody is let in",
    "redis": "customers are served; who is elsewhere is not heard, and tasks wait",
    "live": "what other processes say does not arrive here; sockets are told how things stand every few seconds",
    "worker": "mails, new articles and preloads wait; what customers see does not",
}


async def healthz(request: HttpRequest) -> JsonResponse:
    """The process answers. Says nothing of what stands behind it, so that a lost database restarts nobody."""
    return JsonResponse({"status": "ok"})


async def readyz(request: ASGIRequest) -> JsonResponse:
    """Whether traffic should come here, each part looked at within 1 s. 503 when one is red.

    `live` is the way of live frames to other processes, tried every 2 s. `worker` is shown and never red: nothing a
    customer sees waits for one. `?exclude=redis` answers 200, and `degraded`, where only Redis is away from every
    process: customers are served without it.
    """
    database, (redis, worker) = await asyncio.gather(_verdict(_database()), _redis_and_worker())
    office: Office = request.scope["office"]
    if database == "ok" and not (office.care.stored_lately and office.runtime.log.behind_s < BEHIND_S):
        database = "takes nothing"
    live = _LIVE[office.runtime.switchboard.hearing]
    checks = {"database": database, "redis": redis, "live": live, "worker": worker}
    amiss = {part for part, verdict in checks.items() if verdict != "ok"}
    red = amiss - {"worker"}
    if request.GET.get("exclude") == "redis":
        # Deaf beside a Redis that answers is this process's own fault: others hear.
        red -= {"redis"} if live == "deaf" else {"redis", "live"}
    return JsonResponse(
        {
            "status": "failing" if red else "degraded" if amiss else "ok",
            "checks": checks,
            "means": {part: _MEANS[part] for part in checks if part in amiss},
        },
        status=503 if red else 200,
    )


async def metrics(request: HttpRequest) -> HttpResponse:
    """Prometheus text of this process, for collectors on the same machine or private network.

    A request that came through a proxy is refused: behind one, the whole world looks like the machine itself.
    """
    if not _from_near(request):
        return HttpResponseForbidden(
            "metrics are served to private addresses only\n", content_type="text/plain"
        )
    instruments.tasks.set(len(asyncio.all_tasks()))
    instruments.threads.set(threading.active_count())
    instruments.heap_bytes.set(heap_bytes())
    instruments.python_blocks.set(sys.getallocatedblocks())
    await asyncio.gather(_measure_worker(), _measure_outbox())
    return HttpResponse(generate_latest(), content_type=CONTENT_TYPE_LATEST)


async def _measure_worker() -> None:
    age_s: float | None = None
    with suppress(*Unreachable):
        async with asyncio.timeout(CHECK_DEADLINE_S):
            age_s = await _canary_age_s()
    instruments.worker_canary_age_seconds.set(nan if age_s is None else age_s)


async def _measure_outbox() -> None:
    with suppress(TimeoutError, DatabaseError):
        async with asyncio.timeout(CHECK_DEADLINE_S):
            for state, count in (await in_database(outbox.undone)).items():
                instruments.outbox_items.labels(state).set(count)


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


async def _redis_and_worker() -> tuple[str, str]:
    """Whether Redis answers, and what it knows of the workers."""
    found: list[float | None] = []

    async def look() -> None:
        found.append(await _canary_age_s())

    verdict = await _verdict(look())
    if not found:
        return verdict, "unknown"
    return verdict, "late" if found[0] is None or found[0] > canary.LATE_S else "ok"


async def _canary_age_s() -> float | None:
    """Raises `Unreachable` errors, also where Redis takes nothing: it is full, or no longer the one that may write."""
    redis = connect()
    try:
        await redis.set("asked", 1, ex=60)
        return await canary.age_s(redis)
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
