"""How each fault is done to a town."""

from __future__ import annotations

import asyncio
import random
import signal
from contextlib import suppress

import psycopg
from redis.asyncio import Redis as RedisClient
from redis.asyncio.retry import Retry
from redis.backoff import ConstantBackoff
from redis.exceptions import RedisError

from tests.chaos.links import Way
from tests.chaos.schedule import Fault, Injection
from tests.chaos.town import Town, Web

_LOST = {
    Fault.LOSE_UP: (Way.UP,),
    Fault.LOSE_DOWN: (Way.DOWN,),
    Fault.LOSE_BOTH: (Way.UP, Way.DOWN),
}
_SKEW_S = 300.0
_STANDING_STILL_S, _RUNNING_S = 0.2, 0.02
_HELD_ROWS = 50


async def inject(town: Town, injection: Injection, rng: random.Random) -> None:
    """Breaks, waits as long as it lasts, and puts back what does not come back by itself."""
    match injection.fault:
        case Fault.LOSE_UP | Fault.LOSE_DOWN | Fault.LOSE_BOTH | Fault.DELAY | Fault.RESET:
            await _on_the_way(town, injection, rng)
        case Fault.KILL_WEB | Fault.END_WEB | Fault.FREEZE_WEB:
            await _in_a_web_process(town, town.webs[injection.target], injection)
        case Fault.SKEW_CLOCK:
            await _skew(town, injection, rng.choice((-_SKEW_S, _SKEW_S)))
        case Fault.KILL_WORKER:
            town.down(town.worker, injection.seconds)
            town.worker.kill()
        case Fault.KILL_CLIENTS:
            await _kill_clients(town)
        case Fault.RESTART_REDIS | Fault.FILL_REDIS | Fault.SLOW_REDIS:
            async with town.mending("redis"):
                await _IN_REDIS[injection.fault](town, injection.seconds)
        case Fault.RESTART_POSTGRES | Fault.LOCK_ROWS:
            async with town.mending("postgres"):
                await _IN_POSTGRES[injection.fault](town, injection.seconds)


async def _on_the_way(town: Town, injection: Injection, rng: random.Random) -> None:
    link, network = town.links[injection.target], town.networks[injection.target]
    if injection.fault is Fault.RESET:
        link.reset()
    elif injection.fault is Fault.DELAY:
        link.delay(rng.uniform(0.05, 0.3))
        await asyncio.sleep(injection.seconds)
        link.delay(0.0)
    else:
        network.lose(*_LOST[injection.fault])
        await asyncio.sleep(injection.seconds)
        network.heal()


async def _in_a_web_process(town: Town, web: Web, injection: Injection) -> None:
    if injection.fault is Fault.FREEZE_WEB:
        web.signal(signal.SIGSTOP)
        await asyncio.sleep(injection.seconds)
        web.signal(signal.SIGCONT)
        return
    town.down(web, injection.seconds)
    if injection.fault is Fault.KILL_WEB:
        web.kill()
    else:
        web.signal(signal.SIGTERM)


async def _skew(town: Town, injection: Injection, seconds: float) -> None:
    clock = town.clocks[injection.target]
    clock.shift(seconds)
    await asyncio.sleep(injection.seconds)
    clock.shift(0.0)


async def _kill_clients(town: Town) -> None:
    with suppress(OSError, RedisError):  # it may be down itself
        async with asyncio.timeout(2), RedisClient.from_url(town.redis.url) as redis:
            for kind in ("pubsub", "normal"):
                await redis.client_kill_filter(_type=kind, skipme=True)


async def _restart_redis(town: Town, seconds: float) -> None:
    town.redis.kill()
    await asyncio.sleep(seconds)
    town.redis.start()
    await asyncio.to_thread(town.redis.wait_ready)


async def _full(town: Town, seconds: float) -> None:
    """No write is taken. What came before stays."""
    # Clients are killed meanwhile, this one as any other.
    again = Retry(ConstantBackoff(0.1), 30)
    async with asyncio.timeout(seconds + 10), RedisClient.from_url(town.redis.url, retry=again) as redis:
        before = (await redis.config_get("maxmemory"))["maxmemory"] or 0
        await redis.config_set("maxmemory", "1")
        await asyncio.sleep(seconds)
        await redis.config_set("maxmemory", before)


async def _slowly(town: Town, seconds: float) -> None:
    """It stands still most of the time, so that every command takes up to a few hundred milliseconds."""
    loop = asyncio.get_running_loop()
    until_s = loop.time() + seconds
    while loop.time() < until_s:
        with town.redis.silent():
            await asyncio.sleep(_STANDING_STILL_S)
        await asyncio.sleep(_RUNNING_S)


async def _restart_postgres(town: Town, seconds: float) -> None:
    await asyncio.to_thread(town.postgres.end_sessions)
    await asyncio.sleep(seconds)
    town.postgres.start()
    await asyncio.to_thread(town.postgres.wait_ready)


async def _hold_rows(town: Town, seconds: float) -> None:
    """A session of somebody's hangs in its transaction with a part of the newest conversations locked.

    Those that an earlier one holds already are passed over.
    """
    url = town.deployment.database_url
    async with await psycopg.AsyncConnection.connect(
        url, connect_timeout=10, options="-c lock_timeout=5s"
    ) as session:
        await session.execute(
            "SELECT id FROM conversations_conversation WHERE id IN "
            "(SELECT id FROM conversations_conversation ORDER BY created_at DESC, id LIMIT %s) "
            "ORDER BY id FOR UPDATE SKIP LOCKED",
            [_HELD_ROWS],
        )
        await asyncio.sleep(seconds)


_IN_REDIS = {
    Fault.RESTART_REDIS: _restart_redis,
    Fault.FILL_REDIS: _full,
    Fault.SLOW_REDIS: _slowly,
}
_IN_POSTGRES = {Fault.RESTART_POSTGRES: _restart_postgres, Fault.LOCK_ROWS: _hold_rows}
