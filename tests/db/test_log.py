"""The writer of durable events against a real database, with real threads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
import pytest_asyncio
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.accounts.models import Agent, Site, Workspace
from apps.conversations import commands as c
from apps.conversations import selectors
from apps.conversations.log import Log
from apps.conversations.models import Conversation, Event, Message, OutboxItem
from apps.conversations.opening import current_conversation, empty_conversation
from apps.customers.models import Customer
from apps.stores.database import in_database
from apps.stores.ids import new_id
from apps.wire.protocol import ErrorCode, EventKind, MessageState

pytestmark = pytest.mark.django_db(transaction=True)


class World:
    """A workspace with customers, and the log under test."""

    def __init__(self) -> None:
        self.committed: list[c.Appended] = []
        self.log = Log(self.committed.append)

    def fill(self) -> None:
        self.workspace = Workspace.objects.create(name="Lantern")
        self.site = Site.objects.create(workspace=self.workspace, name="Shop")
        self.customer = Customer.objects.create(site=self.site)

    def conversation(self) -> str:
        made = Conversation.objects.create(
            workspace=self.workspace, site=self.site, customer=Customer.objects.create(site=self.site)
        )
        return made.pk

    def agent(self, name: str) -> str:
        user = User.objects.create(username=name)
        return Agent.objects.create(workspace=self.workspace, user=user, name=name).pk

    def says(
        self, conversation: str, client_id: str, text: str = "hello", *, assistant: bool = True
    ) -> c.CustomerMessage:
        customer = Conversation.objects.values_list("customer_id", flat=True).get(pk=conversation)
        return self.said(conversation, customer, client_id, text, assistant=assistant)

    def said(
        self, conversation: str, customer: str, client_id: str, text: str, *, assistant: bool = True
    ) -> c.CustomerMessage:
        return c.CustomerMessage(
            conversation=conversation,
            customer=customer,
            name="Mia",
            client_id=client_id,
            text=text,
            at=datetime.now(UTC),
            turn=new_id(),
            process="p1",
            assistant=assistant,
        )


def seqs(conversation: str) -> list[int]:
    return list(
        Event.objects.filter(conversation_id=conversation).order_by("seq").values_list("seq", flat=True)
    )


@pytest_asyncio.fixture
async def world() -> AsyncIterator[World]:
    world = World()
    await in_database(world.fill)
    world.log.open()
    yield world
    await world.log.close()


async def test_an_acknowledged_message_is_stored_with_its_number(world: World) -> None:
    conversation = await in_database(world.conversation)
    appended = await world.log.append(await in_database(world.says, conversation, "m1", "Où est ma 🏕️?"))
    stored = await in_database(lambda: Message.objects.get(conversation_id=conversation))
    assert (stored.text, stored.place, stored.state) == ("Où est ma 🏕️?", appended.seq, "complete")
    assert [event.kind for event in world.committed[0].events] == [EventKind.MESSAGE, EventKind.TURN_OPENED]


async def test_many_writers_leave_no_hole_and_no_double(world: World) -> None:
    conversations = [await in_database(world.conversation) for _ in range(5)]
    commands = [
        await in_database(world.says, conversation, f"{conversation}-{n}")
        for n in range(20)
        for conversation in conversations
    ]
    acknowledged = await asyncio.gather(*(world.log.append(command) for command in commands))
    for conversation in conversations:
        numbers = await in_database(seqs, conversation)
        assert numbers == list(range(1, len(numbers) + 1))
        acked = [a.seq for a in acknowledged if a.standing.conversation == conversation]
        assert acked == sorted(set(acked))
        assert len(acked) == 20


async def test_two_writers_on_one_database_share_the_numbers(world: World) -> None:
    conversation = await in_database(world.conversation)
    other = Log(lambda _: None)
    other.open()
    commands = [await in_database(world.says, conversation, f"m{n}") for n in range(40)]
    logs = [world.log, other]
    acknowledged = await asyncio.gather(*(logs[n % 2].append(command) for n, command in enumerate(commands)))
    await other.close()
    assert len({a.seq for a in acknowledged}) == 40
    last = await in_database(lambda: Conversation.objects.get(pk=conversation).last_seq)
    assert await in_database(lambda: Event.objects.filter(conversation_id=conversation).count()) == last


async def test_a_repeat_returns_the_first_result_also_inside_one_batch(world: World) -> None:
    conversation = await in_database(world.conversation)
    command = await in_database(world.says, conversation, "m1")
    first, second = await asyncio.gather(world.log.append(command), world.log.append(command))
    third = await world.log.append(command)
    assert first.seq == second.seq == third.seq
    assert await in_database(lambda: Message.objects.count()) == 1
    assert sum(len(appended.events) for appended in world.committed) == 2


async def test_a_used_id_with_another_body_is_refused_and_nothing_changes(world: World) -> None:
    conversation = await in_database(world.conversation)
    await world.log.append(await in_database(world.says, conversation, "m1"))
    with pytest.raises(c.Refusal) as refused:
        await world.log.append(await in_database(world.says, conversation, "m1", "other words"))
    assert refused.value.code is ErrorCode.ID_REUSED
    assert await in_database(lambda: [m.text for m in Message.objects.all()]) == ["hello"]


async def test_a_refused_command_leaves_its_batch_alone(world: World) -> None:
    conversation = await in_database(world.conversation)
    good = await in_database(world.says, conversation, "m1")
    bad = world.said("no-such-conversation", "nobody", "m2", "hello")
    results = await asyncio.gather(world.log.append(bad), world.log.append(good), return_exceptions=True)
    assert isinstance(results[0], c.Refusal)
    assert isinstance(results[1], c.Appended)


async def test_a_command_the_database_refuses_leaves_its_batch_alone(world: World) -> None:
    conversation = await in_database(world.conversation)
    good = await in_database(world.says, conversation, "m1")
    taken = c.Take(
        conversation=conversation,
        workspace=world.workspace.pk,
        agent="no-such-agent",
        name="X",
        at=datetime.now(UTC),
    )
    results = await asyncio.gather(world.log.append(good), world.log.append(taken), return_exceptions=True)
    assert isinstance(results[0], c.Appended)
    assert isinstance(results[1], c.LogUnavailable)
    assert await in_database(lambda: Conversation.objects.get(pk=conversation).owner_kind) == "assistant"


async def test_of_two_agents_at_once_one_wins(world: World) -> None:
    conversation = await in_database(world.conversation)
    agents = [await in_database(world.agent, name) for name in ("kim", "ana")]
    takes = [
        c.Take(conversation=conversation, workspace=world.workspace.pk, agent=a, name=a, at=datetime.now(UTC))
        for a in agents
    ]
    results = await asyncio.gather(*(world.log.append(take) for take in takes), return_exceptions=True)
    refused = [result for result in results if isinstance(result, c.Refusal)]
    assert [refusal.code for refusal in refused] == [ErrorCode.ALREADY_TAKEN]
    owner = await in_database(lambda: Conversation.objects.get(pk=conversation).owner_agent_id)
    assert owner == agents[[isinstance(result, c.Appended) for result in results].index(True)]


async def test_of_two_writers_racing_the_loser_is_always_told_the_winners_name(world: World) -> None:
    agents = {name: await in_database(world.agent, name) for name in ("kim", "ana")}
    other = Log(lambda _: None)
    other.open()
    for _ in range(20):
        conversation = await in_database(world.conversation)
        takes = [
            c.Take(
                conversation=conversation,
                workspace=world.workspace.pk,
                agent=agent,
                name=name,
                at=datetime.now(UTC),
            )
            for name, agent in agents.items()
        ]
        results = await asyncio.gather(
            world.log.append(takes[0]), other.append(takes[1]), return_exceptions=True
        )
        refused = [result.message for result in results if isinstance(result, c.Refusal)]
        owner = await in_database(
            lambda pk: Conversation.objects.select_related("owner_agent").get(pk=pk), conversation
        )
        assert owner.owner_agent is not None
        assert refused == [owner.owner_agent.name]
    await other.close()


async def test_the_outbox_row_is_written_with_its_cause(world: World) -> None:
    conversation = await in_database(world.conversation)
    agent = await in_database(world.agent, "kim")
    customer = await in_database(lambda: Conversation.objects.get(pk=conversation).customer_id)
    now = datetime.now(UTC)
    for command in (
        c.LeaveContact(conversation=conversation, customer=customer, email="mia@example.com", at=now),
        c.Take(conversation=conversation, workspace=world.workspace.pk, agent=agent, name="Kim", at=now),
        c.AgentMessage(
            conversation=conversation, workspace=world.workspace.pk, agent=agent, name="Kim", client_id="a1",
            text="Back soon.", at=now,
        ),
    ):  # fmt: skip
        await world.log.append(command)
    item = await in_database(OutboxItem.objects.get)
    message = await in_database(lambda: Message.objects.get(author="agent"))
    assert (item.kind, item.payload) == ("mail.reply", {"message": message.pk})


async def test_catching_up_gives_each_message_once_and_as_it_stands_now(world: World) -> None:
    conversation = await in_database(world.conversation)
    opened = (await world.log.append(await in_database(world.says, conversation, "m1"))).opened
    assert opened is not None
    await world.log.append(
        c.FinishTurn(
            conversation=conversation, turn=opened.turn, fence=opened.fence, part=1, text="secret",
            state=MessageState.COMPLETE, name="Assistant", at=datetime.now(UTC),
        )
    )  # fmt: skip
    await in_database(lambda: Message.objects.filter(author="assistant").update(state="removed"))
    snapshot = await in_database(selectors.unscoped, conversation)
    page = await in_database(selectors.catch_up, snapshot, 1)
    assert page is not None
    assert [(e.seq, e.message.text, e.message.state) for e in page.events if e.message] == [
        (3, "", MessageState.REMOVED)
    ]
    assert (page.after, page.upto) == (1, 3)


async def test_a_gap_from_the_future_or_too_long_is_refused(world: World) -> None:
    conversation = await in_database(world.conversation)
    await world.log.append(await in_database(world.says, conversation, "m1"))
    snapshot = await in_database(selectors.unscoped, conversation)
    assert await in_database(selectors.catch_up, snapshot, 99) is None


async def test_pages_reach_back_to_the_first_message(world: World) -> None:
    conversation = await in_database(world.conversation)
    for n in range(60):
        await world.log.append(await in_database(world.says, conversation, f"m{n}", assistant=False))
    snapshot = await in_database(selectors.unscoped, conversation)
    newest = await in_database(selectors.newest_page, snapshot)
    older = await in_database(selectors.newest_page, snapshot, newest.events[0].seq)
    seqs = [event.seq for event in (*older.events, *newest.events)]
    assert seqs == list(range(1, 62))
    assert (newest.earlier, older.earlier) == (True, False)


async def test_two_tabs_opening_at_once_share_one_conversation(world: World) -> None:
    customer = world.customer.pk
    ids = await asyncio.gather(*(in_database(empty_conversation, customer, "en") for _ in range(4)))
    assert len(set(ids)) == 1
    assert await in_database(current_conversation, customer, "en") == ids[0]


async def test_tabs_that_open_and_speak_at_once_always_find_one(world: World) -> None:
    def open_and_speak() -> None:
        for _ in range(30):
            mine = empty_conversation(world.customer.pk, "en")
            Conversation.objects.filter(pk=mine).update(last_seq=1)

    await asyncio.gather(*(in_database(open_and_speak) for _ in range(6)))
    assert not await in_database(Conversation.objects.filter(last_seq=0).exists)


async def test_the_inbox_costs_the_same_for_one_row_and_for_twenty(world: World) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            rows.append(len(selectors.inbox(world.workspace.pk)))
        return len(captured)

    rows: list[int] = []
    await world.log.append(await in_database(world.says, await in_database(world.conversation), "m-first"))
    one = await in_database(queries)
    for n in range(19):
        await world.log.append(await in_database(world.says, await in_database(world.conversation), f"m{n}"))
    assert await in_database(queries) == one
    assert rows == [1, 20]


async def test_who_waits_for_a_person_stays_in_the_inbox_however_much_the_assistant_has(world: World) -> None:
    def fill() -> list[str]:
        kim = world.agent("Kim")
        now = datetime.now(UTC)
        kinds = ["queue", "agent", *["assistant"] * (selectors.INBOX_ASSISTANTS_ROWS + 1)]
        made = [
            Conversation(
                workspace=world.workspace,
                site=world.site,
                customer=world.customer,
                owner_kind=kind,
                owner_agent_id=kim if kind == "agent" else None,
                waiting_since=now if kind == "queue" else None,
                last_seq=1,
            )
            for kind in kinds
        ]
        Conversation.objects.bulk_create(made)
        ids = [conversation.pk for conversation in made]
        # Those of people are the oldest of all.
        for n, conversation in enumerate(ids):
            Conversation.objects.filter(pk=conversation).update(last_at=now + timedelta(seconds=n))
        return ids

    waiting, kims, oldest, *newer = await in_database(fill)
    rows = await in_database(selectors.inbox, world.workspace.pk)
    assert [row.conversation for row in rows] == [waiting, kims, *reversed(newer)]
    assert oldest not in {row.conversation for row in rows}


async def test_a_closed_log_says_so(world: World) -> None:
    conversation = await in_database(world.conversation)
    command = await in_database(world.says, conversation, "m1")
    closed = Log(lambda _: None)
    closed.open()
    await closed.close()
    with pytest.raises(c.LogUnavailable):
        await closed.append(command)


async def test_a_listener_that_fails_keeps_no_acknowledgement_back(world: World) -> None:
    def fails(appended: c.Appended) -> None:
        raise RuntimeError(appended.standing.conversation)

    log = Log(fails)
    log.open()
    one, two = await in_database(lambda: (world.conversation(), world.conversation()))
    commands = [await in_database(world.says, conversation, "a") for conversation in (one, two)]
    async with asyncio.timeout(10):
        appended = await asyncio.gather(*(log.append(command, fails) for command in commands))
    await log.close()
    assert [a.seq for a in appended] == [1, 1]


async def test_what_follows_from_a_commit_comes_before_later_commits_are_told(world: World) -> None:
    told: list[str] = []
    log = Log(lambda appended: told.append(f"committed {appended.seq}"))
    log.open()
    conversation = await in_database(world.conversation)
    commands = [await in_database(world.says, conversation, name, assistant=False) for name in "ab"]
    await asyncio.gather(
        *(log.append(command, lambda appended: told.append(f"then {appended.seq}")) for command in commands)
    )
    await log.close()
    assert told == ["committed 1", "then 1", "committed 3", "then 3"]


async def test_a_command_that_cannot_be_stored_takes_no_other_with_it(world: World) -> None:
    conversation = await in_database(world.conversation)
    good, bad = [await in_database(world.says, conversation, name, text=name) for name in "ab"]
    bad = replace(bad, text="\ud800")  # no encoding has it
    async with asyncio.timeout(10):
        stored, refused = await asyncio.gather(
            world.log.append(good), world.log.append(bad), return_exceptions=True
        )
    assert isinstance(stored, c.Appended)
    assert isinstance(refused, c.LogUnavailable)
