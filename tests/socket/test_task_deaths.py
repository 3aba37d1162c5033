"""Workers killed in the midst of a task, and no worker at all: what was to be done is done, and once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from django.db.models import F
from django.utils import timezone

from apps.accounts.models import Site, Workspace
from apps.conversations.models import Conversation, Message, OutboxItem
from apps.customers.models import Customer
from apps.knowledge.chunking import chunk
from apps.knowledge.models import Article, Chunk
from tests.support.breaking import Redis
from tests.support.mailbox import Mailbox, open_mailbox
from tests.support.processes import Beat, Deployment, Web, Worker, ended_after, wait_for
from tests.support.world import act, made

pytestmark = pytest.mark.usefixtures("orm")


@pytest.fixture(scope="module")
def mailbox(deployment: Deployment) -> Iterator[Mailbox]:
    with open_mailbox(deployment.var_dir) as box:
        yield box


@pytest.fixture(scope="module")
def worker(deployment: Deployment, redis: Redis, mailbox: Mailbox) -> Iterator[Worker]:
    process = Worker(deployment, REDIS_URL=redis.url, **mailbox.variables)
    with ended_after(process):
        yield process


@pytest.fixture(scope="module")
def beat(deployment: Deployment, redis: Redis) -> Iterator[Beat]:
    process = Beat(deployment, REDIS_URL=redis.url)
    with ended_after(process):
        yield process


def a_mail_is_due() -> OutboxItem:
    workspace = Workspace.objects.create(name="Lantern")
    site = Site.objects.create(workspace=workspace, name="Lantern")
    conversation = Conversation.objects.create(
        workspace=workspace,
        site=site,
        customer=Customer.objects.create(site=site),
        contact_email="mia@example.com",
        last_seq=1,
    )
    now = datetime.now(UTC)
    reply = Message.objects.create(
        conversation=conversation, place=1, author="agent", author_name="Kim", text="Here.", created_at=now
    )
    return OutboxItem.objects.create(
        kind="mail.reply", payload={"message": reply.pk}, due_at=now, created_at=now
    )


def claims_have_run_out() -> None:
    """As a minute later: whoever died with an item or an article holds it no longer."""
    OutboxItem.objects.filter(done_at=None).update(due_at=timezone.now())
    Article.objects.update(ingest_after=timezone.now() - timedelta(seconds=1))


def done(item: OutboxItem) -> bool:
    return OutboxItem.objects.filter(pk=item.pk, done_at__isnull=False).exists()


def test_a_mail_whose_sender_is_killed_arrives_once_by_its_id(
    worker: Worker, beat: Beat, mailbox: Mailbox
) -> None:
    item = a_mail_is_due()
    for held in ("RCPT", "DATA"):
        mailbox.hold(held)
        wait_for(mailbox.holding.is_set)
        worker.kill()
        mailbox.let_go()
        assert not done(item)
        claims_have_run_out()
        worker.revive()
    wait_for(lambda: done(item))
    # The first was killed before the mail was taken, the second before it heard that it was.
    assert mailbox.ids == [f"<{item.pk}@chatsvc>"] * 2
    item.refresh_from_db()
    assert item.attempts == 3


def test_an_article_whose_worker_is_killed_is_ingested_once(
    worker: Worker, beat: Beat, mailbox: Mailbox
) -> None:
    site = Site.objects.create(workspace=Workspace.objects.create(name="Lantern"), name="Lantern")
    sections = [f"## Part {n}\n\n" + f"What is said in part {n} of the lamps. " * 30 for n in range(12)]
    article = Article.objects.create(site=site, slug="lamps", title="Lamps", body="\n\n".join(sections))
    wait_for(lambda: Article.objects.filter(pk=article.pk, ingest_after__isnull=False).exists())
    worker.kill()
    article.refresh_from_db()
    assert article.ingested_revision != article.revision
    assert article.ingest_failures == 1
    claims_have_run_out()
    worker.revive()
    wait_for(lambda: Article.objects.filter(pk=article.pk, ingested_revision=F("revision")).exists())
    found = list(Chunk.objects.filter(article=article).order_by("position").values_list("position", "text"))
    assert found == list(enumerate(section.text for section in chunk(article.body)))


async def test_a_reply_written_without_redis_or_a_worker_is_mailed_once_they_are_back(
    deployment: Deployment, worker: Worker, beat: Beat, redis: Redis, mailbox: Mailbox
) -> None:
    mailbox.taken.clear()
    world = await made()
    kim = await asyncio.to_thread(world.agent, "Kim")
    web = Web(deployment, REDIS_URL=redis.url)
    with ended_after(web):
        async with world.desk(web, kim) as desk:
            async with world.customer(web) as line:
                left = {"conversation": line.conversation, "email": "mia@example.com"}
                await line.client.send({"type": "contact.leave", "id": "left", **left})
                await line.client.expect("ack", id="left")
            await desk.expect("ack", id=await act(desk, "conversation.take", line.conversation))
            worker.kill()
            redis.kill()
            said = await act(desk, "message.send", line.conversation, text="It is on its way.")
            await desk.expect("ack", id=said)
    item = await asyncio.to_thread(
        lambda: OutboxItem.objects.get(done_at=None, payload__message__isnull=False)
    )
    redis.lose_everything()
    worker.revive()
    await asyncio.to_thread(claims_have_run_out)
    await asyncio.to_thread(wait_for, lambda: done(item))
    assert mailbox.ids == [f"<{item.pk}@chatsvc>"]
    assert mailbox.taken[0]["To"] == "mia@example.com"
