"""How each fault is done to a town."""

from __future__ import annotations

import asyncio
import random
import signal
from contextlib import suppress

from redis.asyncio import Redis as RedisClient
from redis.exceptions import RedisError

from tests.chaos.links import Link, Way
from tests.chaos.schedule import Fault, Injection
from tests.chaos.town import Town
from tests.support.processes import Web

_LOST = {
    Fault.LOSE_UP: (Way.UP,),
    Fault.LOSE_DOWN: (Way.DOWN,),
    Fault.LOSE_BOTH: (Way.UP, Way.DOWN),
}
_SKEW_S = 300.0


async def inject(town: Town, injection: Injection, rng: random.Random) -> None:
    """Breaks, waits as long as it lasts, and puts back what does not come back by itself."""
    match injection.fault:
        case Fault.LOSE_UP | Fault.LOSE_DOWN | Fault.LOSE_BOTH | Fault.DELAY | Fault.RESET:
            await _on_the_way(town.links[injection.target], injection, rng)
        case Fault.KILL_WEB | Fault.END_WEB | Fault.FREEZE_WEB:
            await _in_a_web_process(town, town.webs[injection.target], injection)
        case Fault.SKEW_CLOCK:
            await _skew(town, injection, rng.choice((-_SKEW_S, _SKEW_S)))
        case Fault.KILL_WORKER:
            town.down(town.worker, injection.seconds)
            town.worker.kill()
        case Fault.RESTART_REDIS:
            async with town.mending("redis"):
                town.redis.kill()
                await asyncio.sleep(injection.seconds)
                town.redis.start()
        case Fault.KILL_CLIENTS:
            await _kill_clients(town)
        case Fault.RESTART_POSTGRES:
            async with town.mending("postgres"):
                await asyncio.to_thread(town.postgres.end_sessions)
                await asyncio.sleep(injection.seconds)
                town.postgres.start()


async def _on_the_way(link: Link, injection: Injection, rng: random.Random) -> None:
    if injection.fault is Fault.RESET:
        link.reset()
    elif injection.fault is Fault.DELAY:
        link.delay(rng.uniform(0.05, 0.3))
        await asyncio.sleep(injection.seconds)
        link.delay(0.0)
    else:
        link.lose(*_LOST[injection.fault])
        await asyncio.sleep(injection.seconds)
        link.heal()


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
