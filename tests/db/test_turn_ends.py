"""One process's turns from the inside: each ends in bounded time, whatever hangs, breaks or comes between."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import pytest_asyncio
from django.db import connection

from apps.conversations import commands as c
from apps.conversations.models import Conversation, Message
from apps.conversations.opening import empty_conversation
from apps.customers.identity import Identified, identify
from apps.engine.languages import Language
from apps.rulebook.models import Rule
from apps.stores.database import THREADS, in_database
from apps.stores.ids import new_id
from apps.stores.redis import connect
from apps.telemetry.waterfall import Waterfall
from apps.turns.between.announcements import OwnerMoved, StopPressed
from apps.turns.between.buffer import StreamBuffer
from apps.turns.between.switchboard import Switchboard
from apps.turns.job import Limits, Said
from apps.turns.office import Office
from apps.turns.rescue import leases
from apps.turns.sentences import NO_MODEL
from apps.wire.protocol import MessageState
from apps.wire.publish import Audience, Encoded
from apps.wire.server_frames import Pong
from chatsvc.owner import ProcessOwner
from tests.fakes.upstream.faults import Action, Fault, Place, Plan
from tests.fakes.upstream.handle import Upstream
from tests.fakes.upstream.script import Text, words
from tests.services import private_folder
from tests.support.breaking import Redis, locked_database
from tests.support.client import Frame, decode
from tests.support.processes import ended_after
from tests.support.world import World, make_world

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis_url")]

DEADLINE_S = 10.0
STALLED = Plan(faults=(Fault(action=Action.STALL, place=Place.DATA, keepalive_s=0.05),))
LONG = words(200)

Owned = Callable[..., Any]


class Line:
    """A customer on one conversation of an office, without a socket between. `frames` is what a socket would get."""

    def __init__(self, office: Office, who: Identified, conversation: str) -> None:
        self.office = office
        self.who = who
        self.conversation = conversation
        self.frames: list[Frame] = []
        self._news = asyncio.Event()

    def deliver(self, frame: Encoded) -> None:
        self.frames.append(decode(frame.text))
        self._news.set()

    def said(self, text: str, client_id: str | None = None) -> Said:
        return Said(
            conversation=self.conversation,
            site=self.who.site_id,
            asker=self.who,
            name="",
            client_id=client_id or new_id(),
            text=text,
            locale="en",
            received=Waterfall(),
        )

    async def say(self, text: str, client_id: str | None = None) -> c.Appended:
        return await self.office.supervisor.customer_message(self.said(text, client_id))

    async def expect(self, kind: str, /, **fields: Any) -> Frame:
        """The first frame of this type with these values. Raises `TimeoutError` with what came instead."""
        try:
            async with asyncio.timeout(DEADLINE_S):
                while True:
                    for frame in self.frames:
                        if frame["type"] == kind and all(frame.get(k) == v for k, v in fields.items()):
                            return frame
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            raise AssertionError(f"no {kind} {fields}; got {[f['type'] for f in self.frames]}") from None

    def count(self, kind: str) -> int:
        return sum(frame["type"] == kind for frame in self.frames)


@pytest_asyncio.fixture
async def owned() -> AsyncIterator[Owned]:
    """Starts a process's owner with the given limits; all are drained in the end."""
    owners: list[ProcessOwner] = []

    async def start(**limits: float) -> Office:
        owner = ProcessOwner(Limits(**limits))
        owners.append(owner)
        await owner.start()
        return owner.office

    yield start
    for owner in owners:
        await owner.drain(0.1)


async def opened(office: Office, world: World) -> Line:
    """A visitor of this world looks at a new conversation."""

    def arrive() -> tuple[Identified, str]:
        who = identify(world.visitor(), "")
        return who, empty_conversation(who.customer_id, "en")

    who, conversation = await in_database(arrive)
    await office.residents.load()
    line = Line(office, who, conversation)
    await office.attendance.join(Audience.CUSTOMERS, conversation, line)
    return line


async def kept(conversation: str) -> list[tuple[str, str, str]]:
    """(author, state, text) of every message."""

    def read() -> list[tuple[str, str, str]]:
        rows = Message.objects.filter(conversation_id=conversation).order_by("place")
        return list(rows.values_list("author", "state", "text"))

    return await in_database(read)


@pytest.fixture
def refused_adoption() -> Iterator[asyncio.Event]:
    """Set when the sweep could not take up a turn."""
    happened = asyncio.Event()

    class Ear(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if "could not be looked after" in record.msg:
                happened.set()

    ear, log = Ear(), logging.getLogger("apps.turns.rescue.care")
    log.addHandler(ear)
    yield happened
    log.removeHandler(ear)


_REFUSING = {
    "sqlite": (
        "CREATE TRIGGER refused BEFORE INSERT ON conversations_message"
        " BEGIN SELECT RAISE(ABORT, 'refused'); END",
        "DROP TRIGGER refused",
    ),
    "postgresql": (
        "CREATE FUNCTION refused() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE check_violation; END $$;"
        " CREATE TRIGGER refused BEFORE INSERT ON conversations_message EXECUTE FUNCTION refused()",
        "DROP FUNCTION refused CASCADE",
    ),
}


@asynccontextmanager
async def no_message_taken() -> AsyncIterator[None]:
    """The database refuses at once what it is given."""

    def do(statement: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute(statement)

    refuse, take = _REFUSING[connection.vendor]
    await in_database(do, refuse)
    try:
        yield
    finally:
        await in_database(do, take)


def database_url() -> str:
    settings = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{settings['NAME']}"
    return f"postgresql://{settings['USER']}@/{settings['NAME']}?host={settings['HOST']}"


async def test_a_cancelled_call_to_redis_stays_cancelled() -> None:
    redis = connect()
    buffer = StreamBuffer(redis, "process")
    await buffer.begin("conversation", 1, "turn", 1)

    async def ask_for_ever() -> None:
        while True:
            await buffer.append("conversation", 1, 0, "", 0.0)

    late = 0
    for steps in range(400):
        asking = asyncio.create_task(ask_for_ever())
        for _ in range(steps % 60):
            await asyncio.sleep(0)
        asking.cancel()
        _, pending = await asyncio.wait([asking], timeout=10)  # or never: it asks for ever
        late += len(pending)
        while not asking.done():
            asking.cancel()
            await asyncio.sleep(0)
    await redis.aclose()
    assert late == 0


async def test_a_turn_that_hangs_is_ended_at_its_deadline(owned: Owned, plain_upstream: Upstream) -> None:
    world = await in_database(make_world, model=plain_upstream)
    plain_upstream.always(STALLED)
    line = await opened(await owned(part_s=0.3), world)
    await line.say("Hello?")
    await line.expect("turn.ended", end="failed")
    await plain_upstream.until("requests_open", 0, exactly=True)
    [_, answer] = await kept(line.conversation)
    assert answer[:2] == ("assistant", "complete")
    assert "can't answer" in answer[2]


async def test_a_history_that_cannot_be_read_in_time_ends_the_turn(
    owned: Owned, plain_upstream: Upstream
) -> None:
    world = await in_database(make_world, model=plain_upstream)
    office = await owned(history_s=0.3)
    line = await opened(office, world)
    busy, free = threading.Semaphore(0), threading.Event()

    def occupy() -> None:
        busy.release()
        free.wait()

    readers = [asyncio.create_task(in_database(occupy)) for _ in range(THREADS)]
    for _ in readers:
        await asyncio.to_thread(busy.acquire)
    try:
        await line.say("Hello?")
        await line.expect("turn.ended", end="failed")
        assert [seen for seen in plain_upstream.requests() if seen.method == "POST"] == []
    finally:
        free.set()
        await asyncio.gather(*readers)
    [_, answer] = await kept(line.conversation)
    assert "can't answer" in answer[2]


async def test_a_text_that_stands_still_at_its_deadline_is_kept_and_answered_for_but_not_tried_again(
    owned: Owned, plain_upstream: Upstream
) -> None:
    world = await in_database(make_world, model=plain_upstream)
    stalled = Fault(action=Action.STALL, place=Place.STREAM, after_tokens=3, keepalive_s=0.05)
    plain_upstream.always(Plan(script=Text(LONG), faults=(stalled,)))
    line = await opened(await owned(part_s=1.0), world)
    await line.say("Hello?")
    await line.expect("turn.ended", end="interrupted")
    [_, answer, apology] = await kept(line.conversation)
    assert answer[:2] == ("assistant", "interrupted")
    assert LONG.startswith(answer[2])
    assert apology == ("assistant", "complete", NO_MODEL[Language.ENGLISH])
    row = await in_database(Conversation.objects.get, pk=line.conversation)
    assert (row.turn, line.count("turn.started")) == ("", 1)


async def test_an_end_that_the_database_does_not_take_is_told_and_stored_once_it_does(
    owned: Owned, plain_upstream: Upstream
) -> None:
    world = await in_database(make_world, model=plain_upstream)
    plain_upstream.always(Plan(script=Text("Here."), faults=STALLED.faults))
    line = await opened(await owned(store_s=0.2), world)
    await line.say("Hello?")
    await plain_upstream.until("stalled", 1)
    with locked_database(database_url()):
        await asyncio.to_thread(plain_upstream.release)
        await line.expect("turn.ended", end="interrupted")
    await line.expect("event", kind="message", seq=3)
    assert await kept(line.conversation) == [
        ("customer", "complete", "Hello?"),
        ("assistant", "complete", "Here."),
    ]
    assert (await in_database(Conversation.objects.get, pk=line.conversation)).turn == ""


async def test_a_turn_shows_nothing_while_a_newer_message_may_be_stored_whose_sender_has_left(
    owned: Owned, plain_upstream: Upstream
) -> None:
    world = await in_database(make_world, model=plain_upstream)
    first = Plan(script=Text(words(30)), faults=STALLED.faults, tokens_per_s=100)
    plain_upstream.next(first, Plan(script=Text("To both.")))
    line = await opened(await owned(), world)
    await line.say("First?")
    await plain_upstream.until("stalled", 1)
    with locked_database(database_url()):
        saying = asyncio.create_task(line.say("Second?"))
        await asyncio.sleep(0)  # the message is on its way to the database
        saying.cancel()
        await asyncio.wait([saying])
        await asyncio.to_thread(plain_upstream.release)
        await plain_upstream.until("requests_open", 0, exactly=True)
    await line.expect("turn.ended", end="superseded")
    await line.expect("turn.ended", end="finished")
    assert "".join(frame["text"] for frame in line.frames if frame["type"] == "delta") == "To both."
    assert [row[2] for row in await kept(line.conversation)] == ["First?", "Second?", "To both."]


async def test_an_answer_that_ends_while_a_newer_message_is_refused_is_kept(
    owned: Owned, plain_upstream: Upstream
) -> None:
    world = await in_database(make_world, model=plain_upstream)
    plain_upstream.always(Plan(script=Text("Here."), faults=STALLED.faults))
    line = await opened(await owned(), world)
    await line.say("Hello?", "same")
    await plain_upstream.until("stalled", 1)
    with locked_database(database_url()):
        repeated = asyncio.create_task(line.say("Something else", "same"))
        await asyncio.sleep(0)  # the message is on its way to the database
        await asyncio.to_thread(plain_upstream.release)
        await plain_upstream.until("requests_open", 0, exactly=True)
    with pytest.raises(c.Refusal):
        await repeated
    await line.expect("turn.ended", end="finished")
    assert await kept(line.conversation) == [
        ("customer", "complete", "Hello?"),
        ("assistant", "complete", "Here."),
    ]


async def test_news_of_an_earlier_owner_does_not_cut_a_newer_turn(
    owned: Owned, plain_upstream: Upstream
) -> None:
    world = await in_database(make_world, model=plain_upstream)
    plain_upstream.always(Plan(script=Text("Here."), faults=STALLED.faults))
    office = await owned()
    line = await opened(office, world)
    other = Switchboard("other")
    speaking = [asyncio.create_task(task()) for name, task in other.tasks() if name == "publish"]
    row = await in_database(Conversation.objects.get, pk=line.conversation)
    await line.say("Hello?")
    await plain_upstream.until("stalled", 1)
    other.announce(OwnerMoved(line.conversation, row.owner_version))
    other.announce(StopPressed(line.conversation, turn="none", painted=0))
    await heard(other, office)
    await asyncio.to_thread(plain_upstream.release)
    await line.expect("turn.ended", end="finished")
    for task in speaking:
        task.cancel()
    assert (await kept(line.conversation))[1][2] == "Here."


async def heard(speaker: Switchboard, office: Office) -> None:
    """Returns when the office's process has got everything the speaker has said so far."""

    class Ear:
        def __init__(self) -> None:
            self.heard = asyncio.Event()

        def deliver(self, frame: Encoded) -> None:
            self.heard.set()

    ear = Ear()
    await office.runtime.switchboard.join(Audience.INBOX, "nobody", ear)
    speaker.send(Audience.INBOX, "nobody", Pong())
    async with asyncio.timeout(DEADLINE_S):
        await ear.heard.wait()


async def test_a_takeover_in_the_commit_that_opens_a_turn_cuts_it(
    owned: Owned, plain_upstream: Upstream, settings: Any
) -> None:
    settings.REDIS_URL = "unix:///nonexistent/redis.sock"  # no flush may learn it from there
    world = await in_database(make_world, model=plain_upstream)
    plain_upstream.always(Plan(script=Text(LONG), tokens_per_s=50))
    office = await owned()
    line = await opened(office, world)
    agent = await in_database(agent_of, world)
    take = c.Take(
        conversation=line.conversation,
        workspace=world.workspace.pk,
        agent=agent,
        name="Kim",
        at=datetime.now(UTC),
    )
    saying = asyncio.create_task(line.say("Hello?"))
    taking = asyncio.create_task(office.runtime.log.append(take))
    await asyncio.gather(saying, taking)
    await line.expect("turn.ended", end="taken_over")
    await plain_upstream.until("requests_open", 0, exactly=True)
    assert line.count("delta") == 0
    assert [row[0] for row in await kept(line.conversation)] == ["customer"]


def agent_of(world: World) -> str:
    world.agent("Kim")
    agent = world.workspace.agents.get()
    return str(agent.pk)


@pytest.mark.parametrize(
    ("parts", "rows"),
    [
        ([], ["First?", "To the first.", "Second?", "At last."]),
        # A later part of an earlier answer stands below what was asked during its first.
        (["To the"], ["First?", "To the", "Second?", "To the first.", "At last."]),
    ],
)
async def test_a_question_that_no_process_has_taken_up_is_answered(
    owned: Owned, plain_upstream: Upstream, parts: list[str], rows: list[str]
) -> None:
    world = await in_database(make_world, model=plain_upstream)
    plain_upstream.always(Plan(script=Text("At last.")))
    line = await opened(await owned(), world)
    # As a process leaves it that is killed between the end of a turn and the next: a second question, and no turn.
    gone = Gone(line)
    await gone.hears("First?")
    await gone.hears("Second?")
    for part in parts:
        await gone.breaks_off(part)
    await gone.answers("To the first.")
    await line.expect("turn.ended", end="finished")
    assert [row[2] for row in await kept(line.conversation)] == rows


class Gone:
    """What a process has stored half a minute ago, before it was killed."""

    def __init__(self, line: Line) -> None:
        self._log = line.office.runtime.log
        self._line = line
        self._opened: c.OpenedTurn | None = None

    @property
    def turn(self) -> c.OpenedTurn:
        assert self._opened is not None
        return self._opened

    async def hears(self, text: str) -> None:
        stored = await self._log.append(
            c.CustomerMessage(
                conversation=self._line.conversation,
                customer=self._line.who.customer_id,
                name="",
                client_id=new_id(),
                text=text,
                at=datetime.now(UTC) - timedelta(seconds=30),
                turn=new_id(),
                process="gone",
                assistant=True,
            )
        )
        self._opened = self._opened or stored.opened

    async def breaks_off(self, text: str) -> None:
        """And goes on in another part."""
        adopted = await self._log.append(
            c.AdoptTurn(
                conversation=self._line.conversation,
                turn=self.turn.turn,
                fence=self.turn.fence,
                text=text,
                name="",
                process="gone",
                retry=True,
                at=datetime.now(UTC) - timedelta(seconds=25),
            )
        )
        self._opened = adopted.opened

    async def answers(self, text: str) -> None:
        await self._log.append(
            c.FinishTurn(
                conversation=self._line.conversation,
                turn=self.turn.turn,
                fence=self.turn.fence,
                part=self.turn.part,
                text=text,
                state=MessageState.COMPLETE,
                name="",
                at=datetime.now(UTC) - timedelta(seconds=20),
            )
        )


@pytest.mark.parametrize(("painted", "text"), [(6, ["One 🏮"]), (0, [])])
async def test_a_stop_that_its_process_did_not_live_to_hear_is_kept_and_told(
    owned: Owned, plain_upstream: Upstream, painted: int, text: list[str]
) -> None:
    world = await in_database(make_world, model=plain_upstream)
    office = await owned()
    line = await opened(office, world)
    await in_database(leases.renew, "gone")
    gone = Gone(line)
    await gone.hears("Hello?")
    turn, fence = gone.turn.turn, gone.turn.fence
    await office.runtime.buffer.begin(line.conversation, fence, turn, 1, text="One 🏮 two three")
    assert await office.supervisor.stop(line.conversation, turn, painted)
    await in_database(leases.release, "gone")
    ended = await line.expect("turn.ended", handle=fence, end="stopped")
    assert ended.get("length", 0) == painted
    answers = [("assistant", "stopped", part) for part in text]
    assert await kept(line.conversation) == [("customer", "complete", "Hello?"), *answers]
    assert (await in_database(Conversation.objects.get, pk=line.conversation)).turn == ""
    assert [seen for seen in plain_upstream.requests() if seen.method == "POST"] == []


async def test_a_stop_whose_end_the_database_did_not_take_is_kept_and_nothing_is_answered_again(
    owned: Owned, plain_upstream: Upstream, refused_adoption: asyncio.Event
) -> None:
    world = await in_database(make_world, model=plain_upstream)
    plain_upstream.always(Plan(script=Text(LONG), faults=(Fault(action=Action.STALL, after_tokens=3),)))
    office = await owned(store_s=0.2)
    line = await opened(office, world)
    await line.say("Hello?")
    await line.expect("delta")
    started = await line.expect("turn.started")
    async with no_message_taken():
        assert await office.supervisor.stop(line.conversation, started["turn"], 2)
        async with asyncio.timeout(DEADLINE_S):
            await refused_adoption.wait()
    await line.expect("event", kind="message", seq=3)
    assert await kept(line.conversation) == [
        ("customer", "complete", "Hello?"),
        ("assistant", "stopped", LONG[:2]),
    ]
    assert (await in_database(Conversation.objects.get, pk=line.conversation)).turn == ""
    assert len([seen for seen in plain_upstream.requests() if seen.method == "POST"]) == 1


async def test_what_is_asked_while_an_answer_breaks_off_is_answered_as_a_question_of_its_own(
    owned: Owned, plain_upstream: Upstream
) -> None:
    def arranged() -> World:
        world = make_world(model=plain_upstream)
        asked = 'text == "Second?"'
        Rule.objects.create(site=world.site, name="r", condition=asked, reply_en="To the second.")
        return world

    world = await in_database(arranged)
    amid = (Fault(action=Action.STALL, after_tokens=3), Fault(action=Action.RESET, after_tokens=5))
    plain_upstream.next(Plan(script=Text(LONG), faults=amid))
    line = await opened(await owned(), world)
    await line.say("First?")
    await line.expect("delta")
    await line.say("Second?")
    await asyncio.to_thread(plain_upstream.release)
    await line.expect("turn.ended", end="finished")
    first, part, second, answer = await kept(line.conversation)
    assert (first[2], second[2]) == ("First?", "Second?")
    assert part[1] == "interrupted"
    assert answer == ("assistant", "complete", "To the second.")


async def test_what_customers_saw_of_an_end_that_was_not_stored_is_kept_although_redis_has_lost_it(
    owned: Owned, plain_upstream: Upstream, settings: Any, refused_adoption: asyncio.Event
) -> None:
    with private_folder("chatsvc-redis-") as folder, ended_after(redis := Redis(folder)):
        settings.REDIS_URL = redis.url
        world = await in_database(make_world, model=plain_upstream)
        plain_upstream.next(
            Plan(script=Text("Here."), faults=STALLED.faults), Plan(script=Text("Once more."))
        )
        office = await owned(store_s=0.2)
        line = await opened(office, world)
        await line.say("Hello?")
        await plain_upstream.until("stalled", 1)
        async with no_message_taken():
            await asyncio.to_thread(plain_upstream.release)
            await line.expect("turn.ended", end="interrupted")
            redis.kill()
            async with asyncio.timeout(DEADLINE_S):
                await refused_adoption.wait()
            redis.lose_everything()
        await line.expect("turn.ended", end="finished")
    assert await kept(line.conversation) == [
        ("customer", "complete", "Hello?"),
        ("assistant", "interrupted", "Here."),
        ("assistant", "complete", "Once more."),
    ]


async def test_a_conversation_deleted_in_between_stops_neither_sweep_nor_feed(
    owned: Owned, plain_upstream: Upstream
) -> None:
    world = await in_database(make_world, model=plain_upstream)
    plain_upstream.always(Plan(script=Text("Yes.")))
    office = await owned()
    await office.care.adopt_if_dead("no-such", "gone")
    office.feed.changed("no-such")
    line = await opened(office, world)
    inbox = Line(office, line.who, line.conversation)
    await office.runtime.switchboard.join(Audience.INBOX, world.workspace.pk, inbox)
    await line.say("Do you sell lamps?")
    await inbox.expect("inbox.row")


async def test_a_model_that_says_what_cannot_be_stored_is_repaired(
    owned: Owned, plain_upstream: Upstream
) -> None:
    world = await in_database(make_world, model=plain_upstream)
    plain_upstream.always(Plan(script=Text("One\x00two\x00")))
    line = await opened(await owned(), world)
    await line.say("Hello?")
    await line.expect("turn.ended", end="finished")
    assert (await kept(line.conversation))[1][2] == "Onetwo"
