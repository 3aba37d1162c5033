"""What a command does to a conversation. Pure: the writer holds the lock, loads the state and stores the result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, assert_never

from apps.conversations import commands as c
from apps.stores.ids import new_id
from apps.wire.protocol import ErrorCode, Event, EventKind, Message, MessageState, Owner, OwnerKind, Source

LAST_LINE_CHARACTERS = 160


@dataclass(slots=True)
class State:
    """The locked row, as the writer read it and as commands of one batch change it in turn."""

    id: str
    workspace_id: str
    site_id: str
    customer_id: str
    last_seq: int
    status: str
    owner_kind: str
    owner_agent_id: str | None
    owner_name: str
    owner_version: int
    owner_reason: str
    team_id: int | None
    team_name: str
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

    def owner(self) -> Owner:
        return Owner(
            kind=OwnerKind(self.owner_kind),
            name=self.owner_name,
            agent=self.owner_agent_id,
            reason=self.owner_reason,
            team=self.team_name or None,
            version=self.owner_version,
        )

    def standing(self) -> c.Standing:
        return c.Standing(
            conversation=self.id,
            workspace=self.workspace_id,
            site=self.site_id,
            customer=self.customer_id,
            owner=self.owner(),
            status=self.status,
            last_seq=self.last_seq,
            live_turn=self.turn,
            live_process=self.turn_process,
        )


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
    id: str
    place: int
    author: str
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
    seq: int
    kind: EventKind
    message: NewMessage | None
    payload: dict[str, Any]
    at: datetime


@dataclass(frozen=True, slots=True)
class NewEffect:
    """A row of the outbox."""

    kind: str
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
        self.state.last_seq += 1
        self.events.append(NewEvent(self.state.last_seq, kind, message, payload or {}, self.at))
        return self.state.last_seq

    def result(self) -> c.Appended:
        """As acknowledged: by the message's number where there is one, else by the first event's, else the last."""
        said = next((event for event in self.events if event.message is not None), None)
        named = said or next(iter(self.events), None)
        return c.Appended(
            seq=named.seq if named is not None else self.state.last_seq,
            at=milliseconds(self.at),
            events=tuple(wire_event(self.state.id, event) for event in self.events),
            standing=self.state.standing(),
            message=said.message.view() if said is not None and said.message is not None else None,
            opened=self.opened,
        )


def milliseconds(at: datetime) -> int:
    return int(at.timestamp() * 1000)


def wire_event(conversation: str, event: NewEvent) -> Event:
    return Event(
        conversation=conversation,
        seq=event.seq,
        kind=event.kind,
        at=milliseconds(event.at),
        message=event.message.view() if event.message is not None else None,
        **payload_fields(event.kind, event.payload),
    )


def payload_fields(kind: str, payload: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of `protocol.Event` that an event of this kind keeps in its payload."""
    if kind == EventKind.OWNER:
        return {"owner": Owner(**{**payload, "kind": OwnerKind(payload["kind"])})}
    if kind == EventKind.STATUS:
        return {"status": payload["status"]}
    if kind == EventKind.TURN_OPENED:
        return {"turn": payload["turn"], "part": payload["part"]}
    return {}


def decide(  # noqa: C901 - one case a command
    state: State, command: c.Command, stored: Stored | None
) -> c.Appended | Change:
    """Applies one command to the state. `stored` is the message with the command's key, if one exists.

    Returns the first result for a repeat. Raises `Refusal` before it has changed anything.
    """
    _same_scope(state, command)
    match command:
        case c.CustomerMessage():
            return _repeat(state, command, stored) if stored else _customer_message(state, command)
        case c.AgentMessage():
            return _repeat(state, command, stored) if stored else _agent_message(state, command)
        case c.OpenTurn():
            return _open_turn(state, command)
        case c.FinishTurn():
            return _finish_turn(state, command, stored)
        case c.AdoptTurn():
            return _adopt_turn(state, command)
        case c.RequestHandoff():
            return _request_handoff(state, command)
        case c.Take():
            return _take(state, command)
        case c.HandBack():
            return _hand_back(state, command)
        case c.Resolve():
            return _resolve(state, command)
        case c.Reopen():
            return _reopen(state, command)
        case c.LeaveContact():
            return _leave_contact(state, command)
        case _:
            assert_never(command)


def _same_scope(state: State, command: c.Command) -> None:
    customer = getattr(command, "customer", state.customer_id)
    workspace = getattr(command, "workspace", state.workspace_id)
    if customer != state.customer_id or workspace != state.workspace_id:
        raise c.Refusal(ErrorCode.NOT_FOUND, "there is no such conversation")


def _repeat(state: State, command: c.CustomerMessage | c.AgentMessage, stored: Stored) -> c.Appended:
    if stored.conversation != state.id or stored.text != command.text:
        raise c.Refusal(ErrorCode.ID_REUSED, "this id was used before for another message")
    opened = None
    if isinstance(command, c.CustomerMessage) and state.turn == command.turn:
        opened = c.OpenedTurn(state.turn, state.turn_part, state.fence, state.turn_place, state.turn_question)
    return c.Appended(
        seq=stored.seq, at=milliseconds(stored.at), events=(), standing=state.standing(), opened=opened
    )


def _customer_message(state: State, command: c.CustomerMessage) -> Change:
    change = Change(state, command.at)
    if state.status == "resolved":
        # A new episode does not inherit the old one's owner.
        _set_status(change, "open")
        _set_owner(change, OwnerKind.ASSISTANT, reason="")
    place = _say(
        change,
        author="customer",
        name=command.name,
        sender=f"customer:{command.customer}",
        client_id=command.client_id,
        text=command.text,
    )
    if state.owner_kind == OwnerKind.ASSISTANT and not command.assistant:
        _set_owner(change, OwnerKind.QUEUE, reason="assistant_off")
    if state.owner_kind != OwnerKind.ASSISTANT:
        state.waiting_since = state.waiting_since or command.at
    elif not state.turn or state.turn == command.supersede:
        _mint(change, command.turn, part=1, question=place, process=command.process)
    return change


def _agent_message(state: State, command: c.AgentMessage) -> Change:
    if state.owner_agent_id != command.agent:
        raise c.Refusal(ErrorCode.NOT_OWNER, _owned_by(state))
    change = Change(state, command.at)
    _say(
        change,
        author="agent",
        name=command.name,
        sender=f"agent:{command.agent}",
        client_id=command.client_id,
        text=command.text,
    )
    state.waiting_since = None
    if state.contact_email:
        message = change.events[-1].message
        assert message is not None  # noqa: S101 - _say has just added it
        change.effects.append(NewEffect("mail.reply", {"message": message.id}, delay_s=30))
    return change


def _open_turn(state: State, command: c.OpenTurn) -> c.Appended | Change:
    if state.turn == command.turn:
        return c.Appended(
            seq=state.turn_place,
            at=milliseconds(command.at),
            events=(),
            standing=state.standing(),
            opened=c.OpenedTurn(
                state.turn, state.turn_part, state.fence, state.turn_place, state.turn_question
            ),
        )
    if state.turn or state.owner_kind != OwnerKind.ASSISTANT or state.turn_question >= command.question:
        raise c.Refusal(ErrorCode.NOT_OWNER, "no turn is due")
    change = Change(state, command.at)
    _mint(change, command.turn, part=1, question=command.question, process=command.process)
    return change


def _finish_turn(state: State, command: c.FinishTurn, stored: Stored | None) -> c.Appended | Change:
    if stored is not None:
        return c.Appended(seq=stored.seq, at=milliseconds(stored.at), events=(), standing=state.standing())
    if state.turn != command.turn or state.fence != command.fence:
        raise c.Refusal(ErrorCode.NOT_OWNER, "another process owns this turn")
    change = Change(state, command.at)
    kept = command.state
    if state.owner_kind != OwnerKind.ASSISTANT and kept == MessageState.COMPLETE:
        kept = MessageState.TAKEN_OVER
    _keep_part(change, command.text, kept, command.name, command.sources)
    _clear_turn(state)
    if command.handoff is not None and state.owner_kind == OwnerKind.ASSISTANT:
        _set_owner(change, OwnerKind.QUEUE, reason=command.handoff.reason, team=command.handoff.team)
        state.waiting_since = command.at
    return change


def _adopt_turn(state: State, command: c.AdoptTurn) -> Change:
    if state.turn != command.turn or state.fence != command.fence:
        raise c.Refusal(ErrorCode.NOT_OWNER, "another process owns this turn")
    change = Change(state, command.at)
    part, question = state.turn_part, state.turn_question
    _keep_part(change, command.text, MessageState.INTERRUPTED, command.name, ())
    _clear_turn(state)
    if command.retry and state.owner_kind == OwnerKind.ASSISTANT:
        _mint(change, command.turn, part=part + 1, question=question, process=command.process)
    return change


def _request_handoff(state: State, command: c.RequestHandoff) -> Change:
    change = Change(state, command.at)
    if state.owner_kind == OwnerKind.ASSISTANT:
        if state.status == "resolved":
            _set_status(change, "open")
        _set_owner(change, OwnerKind.QUEUE, reason="button")
        state.waiting_since = command.at
    return change


def _take(state: State, command: c.Take) -> Change:
    change = Change(state, command.at)
    if state.owner_kind == OwnerKind.AGENT and state.status == "open":
        if state.owner_agent_id != command.agent:
            raise c.Refusal(ErrorCode.ALREADY_TAKEN, state.owner_name)
        return change
    if state.status == "resolved":
        _set_status(change, "open")
    _set_owner(change, OwnerKind.AGENT, reason="agent", agent=command.agent, name=command.name)
    return change


def _hand_back(state: State, command: c.HandBack) -> Change:
    if state.owner_agent_id != command.agent:
        raise c.Refusal(ErrorCode.NOT_OWNER, _owned_by(state))
    change = Change(state, command.at)
    _set_owner(change, OwnerKind.ASSISTANT, reason="agent")
    state.waiting_since = None
    return change


def _resolve(state: State, command: c.Resolve) -> Change:
    if state.owner_agent_id not in (None, command.agent):
        raise c.Refusal(ErrorCode.NOT_OWNER, _owned_by(state))
    change = Change(state, command.at)
    if state.status == "open":
        _set_status(change, "resolved", by=command.name)
        state.waiting_since = None
    return change


def _reopen(state: State, command: c.Reopen) -> Change:
    change = Change(state, command.at)
    if state.status == "resolved":
        _set_status(change, "open")
        if state.owner_kind == OwnerKind.QUEUE:
            state.waiting_since = command.at
    return change


def _leave_contact(state: State, command: c.LeaveContact) -> Change:
    change = Change(state, command.at)
    if state.contact_email != command.email:
        state.contact_email = command.email
        change.add(EventKind.CONTACT, {"email": command.email})
    return change


# ---------------------------------------------------------------- pieces


def _say(change: Change, *, author: str, name: str, sender: str, client_id: str, text: str) -> int:
    place = change.state.last_seq + 1
    message = NewMessage(
        id=new_id(), place=place, author=author, name=name, sender=sender, client_id=client_id, text=text,
        state=MessageState.COMPLETE, sources=(), turn="", part=0, at=change.at,
    )  # fmt: skip
    _show_last(change, author, text)
    return change.add(EventKind.MESSAGE, message=message)


def _keep_part(
    change: Change, text: str, state: MessageState, name: str, sources: tuple[tuple[str, str], ...]
) -> None:
    live = change.state
    if not text:
        return
    message = NewMessage(
        id=new_id(), place=live.turn_place, author="assistant", name=name, sender="", client_id="", text=text,
        state=state, sources=sources, turn=live.turn, part=live.turn_part, at=change.at,
    )  # fmt: skip
    _show_last(change, "assistant", text)
    change.add(EventKind.MESSAGE, message=message)


def _mint(change: Change, turn: str, *, part: int, question: int, process: str) -> None:
    state = change.state
    state.fence += 1
    place = change.add(EventKind.TURN_OPENED, {"turn": turn, "part": part})
    state.turn, state.turn_part, state.turn_place = turn, part, place
    state.turn_question, state.turn_process = question, process
    change.opened = c.OpenedTurn(turn, part, state.fence, place, question)


def _clear_turn(state: State) -> None:
    # turn_question stays: it says which question was last answered.
    state.turn, state.turn_process, state.turn_part, state.turn_place = "", "", 0, 0


def _set_owner(
    change: Change,
    kind: OwnerKind,
    *,
    reason: str,
    agent: str | None = None,
    name: str = "",
    team: int | None = None,
) -> None:
    state = change.state
    state.owner_kind, state.owner_agent_id, state.owner_name = kind, agent, name
    state.owner_reason = reason
    state.owner_version += 1
    state.team_id = team if team is not None else state.team_id
    change.add(
        EventKind.OWNER,
        {"kind": kind.value, "name": name, "agent": agent, "reason": reason, "version": state.owner_version},
    )


def _set_status(change: Change, status: str, by: str = "") -> None:
    change.state.status = status
    change.add(EventKind.STATUS, {"status": status, "by": by})


def _show_last(change: Change, author: str, text: str) -> None:
    change.state.last_author, change.state.last_at = author, change.at
    change.state.last_line = " ".join(text.split())[:LAST_LINE_CHARACTERS]


def _owned_by(state: State) -> str:
    return f"{state.owner_name} owns this conversation" if state.owner_name else "take the conversation first"
