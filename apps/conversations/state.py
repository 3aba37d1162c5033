"""A conversation under its lock, and what one command adds to it. Pure shapes; `decisions.py` decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from apps.conversations import commands as c
from apps.wire.protocol import Author, EventKind, Message, MessageState, Owner, OwnerKind, Source, Status
from apps.wire.server_frames import Event
from apps.wire.times import milliseconds


@dataclass(slots=True)
class State:
    """The locked row, as the writer read it and as commands of one batch change it in turn."""

    id: str
    workspace_id: str
    site_id: str
    customer_id: str
    last_seq: int
    status: Status
    owner_kind: OwnerKind
    owner_agent_id: str | None
    owner_name: str
    owner_version: int
    owner_reason: str
    team_id: int | None
    waiting_since: datetime | None
    contact_email: str
    last_line: str
    last_author: str
    last_at: datetime
    turn: str
    turn_part: int
    turn_place: int
    turn_question: int
    turn_process: str
    fence: int

    def standing(self) -> c.Standing:
        """What the commit leaves, for whoever must react."""
        owner = Owner(
            kind=self.owner_kind,
            name=self.owner_name,
            agent=self.owner_agent_id,
            reason=self.owner_reason,
            version=self.owner_version,
        )
        return c.Standing(conversation=self.id, workspace=self.workspace_id, owner=owner)

    def unchanged(self, seq: int, at: datetime, *, opened: bool = False) -> c.Appended:
        """The answer to a command that was carried out before; `opened` if the live turn is that of the command."""
        return c.Appended(
            seq=seq,
            at=milliseconds(at),
            events=(),
            standing=self.standing(),
            opened=self.live_turn() if opened else None,
        )

    def live_turn(self) -> c.OpenedTurn:
        """The turn that is live now."""
        return c.OpenedTurn(self.turn, self.turn_part, self.fence, self.turn_place, self.turn_question)


@dataclass(frozen=True, slots=True)
class Stored:
    """A message found by its key before the command was decided."""

    id: str
    conversation: str
    text: str
    seq: int
    at: datetime


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A row of messages. `sender` and `client_id` are empty for the assistant, `turn` for everybody else."""

    id: str
    place: int
    author: Author
    name: str
    sender: str
    client_id: str
    text: str
    state: MessageState
    sources: tuple[tuple[str, str], ...]
    turn: str
    part: int
    at: datetime

    def view(self) -> Message:
        """As the wire shows it."""
        return Message(
            id=self.id,
            place=self.place,
            author=self.author,
            name=self.name,
            text=self.text,
            at=milliseconds(self.at),
            state=self.state,
            client_id=self.client_id or None,
            turn=self.turn or None,
            part=self.part or None,
            sources=tuple(Source(title=title, url=url) for title, url in self.sources),
        )


@dataclass(frozen=True, slots=True)
class NewEvent:
    """A row of events."""

    seq: int
    kind: EventKind
    message: NewMessage | None
    payload: dict[str, Any]
    at: datetime

    def view(self, conversation: str) -> Event:
        """As the wire shows it."""
        return Event(
            conversation=conversation,
            seq=self.seq,
            kind=self.kind,
            at=milliseconds(self.at),
            message=self.message.view() if self.message is not None else None,
            **payload_fields(self.kind, self.payload),
        )


@dataclass(frozen=True, slots=True)
class NewEffect:
    """A row of the outbox."""

    kind: c.EffectKind
    payload: dict[str, str]
    delay_s: int = 0


@dataclass(slots=True)
class Change:
    """What one command adds. Rows are in order of `seq`."""

    state: State
    at: datetime
    events: list[NewEvent] = field(default_factory=list)
    effects: list[NewEffect] = field(default_factory=list)
    opened: c.OpenedTurn | None = None

    def add(
        self, kind: EventKind, payload: dict[str, Any] | None = None, message: NewMessage | None = None
    ) -> int:
        """Takes the next number for an event; that number."""
        self.state.last_seq += 1
        self.events.append(NewEvent(self.state.last_seq, kind, message, payload or {}, self.at))
        return self.state.last_seq

    def result(self) -> c.Appended:
        """As acknowledged: by the message's number where there is one, else by the first event's, else the last."""
        events = tuple(event.view(self.state.id) for event in self.events)
        said = next((event for event in events if event.message is not None), None)
        named = said or next(iter(events), None)
        return c.Appended(
            seq=named.seq if named is not None else self.state.last_seq,
            at=milliseconds(self.at),
            events=events,
            standing=self.state.standing(),
            message=said.message if said is not None else None,
            opened=self.opened,
        )


def payload_fields(kind: str, payload: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of `protocol.Event` that an event of this kind keeps in its payload."""
    if kind == EventKind.OWNER:
        return {"owner": Owner(**{**payload, "kind": OwnerKind(payload["kind"])})}
    if kind == EventKind.STATUS:
        return {"status": Status(payload["status"])}
    if kind == EventKind.TURN_OPENED:
        return {"turn": payload["turn"], "part": payload["part"]}
    return {}
