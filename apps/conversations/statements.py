"""The SQL of the group-commit writer, for PostgreSQL and SQLite. Hot: four statements a batch, no ORM compile."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any

from django.db import connection

from apps.conversations.commands import AgentMessage, Command, CustomerMessage, FinishTurn
from apps.conversations.state import Change, NewEffect, NewEvent, NewMessage, State, Stored
from apps.stores.ids import new_id
from apps.wire.protocol import OwnerKind, Status

# The columns are the fields of `State` in its order, without the owner's name.
_LOCK = """
SELECT id, workspace_id, site_id, customer_id, last_seq, status, owner_kind, owner_agent_id, owner_version,
       owner_reason, team_id, waiting_since, contact_email, last_line, last_author, last_at, turn, turn_part,
       turn_place, turn_question, turn_process, fence
FROM conversations_conversation WHERE id IN ({ids}) ORDER BY id {lock}
"""

# A statement of its own: after waiting for a lock, PostgreSQL re-reads the locked rows but not what was joined to them.
_OWNERS = "SELECT id, name FROM accounts_agent WHERE id IN ({ids})"

_UPDATE = """
UPDATE conversations_conversation SET last_seq=%s, status=%s, owner_kind=%s, owner_agent_id=%s, owner_version=%s,
       owner_reason=%s, team_id=%s, waiting_since=%s, contact_email=%s, last_line=%s, last_author=%s, last_at=%s,
       turn=%s, turn_part=%s, turn_place=%s, turn_question=%s, turn_process=%s, fence=%s
WHERE id=%s
"""

_STORED = """
SELECT m.sender, m.client_id, m.turn, m.part, m.id, m.conversation_id, m.text, e.seq, m.created_at
FROM conversations_message m JOIN conversations_event e ON e.message_id = m.id AND e.kind = 'message'
WHERE {condition}
"""

_MESSAGE = """
INSERT INTO conversations_message (id, conversation_id, place, author, author_name, sender, client_id, text, state,
       sources, turn, part, created_at)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, {json}, %s, %s, %s)
"""

_EVENT = """
INSERT INTO conversations_event (conversation_id, seq, kind, message_id, payload, created_at)
VALUES (%s, %s, %s, %s, {json}, %s)
"""

_EFFECT = """
INSERT INTO conversations_outboxitem (id, kind, payload, due_at, attempts, failure, created_at)
VALUES (%s, %s, {json}, %s, 0, '', %s)
"""

Key = tuple[str, str]  # (sender, client id), or ("", "turn part")


def wait_shortly() -> None:
    """On a new connection of the writer: SQLite's lock is waited for in pieces, so that deadlines are kept between."""
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA busy_timeout = 2000")


def lock_conversations(ids: Iterable[str]) -> dict[str, State]:
    """Locks the rows in id order, so that two processes with the same conversations never deadlock.

    One query, and one more where agents own some of them.
    """
    wanted = sorted(set(ids))
    lock = "FOR UPDATE" if connection.vendor == "postgresql" else ""
    with connection.cursor() as cursor:
        cursor.execute(_LOCK.format(ids=_marks(wanted), lock=lock), wanted)
        rows = cursor.fetchall()
        column = _FIELDS.index("owner_agent_id")
        owners = sorted({row[column] for row in rows if row[column] is not None})
        names: dict[str, str] = {}
        if owners:
            cursor.execute(_OWNERS.format(ids=_marks(owners)), owners)
            names = dict(cursor.fetchall())
    return {row[0]: _state(row, names) for row in rows}


def find_stored(commands: Sequence[Command]) -> dict[Key, Stored]:
    """Messages that already carry one of the commands' keys. At most two queries."""
    found: dict[Key, Stored] = {}
    named = [key for command in commands if (key := message_key(command)) and key[0]]
    if named:
        senders, client_ids = sorted({key[0] for key in named}), sorted({key[1] for key in named})
        condition = f"m.sender IN ({_marks(senders)}) AND m.client_id IN ({_marks(client_ids)})"
        found |= _stored(condition, [*senders, *client_ids])
    turns = sorted({command.turn for command in commands if isinstance(command, FinishTurn)})
    if turns:
        found |= _stored(f"m.turn IN ({_marks(turns)})", turns)
    return found


def message_key(command: Command) -> Key | None:
    """What makes a repeat of this command recognisable, if it writes a message."""
    if isinstance(command, CustomerMessage | AgentMessage):
        return (command.sender, command.client_id)
    if isinstance(command, FinishTurn):
        return ("", f"{command.turn} {command.part}")
    return None


def store(changes: Sequence[Change]) -> None:
    """Writes the rows of a batch and the final state of each conversation."""
    messages, events, effects = [], [], []
    for change in changes:
        for event in change.events:
            if event.message is not None:
                messages.append(_message_row(change.state.id, event.message))
            events.append(_event_row(change.state.id, event))
        effects += [_effect_row(effect, change.at) for effect in change.effects]
    states = {change.state.id: change.state for change in changes}
    as_json = "%s::jsonb" if connection.vendor == "postgresql" else "%s"
    with connection.cursor() as cursor:
        _many(cursor, _MESSAGE.format(json=as_json), messages)
        _many(cursor, _EVENT.format(json=as_json), events)
        _many(cursor, _EFFECT.format(json=as_json), effects)
        _many(cursor, _UPDATE, [_update_row(state) for state in states.values()])


def _stored(condition: str, parameters: list[str]) -> dict[Key, Stored]:
    with connection.cursor() as cursor:
        cursor.execute(_STORED.format(condition=condition), parameters)
        rows = cursor.fetchall()
    return {
        (sender, client_id if sender else f"{turn} {part}"): Stored(
            id=message, conversation=conversation, text=text, seq=seq, at=_moment(created)
        )
        for sender, client_id, turn, part, message, conversation, text, seq, created in rows
    }


_FIELDS = tuple(field.name for field in fields(State) if field.name != "owner_name")


def _state(row: Sequence[Any], owners: Mapping[str, str]) -> State:
    values = dict(zip(_FIELDS, row, strict=True))
    waiting = values["waiting_since"]
    values |= {
        "owner_name": owners.get(values["owner_agent_id"], ""),
        "status": Status(values["status"]),
        "owner_kind": OwnerKind(values["owner_kind"]),
        "waiting_since": _moment(waiting) if waiting is not None else None,
        "last_at": _moment(values["last_at"]),
    }
    return State(**values)


def _moment(value: Any) -> datetime:
    """SQLite hands dates over as text in Django's own format, which is UTC without a zone."""
    if isinstance(value, datetime):
        return value
    return datetime.fromisoformat(f"{value}+00:00")


def _message_row(conversation: str, m: NewMessage) -> list[Any]:
    sources = json.dumps([list(source) for source in m.sources], ensure_ascii=False)
    return [
        m.id, conversation, m.place, m.author.value, m.name, m.sender, m.client_id, m.text, m.state.value, sources,
        m.turn, m.part, _database_time(m.at),
    ]  # fmt: skip


def _event_row(conversation: str, event: NewEvent) -> list[Any]:
    message = event.message.id if event.message is not None else None
    payload = json.dumps(event.payload, ensure_ascii=False)
    return [conversation, event.seq, event.kind.value, message, payload, _database_time(event.at)]


def _effect_row(effect: NewEffect, at: datetime) -> list[Any]:
    due = at + timedelta(seconds=effect.delay_s)
    return [new_id(), effect.kind.value, json.dumps(effect.payload), _database_time(due), _database_time(at)]


def _update_row(s: State) -> list[Any]:
    waiting = _database_time(s.waiting_since) if s.waiting_since is not None else None
    return [
        s.last_seq, s.status.value, s.owner_kind.value, s.owner_agent_id, s.owner_version, s.owner_reason, s.team_id,
        waiting, s.contact_email, s.last_line, s.last_author, _database_time(s.last_at), s.turn, s.turn_part,
        s.turn_place, s.turn_question, s.turn_process, s.fence, s.id,
    ]  # fmt: skip


def _database_time(at: datetime) -> Any:
    return connection.ops.adapt_datetimefield_value(at)


def _many(cursor: Any, statement: str, rows: list[list[Any]]) -> None:
    if len(rows) == 1:
        cursor.execute(statement, rows[0])
    elif rows:
        cursor.executemany(statement, rows)


def _marks(values: Sequence[str]) -> str:
    return ", ".join(["%s"] * len(values))
