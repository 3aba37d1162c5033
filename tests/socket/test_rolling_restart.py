"""Every process is restarted, one after the other, while customers ask and read."""

from __future__ import annotations

import asyncio
import random
import signal
from functools import partial

import pytest

from tests.chaos.line import until_quiet
from tests.chaos.people import Asker
from tests.fakes.upstream.faults import Plan
from tests.fakes.upstream.handle import Upstream
from tests.fakes.upstream.script import Filler
from tests.support.processes import Web
from tests.support.stored import assert_whole, stored
from tests.support.world import World, made

pytestmark = pytest.mark.usefixtures("orm")

CUSTOMERS = 6


async def test_a_rolling_restart_loses_nothing_and_interrupts_no_answer(
    web_pair: tuple[Web, Web], plain_upstream: Upstream
) -> None:
    world = await made(model=plain_upstream)
    plain_upstream.always(Plan(script=Filler(tokens=60), tokens_per_s=40))
    serving = list(web_pair)
    customers = await asyncio.to_thread(_customers, world, serving)
    living = [asyncio.create_task(customer.live()) for customer in customers]
    talking = [asyncio.create_task(customer.talk()) for customer in customers]
    try:
        for web in web_pair:
            async with asyncio.timeout(30):
                await asyncio.gather(
                    *(customer.until(partial(_being_answered, customer)) for customer in customers)
                )
            # As a balancer does: what is being restarted gets no new lines.
            serving.remove(web)
            web.signal(signal.SIGTERM)
            assert await asyncio.to_thread(web.process.wait, 30) == 0
            web.start()
            await asyncio.to_thread(web.wait_ready)
            serving.append(web)
        for talk in talking:
            await until_quiet(talk)
        async with asyncio.timeout(30):
            await asyncio.gather(*(customer.until(customer.settled) for customer in customers))
    finally:
        for task in (*talking, *living):
            await until_quiet(task)
    assert sum(customer.closes.get(1012, 0) for customer in customers) >= CUSTOMERS
    for customer in customers:
        rows = await stored(customer.holding.conversation)
        shown = {place: frame["text"] for place, frame in customer.holding.messages.items()}
        assert {place: text for place, _, _, text in rows} == shown
        assert {state for _, _, state, _ in rows} == {"complete"}
        assert [author for _, author, _, _ in rows].count("customer") == len(customer.acknowledged)
        await assert_whole(customer.holding.conversation)


def _being_answered(customer: Asker) -> bool:
    return customer.holding.live is not None and customer.holding.live.text != ""


def _customers(world: World, serving: list[Web]) -> list[Asker]:
    rng = random.Random(3)

    def anywhere() -> str:
        return f"127.0.0.1:{rng.choice(serving).port}"

    return [Asker(random.Random(n), anywhere, name=f"c{n}", token=world.visitor()) for n in range(CUSTOMERS)]
