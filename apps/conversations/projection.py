"""Rows as the wire shows them."""

from __future__ import annotations

from apps.conversations.models import Conversation, Event, Message
from apps.conversations.state import payload_fields
from apps.wire import protocol as wire
from apps.wire import server_frames as server
from apps.wire.times import milliseconds


def message_view(row: Message) -> wire.Message:
    """The message as it stands now; of a removed one only that it was there."""
    removed = row.state == wire.MessageState.REMOVED
    return wire.Message(
        id=row.pk,
        place=row.place,
        author=wire.Author(row.author),
        name=row.author_name,
        text="" if removed else row.text,
        at=milliseconds(row.created_at),
        state=wire.MessageState(row.state),
        client_id=row.client_id or None,
        turn=row.turn or None,
        part=row.part or None,
        sources=() if removed else tuple(wire.Source(title=title, url=url) for title, url in row.sources),
    )


def event_view(row: Event) -> server.Event:
    """The event with its message as it stands now: text removed later never travels again."""
    return server.Event(
        conversation=row.conversation_id,
        seq=row.seq,
        kind=wire.EventKind(row.kind),
        at=milliseconds(row.created_at),
        message=message_view(row.message) if row.message is not None else None,
        **payload_fields(row.kind, row.payload),
    )


def owner_view(row: Conversation) -> wire.Owner:
    """Who owns the conversation. Needs `owner_agent` and `team`."""
    return wire.Owner(
        kind=wire.OwnerKind(row.owner_kind),
        name=row.owner_agent.name if row.owner_agent is not None else "",
        agent=row.owner_agent_id,
        reason=row.owner_reason,
        team=row.team.name if row.team is not None else None,
        version=row.owner_version,
    )


def inbox_row_view(row: Conversation) -> wire.InboxRow:
    """The row of an agent's inbox. Needs `customer`, `site`, `owner_agent` and `team`."""
    return wire.InboxRow(
        conversation=row.pk,
        seq=row.last_seq,
        customer=str(row.customer),
        verified=row.customer.verified,
        status=wire.Status(row.status),
        owner=owner_view(row),
        last_line=row.last_line,
        last_author=row.last_author,
        at=milliseconds(row.last_at),
        locale=row.locale,
        site=row.site.name,
        waiting_since=milliseconds(row.waiting_since) if row.waiting_since is not None else None,
    )


def summary_view(row: Conversation) -> wire.Summary:
    """The line of a customer's list. Needs `owner_agent` and `team`."""
    return wire.Summary(
        id=row.pk,
        status=wire.Status(row.status),
        last_line=row.last_line,
        at=milliseconds(row.last_at),
        owner=owner_view(row),
    )
