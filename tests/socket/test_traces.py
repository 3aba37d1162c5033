"""What is measured of every turn, from its question to its paint, and that measuring touches nothing else."""

from __future__ import annotations

import asyncio

import pytest

from apps.conversations.models import Event
from tests.fakes.upstream.faults import Plan
from tests.fakes.upstream.handle import Upstream
from tests.fakes.upstream.script import Text, words
from tests.support.client import Client, Frame
from tests.support.processes import Web
from tests.support.world import Open, World, made

pytestmark = pytest.mark.usefixtures("orm")

SLOW = Plan(script=Text(words(60)), tokens_per_s=60)


async def watching(desk: Client, conversation: str) -> None:
    await desk.send({"type": "conversation.watch", "conversation": conversation})
    await desk.expect("watching")


async def painted(line: Open, started: Frame, **fields: object) -> None:
    await line.client.send({"type": "turn.painted", "handle": started["handle"], "upto": 1} | fields)


async def asked(world: World, web: Web, paint_after: str, **paint: object) -> tuple[list[Frame], int]:
    """The waterfalls of one turn whose paint was reported after this frame, and how many events it left."""
    kim = await asyncio.to_thread(world.agent, "Kim")
    async with world.customer(web) as line, world.desk(web, kim) as desk:
        await watching(desk, line.conversation)
        await line.say("Hello?")
        started = await line.client.expect("turn.started")
        await line.client.expect(paint_after)
        await painted(line, started, **paint)
        if paint_after == "turn.ended":
            await desk.expect("waterfall", where=lambda f: "painted_ms" in f)
        else:
            await desk.expect("waterfall")
        events = await asyncio.to_thread(Event.objects.filter(conversation=line.conversation).count)
    return desk.received("waterfall"), events


async def test_a_paint_during_the_answer_is_in_its_record(web: Web, plain_upstream: Upstream) -> None:
    world = await made(model=plain_upstream)
    plain_upstream.always(SLOW)
    [trace], events = await asked(world, web, "delta", ms=4_321.5)
    paint = next(stage for stage in trace["stages"] if stage["name"] == "painted")
    assert trace["painted_ms"] == 4_321.5
    assert paint["start_ms"] + paint["ms"] == pytest.approx(4_321.5)
    assert 0 < trace["added_ms"] < trace["painted_ms"]
    assert events == 3


async def test_a_paint_after_a_short_answer_comes_as_a_second_frame(web: Web) -> None:
    world = await made()
    [before, after], events = await asked(world, web, "turn.ended", ms=900.0)
    assert "painted_ms" not in before
    assert (after["turn"], after["painted_ms"]) == (before["turn"], 900.0)
    assert events == 3


@pytest.mark.parametrize("ms", [-1e9, 0, 1e300], ids=["negative", "nought", "huge"])
async def test_no_client_can_report_less_than_our_own_part_or_more_than_ten_minutes(
    web: Web, ms: float
) -> None:
    world = await made()
    [*_, trace], _ = await asked(world, web, "turn.ended", ms=ms)
    frame = next(stage for stage in trace["stages"] if stage["name"] == "first_frame")
    assert frame["start_ms"] + frame["ms"] - 0.02 <= trace["painted_ms"] <= 600_000


async def test_only_the_first_report_counts_and_another_handle_changes_nothing(
    web: Web, plain_upstream: Upstream
) -> None:
    world = await made(model=plain_upstream)
    plain_upstream.always(SLOW)
    kim = await asyncio.to_thread(world.agent, "Kim")
    async with world.customer(web) as line, world.desk(web, kim) as desk:
        await watching(desk, line.conversation)
        await line.say("Hello?")
        started = await line.client.expect("turn.started")
        await line.client.expect("delta")
        await painted(line, {"handle": started["handle"] + 1}, ms=7.0)
        await painted(line, started, ms=800.0)
        await painted(line, started, ms=5.0)
        await painted(line, started, upto=5)
        trace = await desk.expect("waterfall")
    assert trace["painted_ms"] == 800.0
    assert line.client.received("refused") == []


async def test_a_paint_reported_to_another_process_reaches_the_record(
    web_pair: tuple[Web, Web], plain_upstream: Upstream
) -> None:
    world = await made(model=plain_upstream)
    plain_upstream.always(SLOW)
    kim = await asyncio.to_thread(world.agent, "Kim")
    async with (
        world.tabs(*web_pair) as (line, other),
        world.desk(web_pair[0], kim) as desk,
    ):
        await watching(desk, line.conversation)
        await line.say("Hello?")
        started = await other.client.expect("turn.started")
        await other.client.expect("delta")
        await painted(other, started, ms=1_234.0)
        trace = await desk.expect("waterfall")
    assert trace["painted_ms"] == 1_234.0
