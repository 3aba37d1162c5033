"""Reads of conversations, scoped to who asks. Synchronous; a fixed number of queries each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import F, Q, QuerySet, Window
from django.db.models.functions import Rank

from apps.conversations.models import WITH_PEOPLE, Conversation, Event, Message
from apps.conversations.projection import event_view, inbox_row_view, owner_view, summary_view
from apps.engine.types import Speaker, Utterance
from apps.wire.protocol import (
    CATCH_UP_LIMIT,
    PAGE_EVENTS,
    Author,
    EventKind,
    InboxRow,
    MessageState,
    Owner,
    OwnerKind,
    Status,
    Summary,
)
from apps.wire.server_frames import Event as ShownEvent
from apps.wire.server_frames import Page

INBOX_PEOPLE_ROWS = 1_000
INBOX_ASSISTANTS_ROWS = 300
INBOX_RESOLVED_ROWS = 30
SUMMARIES = 20
AVERAGED = 500

_WAITS = Q(owner_kind=OwnerKind.QUEUE, status=Status.OPEN)

# Kinds that put something on the screen. A removal shows through its message's own event.
_SHOWN = (EventKind.MESSAGE, EventKind.OWNER, EventKind.STATUS, EventKind.CONTACT)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A conversation as it stands, without its messages."""

    id: str
    workspace: str
    site: str
    customer: str
    customer_name: str
    locale: str
    epoch: str
    last_seq: int
    status: Status
    owner: Owner
    waiting_since: datetime | None
    contact: bool
    turn: str
    turn_part: int
    turn_place: int
    turn_process: str
    fence: int
    row: InboxRow


@dataclass(frozen=True, slots=True)
class Waiting:
    """A conversation that waits for a person, and its place in its workspace's queue, from 1."""

    conversation: str
    workspace: str
    site: str
    position: int


class NotFound(Exception):
    """There is no such conversation, or it is not the asker's to see."""


def for_customer(conversation: str, customer: str) -> Snapshot:
    """One query. Raises `NotFound`."""
    return _snapshot(_related().filter(pk=conversation, customer_id=customer).first())


def for_workspace(conversation: str, workspace: str) -> Snapshot:
    """One query. Raises `NotFound`."""
    return _snapshot(_related().filter(pk=conversation, workspace_id=workspace).first())


def unscoped(conversation: str) -> Snapshot:
    """For our own processes, never for a frame's id. One query. Raises `NotFound`."""
    return _snapshot(_related().filter(pk=conversation).first())


def several(conversations: Sequence[str]) -> list[Snapshot]:
    """Those that there are, for our own processes. One query."""
    return [_snapshot(row) for row in _related().filter(pk__in=conversations)]


def newest_page(snapshot: Snapshot, before: int | None = None) -> Page:
    """The newest events shown, or those numbered below `before`. One query."""
    events = _shown(snapshot)
    if before is not None:
        events = events.filter(seq__lt=before)
    rows = list(events.order_by("-seq")[: PAGE_EVENTS + 1])
    return Page(
        conversation=snapshot.id,
        epoch=snapshot.epoch,
        upto=snapshot.last_seq,
        events=tuple(event_view(row) for row in reversed(rows[:PAGE_EVENTS])),
        earlier=len(rows) > PAGE_EVENTS,
    )


def catch_up(snapshot: Snapshot, after: int) -> Page | None:
    """Everything after `after`, or None when the gap is too long to fill. One query."""
    if after > snapshot.last_seq or snapshot.last_seq - after > CATCH_UP_LIMIT:
        return None
    rows = (
        Event.objects.filter(conversation_id=snapshot.id, seq__gt=after, seq__lte=snapshot.last_seq)
        .exclude(kind=EventKind.TURN_OPENED)
        .select_related("message")
        .order_by("seq")
    )
    return Page(
        conversation=snapshot.id,
        epoch=snapshot.epoch,
        upto=snapshot.last_seq,
        events=tuple(event_view(row) for row in rows),
        after=after,
    )


@dataclass(frozen=True, slots=True)
class SaidSince:
    """`newest` is the conversation's last number, and `epoch` names the numbering."""

    epoch: str
    newest: int
    owner: OwnerKind
    utterances: tuple[Utterance, ...]


def said_after(conversation: str, seq: int) -> SaidSince:
    """The messages whose events came after `seq`, as they stand now. Two queries.

    A removed message is given with an empty text; an interrupted part is left out, for another part follows it.
    """
    epoch, newest, owner = Conversation.objects.values_list("epoch", "last_seq", "owner_kind").get(
        pk=conversation
    )
    rows = (
        Event.objects.filter(
            conversation_id=conversation, seq__gt=seq, seq__lte=newest, message__isnull=False
        )
        .exclude(message__state=MessageState.INTERRUPTED)
        .order_by("seq")
        .values_list("message__author", "message__text", "message__place", "message__state")
    )
    said = (
        Utterance(Speaker(author), "" if state == MessageState.REMOVED else text, place)
        for author, text, place, state in rows
    )
    return SaidSince(epoch, newest, OwnerKind(owner), tuple(said))


def average_turns(before: datetime) -> float | None:
    """Customer messages a conversation, over the newest 500 that were quiet by then; None without any. Two queries."""
    newest = Conversation.objects.filter(last_seq__gt=0, last_at__lt=before).order_by("-pk")
    conversations = list(newest.values_list("pk", flat=True)[:AVERAGED])
    if not conversations:
        return None
    said = Message.objects.filter(conversation__in=conversations, author=Author.CUSTOMER).count()
    return said / len(conversations)


def inbox(workspace: str) -> tuple[InboxRow, ...]:
    """What is with people, who waits longest first; then the assistant's, newest first; then the last resolved.

    Three queries. However much the assistant has to do, nobody who waits falls off the end.
    """
    rows = _related().filter(workspace_id=workspace, last_seq__gt=0).order_by("-last_at")
    people = rows.filter(status=Status.OPEN, owner_kind__in=WITH_PEOPLE)
    longest = people.order_by(F("waiting_since").asc(nulls_last=True), "-last_at")[:INBOX_PEOPLE_ROWS]
    assistants = rows.filter(status=Status.OPEN, owner_kind=OwnerKind.ASSISTANT)[:INBOX_ASSISTANTS_ROWS]
    resolved = rows.filter(status=Status.RESOLVED)[:INBOX_RESOLVED_ROWS]
    return tuple(inbox_row_view(row) for row in [*longest, *assistants, *resolved])


def summaries(customer: str, but: str = "") -> tuple[Summary, ...]:
    """A customer's conversations, newest first, without the one named. One query."""
    rows = _related().filter(customer_id=customer, last_seq__gt=0).exclude(pk=but).order_by("-last_at")
    return tuple(summary_view(row) for row in rows[:SUMMARIES])


def queue_position(snapshot: Snapshot) -> int:
    """How many waiting conversations come before this one, plus one. One query."""
    earlier = Conversation.objects.filter(
        _WAITS, workspace_id=snapshot.workspace, waiting_since__lt=snapshot.waiting_since
    )
    return earlier.count() + 1


def queue() -> tuple[Waiting, ...]:
    """Everybody who waits for a person, for our own processes. One query."""
    place = Window(Rank(), partition_by="workspace_id", order_by="waiting_since")
    rows = Conversation.objects.filter(_WAITS, waiting_since__isnull=False).annotate(place=place)
    return tuple(Waiting(*row) for row in rows.values_list("id", "workspace_id", "site_id", "place"))


def standings(conversations: list[str]) -> dict[str, tuple[int, str]]:
    """Last seq and live turn of each. One query."""
    rows = Conversation.objects.filter(pk__in=conversations).values_list("pk", "last_seq", "turn")
    return {conversation: (last_seq, turn) for conversation, last_seq, turn in rows}


def newest(conversation: str) -> tuple[Snapshot, ShownEvent | None]:
    """A conversation and its last event, for our own processes. Two queries. Raises `NotFound`."""
    snapshot = unscoped(conversation)
    events = Event.objects.filter(conversation_id=conversation, seq=snapshot.last_seq)
    row = events.select_related("message").first()
    return snapshot, event_view(row) if row is not None else None


def up_to_date(snapshot: Snapshot) -> Page:
    """The page for a reader who holds everything: nothing. No query."""
    return Page(
        conversation=snapshot.id,
        epoch=snapshot.epoch,
        upto=snapshot.last_seq,
        events=(),
        after=snapshot.last_seq,
    )


def live_turns() -> list[tuple[str, str]]:
    """(conversation, process) of every live turn. One query."""
    return list(Conversation.objects.exclude(turn="").values_list("id", "turn_process"))


def _related() -> QuerySet[Conversation]:
    return Conversation.objects.select_related("customer", "owner_agent", "team", "site")


def _shown(snapshot: Snapshot) -> QuerySet[Event]:
    return Event.objects.filter(
        conversation_id=snapshot.id, kind__in=_SHOWN, seq__lte=snapshot.last_seq
    ).select_related("message")


def _snapshot(row: Conversation | None) -> Snapshot:
    if row is None:
        raise NotFound
    return Snapshot(
        id=row.pk,
        workspace=row.workspace_id,
        site=row.site_id,
        customer=row.customer_id,
        customer_name=str(row.customer),
        locale=row.locale,
        epoch=row.epoch,
        last_seq=row.last_seq,
        status=Status(row.status),
        owner=owner_view(row),
        waiting_since=row.waiting_since,
        contact=bool(row.contact_email),
        turn=row.turn,
        turn_part=row.turn_part,
        turn_place=row.turn_place,
        turn_process=row.turn_process,
        fence=row.fence,
        row=inbox_row_view(row),
    )
