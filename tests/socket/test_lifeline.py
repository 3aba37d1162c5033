"""A dead process's turn is taken up because its lock is free, not because its lease has run out."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from apps.conversations.models import Conversation
from apps.stores.ids import new_id
from apps.turns.models import ProcessLease
from apps.turns.rescue.lifeline import Lifeline
from tests.fakes.upstream.faults import Plan
from tests.fakes.upstream.handle import Upstream
from tests.fakes.upstream.script import Text, words
from tests.support.processes import Deployment, Web, wait_for
from tests.support.stored import assert_whole, stored
from tests.support.world import made

LONG = words(250)

# Of the deployment's own database: others run beside it on the same server.
_OURS = """
FROM pg_locks WHERE locktype = 'advisory'
AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""

pytestmark = pytest.mark.usefixtures("orm")


async def test_a_killed_processs_turn_is_taken_up_while_its_lease_still_runs(
    web_pair: tuple[Web, Web], plain_upstream: Upstream
) -> None:
    await _taken_up_without_the_lease(web_pair, plain_upstream)


async def test_after_every_session_was_cut_the_running_turn_goes_on_and_the_next_death_is_found(
    web_pair: tuple[Web, Web], deployment: Deployment, plain_upstream: Upstream
) -> None:
    if not deployment.database_url.startswith("postgres"):
        pytest.skip("an SQLite database has no sessions")
    world = await made(model=plain_upstream)
    plain_upstream.next(Plan(script=Text(LONG), tokens_per_s=60))
    async with world.customer(web_pair[0]) as line:
        await line.say("Hello?")
        await line.client.expect("delta")
        with psycopg.connect(deployment.database_url, autocommit=True, connect_timeout=10) as cut:
            before = _holders(cut)
            cut.execute(f"SELECT pg_terminate_backend(pid) {_OURS}")
            await asyncio.to_thread(wait_for, lambda: len(_holders(cut) - before) == len(before))
        await line.message(LONG)
    assert [row[2] for row in await stored(line.conversation)] == ["complete", "complete"]
    await _taken_up_without_the_lease(web_pair, plain_upstream)


async def test_whose_session_was_cut_holds_the_lock_again_after_one_look(deployment: Deployment) -> None:
    if not deployment.database_url.startswith("postgres"):
        pytest.skip("an SQLite database has no sessions")
    lifeline = Lifeline(new_id())
    with psycopg.connect(deployment.database_url, autocommit=True, connect_timeout=10) as cut:
        others = _holders(cut)
        await lifeline.look()
        [cut_one] = _holders(cut) - others
        cut.execute("SELECT pg_terminate_backend(%s, 10000)", (cut_one,))
        assert _holders(cut) == others
        await lifeline.look()
        assert len(_holders(cut) - others) == 1
    await lifeline.close()


async def _taken_up_without_the_lease(webs: tuple[Web, Web], upstream: Upstream) -> None:
    world = await made(model=upstream)
    upstream.next(Plan(script=Text(LONG), tokens_per_s=40), Plan(script=Text("From here.")))
    token = world.visitor()
    async with (
        world.customer(webs[0], token=token) as line,
        world.customer(webs[1], token=token) as other,
    ):
        await line.say("Hello?")
        await line.client.expect("delta")
        await asyncio.to_thread(webs[0].kill)
        await asyncio.to_thread(_prolong_lease, line.conversation)
        await other.message("From here.")
        await other.client.expect("turn.ended", end="finished")
    assert [row[2] for row in await stored(line.conversation)] == ["complete", "interrupted", "complete"]
    await assert_whole(line.conversation)


def _prolong_lease(conversation: str) -> None:
    holder = Conversation.objects.filter(pk=conversation).values("turn_process")
    ProcessLease.objects.filter(process__in=holder).update(seen_at=datetime.now(UTC) + timedelta(hours=1))


def _holders(connection: psycopg.Connection[tuple[int]]) -> set[int]:
    rows = connection.execute(f"SELECT pid {_OURS} AND mode = 'ExclusiveLock'")
    return {pid for (pid,) in rows}
