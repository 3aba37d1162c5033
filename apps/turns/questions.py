"""The question a conversation is waiting for an answer to, read back from the database."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.db.models import F, OuterRef, Q, QuerySet, Subquery

from apps.conversations.models import Conversation, Message
from apps.customers.facts import Asker
from apps.wire.protocol import Author, MessageState, OwnerKind, Status

# A process that has just stored a message starts its turn itself; what is older than this, nobody may have.
# Questions older still are answered when somebody comes back to them.
LEFT_AFTER = timedelta(seconds=4)
LEFT_BEFORE = timedelta(minutes=5)
LEFT_AT_ONCE = 50


@dataclass(frozen=True, slots=True)
class StoredAsker:
    """The asker as the database knows them, for turns that no socket asked for."""

    customer_id: str
    verified: bool


@dataclass(frozen=True, slots=True)
class Question:
    """A customer's message that no turn has answered. `place` is the message's."""

    conversation: str
    site: str
    asker: Asker
    locale: str
    text: str
    place: int


def open_question(conversation: str) -> Question | None:
    """The newest message of the conversation that is not the assistant's, if a customer wrote it and waits for an
    answer. At most three queries.

    A live turn's own kept parts do not count as an answer: a dead process leaves the question open. Nor does an
    answer to an earlier question: a later part of it stands below what was asked during its first.
    """
    row = Conversation.objects.select_related("customer").filter(pk=conversation).first()
    if row is None:
        return None
    newest = _asked().filter(conversation=row).first()
    if newest is None or newest.author != Author.CUSTOMER:
        return None
    taken_up = not 0 < row.turn_question < newest.place
    if taken_up and _answerable().filter(conversation=row, place__gt=newest.place).exists():
        return None
    return Question(
        conversation=conversation,
        site=row.site_id,
        asker=StoredAsker(row.customer_id, row.customer.verified),
        locale=row.locale,
        text=newest.text,
        place=newest.place,
    )


def awaits_customer(conversation: str) -> bool:
    """Whether the assistant has the conversation and no turn runs there. One query."""
    rows = Conversation.objects.filter(pk=conversation, owner_kind=OwnerKind.ASSISTANT, turn="")
    return rows.exists()


def unanswered() -> list[str]:
    """Conversations of the assistant with a customer's message that no turn has taken up: its process may have died
    between storing the end of one turn and opening the next. One query.
    """
    now = datetime.now(UTC)
    newest, asked = (messages.filter(conversation=OuterRef("pk")) for messages in (_answerable(), _asked()))
    rows = Conversation.objects.filter(
        turn="",
        owner_kind=OwnerKind.ASSISTANT,
        status=Status.OPEN,
        last_at__lt=now - LEFT_AFTER,
        last_at__gt=now - LEFT_BEFORE,
        site__assistant_enabled=True,
    )
    left = rows.annotate(
        said_by=Subquery(newest.values("author")[:1]),
        asked_by=Subquery(asked.values("author")[:1]),
        asked_at=Subquery(asked.values("place")[:1]),
    ).filter(
        # 0: what an agent has handed back may have been answered before.
        Q(turn_question__gt=0) | Q(said_by=Author.CUSTOMER),
        asked_by=Author.CUSTOMER,
        asked_at__gt=F("turn_question"),
    )
    return list(left.order_by("last_at").values_list("pk", flat=True)[:LEFT_AT_ONCE])


def _asked() -> QuerySet[Message]:
    """Newest first, what people have said."""
    return Message.objects.exclude(author=Author.ASSISTANT).order_by("-place")


def _answerable() -> QuerySet[Message]:
    """Newest first, without what was left of answers that were cut off: that answers nothing."""
    cut_off = (MessageState.INTERRUPTED, MessageState.TAKEN_OVER)
    return Message.objects.exclude(state__in=cut_off).order_by("-place")
