"""Effects on the outside world, delivered at least once."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core import mail
from django.core.mail import EmailMultiAlternatives
from redis import Redis

from apps.accounts.models import Site, Workspace
from apps.conversations import outbox
from apps.conversations.models import Conversation, Message, OutboxItem
from apps.customers.models import Customer
from apps.turns.between.buffer import interest_key

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis_url")]

NOW = datetime.now(UTC)


@pytest.fixture
def reply() -> Message:
    workspace = Workspace.objects.create(name="Lantern")
    site = Site.objects.create(workspace=workspace, name="Lantern")
    conversation = Conversation.objects.create(
        workspace=workspace, site=site, customer=Customer.objects.create(site=site),
        contact_email="mia@example.com", locale="zh-CN", last_seq=1,
    )  # fmt: skip
    return Message.objects.create(
        conversation=conversation,
        place=1,
        author="agent",
        author_name="Kim",
        text="您的灯已寄出。",
        created_at=NOW,
    )


@pytest.fixture
def redis(redis_url: str) -> Iterator[Redis]:
    client = Redis.from_url(redis_url)
    yield client
    client.close()


def due(message: Message, **changes: object) -> OutboxItem:
    values = {
        "kind": "mail.reply",
        "payload": {"message": message.pk},
        "due_at": NOW,
        "created_at": NOW,
    } | changes
    return OutboxItem.objects.create(**values)


def test_a_reply_is_mailed_once_in_the_customers_language(reply: Message) -> None:
    item = due(reply)
    assert outbox.sweep() == 1
    assert outbox.sweep() == 0
    [sent] = mail.outbox
    assert (sent.to, sent.subject) == (["mia@example.com"], "Lantern 的回复")
    assert sent.body.startswith("您的灯已寄出。\n\nKim\n")
    assert sent.extra_headers["Message-ID"] == f"<{item.pk}@chatsvc>"


def test_a_mailed_reply_reads_as_text_and_as_safe_html(reply: Message) -> None:
    reply.text = "See **[the policy](https://a.example)**.\n\n<script>alert(1)</script>"
    reply.author_name = "<b>Kim</b>"
    reply.save()
    due(reply)
    outbox.sweep()
    [sent] = mail.outbox
    assert isinstance(sent, EmailMultiAlternatives)
    [(content, kind)] = sent.alternatives
    html = str(content)
    assert kind == "text/html"
    assert sent.body.startswith(reply.text)
    assert '<p>See <strong><a href="https://a.example"' in html
    assert "&lt;script&gt;alert(1)" in html
    assert "<script" not in html
    assert "&lt;b&gt;Kim" in html
    assert 'lang="zh-CN"' in html


def test_nothing_is_mailed_to_a_customer_who_reads_along(reply: Message, redis: Redis) -> None:
    due(reply)
    later = (datetime.now(UTC) + timedelta(minutes=1)).timestamp()
    redis.hset(interest_key(reply.conversation_id), "customers:p1", str(later))
    assert outbox.sweep() == 1
    redis.delete(interest_key(reply.conversation_id))
    assert mail.outbox == []


def test_a_removed_reply_is_not_mailed(reply: Message) -> None:
    due(reply)
    Message.objects.filter(pk=reply.pk).update(state="removed")
    assert outbox.sweep() == 1
    assert mail.outbox == []


def test_an_item_before_its_time_waits(reply: Message) -> None:
    due(reply, due_at=datetime.now(UTC) + timedelta(minutes=5))
    assert outbox.sweep() == 0


def test_a_failed_delivery_is_kept_and_tried_later(reply: Message, settings: Any) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1
    item = due(reply)
    assert outbox.sweep() == 0
    item.refresh_from_db()
    assert item.done_at is None
    assert item.attempts == 1
    assert item.due_at > datetime.now(UTC)
    assert "refused" in item.failure


def test_a_failing_item_does_not_hold_up_the_next(reply: Message) -> None:
    due(reply, payload={})
    due(reply)
    assert outbox.sweep() == 1
    assert len(mail.outbox) == 1
    assert OutboxItem.objects.get(payload={}).failure.startswith("KeyError")


def test_what_failed_too_often_is_given_up_and_counted(reply: Message) -> None:
    item = due(reply, payload={}, attempts=outbox.ATTEMPTS - 1)
    due(reply, due_at=datetime.now(UTC) - timedelta(seconds=1))
    assert outbox.undone() == {"due": 2, "given_up": 0}
    assert outbox.sweep() == 1
    OutboxItem.objects.filter(pk=item.pk).update(due_at=NOW)
    assert outbox.sweep() == 0
    assert outbox.undone() == {"due": 0, "given_up": 1}


def test_no_delivery_is_begun_after_the_time_of_its_sweep(reply: Message) -> None:
    due(reply)
    assert outbox.sweep(until_s=0.0) == 0
    assert OutboxItem.objects.get().attempts == 0


def test_what_was_delivered_long_ago_is_forgotten(reply: Message) -> None:
    due(reply, done_at=NOW - timedelta(days=31))
    kept = [due(reply, done_at=NOW), due(reply, due_at=NOW + timedelta(days=1))]
    assert outbox.prune() == 1
    assert set(OutboxItem.objects.all()) == set(kept)
