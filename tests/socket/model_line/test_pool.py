"""Connections to a model server: as many as its load asks for, open before they are needed, resumed, all closed."""

from __future__ import annotations

import asyncio

import pytest

from apps.accounts.models import Site
from apps.llm.models import ModelEndpoint
from apps.llm.pool import standing_here
from tests.fakes.upstream.faults import Action, Place, Plan, fault
from tests.fakes.upstream.handle import Upstream
from tests.fakes.upstream.script import Text
from tests.support.metrics import counted_here
from tests.support.model_line import BEGINS_S, SAID, ask, opened

pytestmark = pytest.mark.django_db(transaction=True)

TOGETHER = 8
STALL = Plan(script=Text(SAID), faults=fault(Action.STALL, Place.DATA).faults)


def metric(name: str, **labels: str) -> float:
    return counted_here(f"chatsvc_llm_{name}", **labels)


async def test_connections_stay_open_between_questions_and_are_counted_until_they_are_closed(
    site: Site, upstream: Upstream, one: ModelEndpoint
) -> None:
    before = metric("connections_open", dialect="generic")
    upstream.next(*[STALL] * TOGETHER)
    async with opened(site) as line:
        turns = [asyncio.create_task(ask(line, site)) for _ in range(TOGETHER)]
        await upstream.until("stalled", TOGETHER)
        busy = standing_here(one.pk)
        upstream.release()
        await asyncio.gather(*turns)
        idle = standing_here(one.pk)
        await asyncio.gather(*(ask(line, site) for _ in range(TOGETHER)))
        counts = upstream.counts()
        assert metric("connections_open", dialect="generic") == before + TOGETHER
    assert busy is not None
    assert idle is not None
    assert (busy.open, busy.in_flight) == (TOGETHER, TOGETHER)
    assert (idle.open, idle.in_flight) == (TOGETHER, 0)
    assert counts.connections_opened == TOGETHER
    await upstream.until("connections_open", 0, exactly=True)
    assert metric("connections_open", dialect="generic") == before
    assert metric("connections_wanted", dialect="generic") == 0


async def test_what_a_cancelled_answer_closed_is_opened_again_before_the_next_question(
    site: Site, upstream: Upstream, one: ModelEndpoint
) -> None:
    upstream.next(STALL)
    async with opened(site) as line:
        own = asyncio.all_tasks()
        turn = asyncio.create_task(ask(line, site))
        await upstream.until("stalled", 1)
        turn.cancel()
        await asyncio.gather(turn, return_exceptions=True)
        await upstream.until("connections_opened", 2)
        await upstream.until("finished", 2)
        if warming := asyncio.all_tasks() - own:  # which has yet to hear that
            await asyncio.wait(warming, timeout=BEGINS_S)
        assert (await ask(line, site)).text == SAID
        assert upstream.counts().connections_opened == 2


async def test_as_many_connections_as_the_load_asks_for_are_opened_without_a_question(
    site: Site, upstream: Upstream, one: ModelEndpoint
) -> None:
    upstream.next(*[Plan(script=Text(SAID), first_token_s=1.0)] * 20, STALL)
    async with opened(site) as line:
        await asyncio.gather(*(ask(line, site) for _ in range(20)))  # 2 a second for 1 s, and 1.3 of that
        upstream.end_connections()
        await upstream.until("connections_open", 0, exactly=True)
        turn = asyncio.create_task(ask(line, site))
        await upstream.until("stalled", 1)
        turn.cancel()
        await asyncio.gather(turn, return_exceptions=True)
        await upstream.until("connections_open", 3)
        here = standing_here(one.pk)
    assert here is not None
    assert here.wanted >= 3


async def test_a_second_connection_resumes_the_first_ones_tls_session(
    site: Site, upstream: Upstream, one: ModelEndpoint
) -> None:
    full, resumed = (metric("tls_handshakes_total", kind=kind) for kind in ("full", "resumed"))
    async with opened(site) as line:
        await ask(line, site)
        upstream.end_connections()
        assert (await ask(line, site)).text == SAID
    assert metric("tls_handshakes_total", kind="full") == full + 1
    assert metric("tls_handshakes_total", kind="resumed") == resumed + 1
