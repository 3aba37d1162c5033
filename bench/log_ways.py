"""The ways of writing a message that `bench.log` compares, on the database of the settings. Prints a row for each."""

from __future__ import annotations

import asyncio
import os
import random
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TypeAlias

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatsvc.settings")

import django

django.setup()

from asgiref.sync import sync_to_async  # noqa: E402 - Django first
from django.core.management import call_command  # noqa: E402
from django.db import connection, transaction  # noqa: E402

from apps.accounts.models import Site, Workspace  # noqa: E402
from apps.conversations.commands import CustomerMessage  # noqa: E402
from apps.conversations.log import Log  # noqa: E402
from apps.conversations.models import Conversation, Event, Message  # noqa: E402
from apps.customers.models import Customer  # noqa: E402
from apps.stores.database import in_database  # noqa: E402
from apps.stores.ids import new_id  # noqa: E402

CONVERSATIONS = 50
ROUNDS = 3
RATE = 100  # messages a second, at random times
WARM_S, PACED_S, FLOOD_S = 0.2, 1.6, 0.5
CALLERS = 100  # of the flood: each sends its next message when the last one is acknowledged

Append: TypeAlias = Callable[[CustomerMessage], Awaitable[object]]
Line: TypeAlias = tuple[str, str]  # conversation, its customer


@dataclass(slots=True)
class Way:
    """One way of writing, and what it took over all rounds."""

    name: str
    append: Append
    acknowledged_ms: list[float] = field(default_factory=list)
    per_second: list[float] = field(default_factory=list)

    def row(self) -> str:
        p99 = statistics.quantiles(self.acknowledged_ms, n=100)[98]
        median = statistics.median(self.acknowledged_ms)
        speed, least, most = (f"{of(self.per_second):,.0f}" for of in (statistics.median, min, max))
        return f"| {connection.vendor} | {self.name} | {median:.1f} | {p99:.1f} | {speed} ({least}–{most}) |"


def main() -> None:
    call_command("migrate", interactive=False, verbosity=0)
    asyncio.run(_compare(_made_lines()))


async def _compare(lines: list[Line]) -> None:
    async with _writer() as writer:
        ways = (
            Way("the writer", writer),
            Way("ORM, one shared thread (as `acreate`)", sync_to_async(append_by_orm, thread_sensitive=True)),
            Way("ORM, six threads", lambda message: in_database(append_by_orm, message)),
        )
        for way in ways:
            await _paced(way.append, lines, seed=0, seconds=WARM_S)
        # In turns, so that what else the machine does falls on all of them.
        for number in range(1, ROUNDS + 1):
            for way in ways:
                way.acknowledged_ms += await _paced(way.append, lines, number, PACED_S)
            for way in ways:
                way.per_second.append(await _flood(way.append, lines))
    for way in ways:
        print(way.row())


async def _paced(append: Append, lines: list[Line], seed: int, seconds: float) -> list[float]:
    """Milliseconds from the moment each message was due to its acknowledgement."""
    chance = random.Random(seed)
    loop = asyncio.get_running_loop()
    taken_ms: list[float] = []

    async def one(due: float) -> None:
        await append(_message(chance.choice(lines)))
        taken_ms.append((loop.time() - due) * 1000)

    due = begun = loop.time()
    async with asyncio.TaskGroup() as tasks:
        while (due := due + chance.expovariate(RATE)) < begun + seconds:
            await asyncio.sleep(max(0.0, due - loop.time()))
            tasks.create_task(one(due))
    return taken_ms


async def _flood(append: Append, lines: list[Line]) -> float:
    """Acknowledgements a second to callers that never pause."""
    acknowledged = 0
    begun = time.monotonic()

    async def caller(number: int) -> None:
        nonlocal acknowledged
        while time.monotonic() < begun + FLOOD_S:
            await append(_message(lines[number % len(lines)]))
            acknowledged += 1

    await asyncio.gather(*(caller(number) for number in range(CALLERS)))
    return acknowledged / (time.monotonic() - begun)


@asynccontextmanager
async def _writer() -> AsyncIterator[Append]:
    log = Log(lambda _: None)
    log.open()
    yield log.append
    await log.close()


def append_by_orm(message: CustomerMessage) -> None:
    """The writer's lock, look-up and rows, in a transaction for each message."""
    sender = f"customer:{message.customer}"
    with transaction.atomic():
        row = Conversation.objects.select_for_update().get(
            pk=message.conversation, customer_id=message.customer
        )
        if Message.objects.filter(sender=sender, client_id=message.client_id).exists():
            return
        row.last_seq += 1
        row.last_line, row.last_author, row.last_at = message.text, "customer", message.at
        stored = Message.objects.create(
            conversation=row, place=row.last_seq, author="customer", author_name=message.name, sender=sender,
            client_id=message.client_id, text=message.text, created_at=message.at,
        )  # fmt: skip
        Event.objects.create(
            conversation=row, seq=row.last_seq, kind="message", message=stored, created_at=message.at
        )
        row.save(update_fields=["last_seq", "last_line", "last_author", "last_at"])


def _message(line: Line) -> CustomerMessage:
    return CustomerMessage(
        conversation=line[0], customer=line[1], name="Mia", client_id=new_id(), text="Where is my order 1042?",
        at=datetime.now(UTC), turn=new_id(), process="bench", assistant=False,
    )  # fmt: skip


def _made_lines() -> list[Line]:
    """Conversations whose customers wait for a person, so that a message opens no turn."""
    workspace = Workspace.objects.create(name="Bench")
    site = Site.objects.create(workspace=workspace, name="Bench")
    customers = [Customer.objects.create(site=site) for _ in range(CONVERSATIONS)]
    made = [
        Conversation.objects.create(workspace=workspace, site=site, customer=customer, owner_kind="queue")
        for customer in customers
    ]
    return [(conversation.pk, conversation.customer_id) for conversation in made]


if __name__ == "__main__":
    main()
