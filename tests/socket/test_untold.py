"""What a process has stored and was killed before telling: nobody noticed a loss, and everybody hears of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from apps.conversations import commands as c
from apps.conversations.log import Log
from tests.support.client import Frame
from tests.support.processes import Web
from tests.support.world import made

pytestmark = pytest.mark.usefixtures("orm")


async def store_and_tell_nobody(command: c.Command) -> c.Appended:
    log = Log(lambda _: None)
    log.open()
    try:
        return await log.append(command)
    finally:
        await log.close()


def shows(seq: int) -> Callable[[Frame], bool]:
    return lambda frame: bool(frame["row"]["seq"] == seq)


async def test_the_customer_and_every_inbox_hear_of_events_that_nobody_told(web: Web) -> None:
    world = await made()
    kim = await asyncio.to_thread(world.agent, "Kim")
    async with world.customer(web) as asker, world.desk(web, kim) as desk:
        await asker.say("I have a question")
        await asker.answer()
        me = (await desk.expect("presence", where=lambda f: f["agents"][0]["online"]))["agents"][0]["id"]
        now = datetime.now(UTC)
        wants = c.RequestHandoff(conversation=asker.conversation, customer=asker.welcome["customer"], at=now)
        done = c.Resolve(
            conversation=asker.conversation, workspace=world.workspace.pk, agent=me, name="Kim", at=now
        )
        # The first may be told for another reason: a young process has just opened its lines to the others.
        for command in (wants, done):
            untold = await store_and_tell_nobody(command)
            await asker.client.expect("event", seq=untold.seq, deadline_s=30)
            await desk.expect("inbox.row", where=shows(untold.seq), deadline_s=30)
