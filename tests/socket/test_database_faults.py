"""A database that is full, silent or was restarted: who waits is told in time, and nothing is lost or doubled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from apps.conversations.models import Message
from tests.support.breaking import end_sessions, frozen_database, full_disk
from tests.support.client import DEADLINE_S
from tests.support.processes import Deployment, Web
from tests.support.readiness import ready
from tests.support.stored import assert_whole
from tests.support.world import made

pytestmark = pytest.mark.usefixtures("orm")

TOLD_WITHIN_S = 15.0

Break = Callable[[str, Web], AbstractContextManager[None]]


@pytest.mark.parametrize(
    "broken", [full_disk, lambda url, _: frozen_database(url)], ids=["a full disk", "a silent database"]
)
async def test_what_cannot_be_stored_is_refused_in_time_and_stored_once_when_sent_again(
    web: Web, deployment: Deployment, broken: Break
) -> None:
    world = await made()
    async with world.customer(web) as line:
        said = {"type": "message.send", "id": "again", "conversation": line.conversation, "text": "Hello?"}
        with broken(deployment.database_url, web):
            await line.client.send(said)
            refused = await line.client.expect("refused", id="again", deadline_s=TOLD_WITHIN_S)
            assert (refused["code"], refused["of"]) == ("unavailable", "message.send")
            assert refused["conversation"] == line.conversation
            status, seen = await ready(web)
            assert (status, seen["status"]) == (503, "failing")
            assert seen["checks"]["database"] in {"takes nothing", "late"}
            await line.client.send({"type": "ping"})
            await line.client.expect("pong")
        await line.client.send(said)
        await line.client.expect("ack", id="again", deadline_s=TOLD_WITHIN_S)
        await line.answer()
        await line.client.expect("turn.ended", end="finished")
    rows = await asyncio.to_thread(
        lambda: list(
            Message.objects.filter(conversation=line.conversation).values_list("author", "client_id")
        )
    )
    assert rows == [("customer", "again"), ("assistant", "")]
    await assert_whole(line.conversation)
    async with asyncio.timeout(DEADLINE_S):
        while (await ready(web))[0] != 200:  # noqa: ASYNC110 - a page that is asked, no event
            await asyncio.sleep(0.1)


async def test_a_database_that_was_restarted_is_noticed_by_nobody(web: Web, deployment: Deployment) -> None:
    if not deployment.database_url.startswith("postgres"):
        pytest.skip("SQLite has no connections to lose")
    world = await made()

    async def ask() -> None:
        async with world.customer(web) as line:
            await line.say("Hello?")
            await line.answer()
            assert not line.client.received("refused")

    await asyncio.gather(*(ask() for _ in range(12)))
    await asyncio.to_thread(end_sessions, deployment.database_url)
    await asyncio.gather(*(ask() for _ in range(12)))
