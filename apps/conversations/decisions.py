"""What a command does to a conversation. Pure: the writer holds the lock, loads the state and stores the result."""

from __future__ import annotations

from typing import assert_never

from apps.conversations import commands as c
from apps.conversations.state import Change, NewEffect, NewMessage, State, Stored
from apps.stores.ids import new_id
from apps.wire.protocol import Author, ErrorCode, EventKind, MessageState, OwnerKind, Status

LAST_LINE_CHARACTERS = 160


def decide(  # noqa: C901 - one case a command
    state: State, command: c.Command, stored: Stored | None
) -> c.Appended | Change:
    """Applies one command to the state. `stored` is the message with the command's key, if one exists.

    Returns the first result for a repeat. Raises `Refusal` before it has changed anything.
    """
    _check_scope(state, command)
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


def _check_scope(state: State, command: c.Command) -> None:
    """Customers reach their own conversations, agents those of their workspace; turns are our own processes'."""
    match command:
        case c.CustomerMessage() | c.RequestHandoff() | c.LeaveContact():
            inside = command.customer == state.customer_id
        case c.AgentMessage() | c.Take() | c.HandBack() | c.Resolve() | c.Reopen():
            inside = command.workspace == state.workspace_id
        case c.OpenTurn() | c.FinishTurn() | c.AdoptTurn():
            inside = True
        case _:
            assert_never(command)
    if not inside:
        raise c.Refusal(ErrorCode.NOT_FOUND, "there is no such conversation")


def _repeat(state: State, command: c.CustomerMessage | c.AgentMessage, stored: Stored) -> c.Appended:
    if stored.conversation != state.id or stored.text != command.text:
        raise c.Refusal(ErrorCode.ID_REUSED, "this id was used before for another message")
    opened = isinstance(command, c.CustomerMessage) and state.turn == command.turn
    return state.unchanged(stored.seq, stored.at, opened=opened)


def _customer_message(state: State, command: c.CustomerMessage) -> Change:
    change = Change(state, command.at)
    if state.status is Status.RESOLVED:
        # A new episode does not inherit the old one's owner.
        _set_status(change, Status.OPEN)
        _set_owner(change, OwnerKind.ASSISTANT, reason="")
    message = _say(change, command, Author.CUSTOMER)
    if state.owner_kind is OwnerKind.ASSISTANT and not command.assistant:
        _set_owner(change, OwnerKind.QUEUE, reason="assistant_off")
    if state.owner_kind is not OwnerKind.ASSISTANT:
        state.waiting_since = state.waiting_since or command.at
    elif not state.turn or state.turn == command.supersede:
        _mint(change, command.turn, part=1, question=message.place, process=command.process)
    return change


def _agent_message(state: State, command: c.AgentMessage) -> Change:
    if state.owner_agent_id != command.agent:
        raise c.Refusal(ErrorCode.NOT_OWNER, _owned_by(state))
    change = Change(state, command.at)
    message = _say(change, command, Author.AGENT)
    state.waiting_since = None
    if state.contact_email:
        change.effects.append(NewEffect(c.EffectKind.MAIL_REPLY, {"message": message.id}, delay_s=30))
    return change


def _open_turn(state: State, command: c.OpenTurn) -> c.Appended | Change:
    if state.turn == command.turn:
        return state.unchanged(state.turn_place, command.at, opened=True)
    due = state.owner_kind is OwnerKind.ASSISTANT and state.status is Status.OPEN
    if state.turn or not due or state.turn_question >= command.question:
        raise c.Refusal(ErrorCode.NOT_OWNER, "no turn is due")
    change = Change(state, command.at)
    _mint(change, command.turn, part=1, question=command.question, process=command.process)
    return change


def _finish_turn(state: State, command: c.FinishTurn, stored: Stored | None) -> c.Appended | Change:
    if stored is not None:
        return state.unchanged(stored.seq, stored.at)
    if state.turn != command.turn or state.fence != command.fence:
        raise c.Refusal(ErrorCode.NOT_OWNER, "another process owns this turn")
    change = Change(state, command.at)
    kept = command.state
    if state.owner_kind is not OwnerKind.ASSISTANT and kept is MessageState.COMPLETE:
        kept = MessageState.TAKEN_OVER
    _keep_part(change, command.text, kept, command.name, command.sources)
    _clear_turn(state)
    if command.handoff is not None and state.owner_kind is OwnerKind.ASSISTANT:
        # Resolved while the answer ran: the customer was just promised a person.
        _queue(change, command.handoff.reason, command.handoff.team)
    return change


def _adopt_turn(state: State, command: c.AdoptTurn) -> Change:
    if state.turn != command.turn or state.fence != command.fence:
        raise c.Refusal(ErrorCode.NOT_OWNER, "another process owns this turn")
    change = Change(state, command.at)
    part, question = state.turn_part, max(state.turn_question, command.question)
    _keep_part(change, command.text, MessageState.INTERRUPTED, command.name, ())
    _clear_turn(state)
    if state.owner_kind is not OwnerKind.ASSISTANT or not (command.retry or command.apology):
        return change
    _mint(change, command.turn, part=part + 1, question=question, process=command.process)
    if not command.retry:
        _keep_part(change, command.apology, MessageState.COMPLETE, command.name, ())
        _clear_turn(state)
        change.opened = None
    return change


def _request_handoff(state: State, command: c.RequestHandoff) -> Change:
    change = Change(state, command.at)
    # Whoever owned what is resolved will not come: asking again begins anew.
    if state.owner_kind is OwnerKind.ASSISTANT or state.status is Status.RESOLVED:
        _queue(change, "button")
    return change


def _take(state: State, command: c.Take) -> Change:
    change = Change(state, command.at)
    if state.owner_kind is OwnerKind.AGENT and state.status is Status.OPEN:
        if state.owner_agent_id != command.agent:
            raise c.Refusal(ErrorCode.ALREADY_TAKEN, state.owner_name)
        return change
    if state.status is Status.RESOLVED:
        _set_status(change, Status.OPEN)
    _set_owner(change, OwnerKind.AGENT, reason="agent", agent=command.agent, name=command.name)
    return change


def _hand_back(state: State, command: c.HandBack) -> Change:
    if state.owner_agent_id != command.agent:
        raise c.Refusal(ErrorCode.NOT_OWNER, _owned_by(state))
    change = Change(state, command.at)
    _set_owner(change, OwnerKind.ASSISTANT, reason="agent")
    state.waiting_since = None
    # A question whose answer was cut off by the takeover is due again, unless the agent has answered it.
    state.turn_question = 0
    return change


def _resolve(state: State, command: c.Resolve) -> Change:
    if state.owner_agent_id not in (None, command.agent):
        raise c.Refusal(ErrorCode.NOT_OWNER, _owned_by(state))
    change = Change(state, command.at)
    if state.status is Status.OPEN:
        _set_status(change, Status.RESOLVED, by=command.name)
        state.waiting_since = None
    return change


def _reopen(state: State, command: c.Reopen) -> Change:
    change = Change(state, command.at)
    if state.status is Status.RESOLVED:
        _set_status(change, Status.OPEN)
        if state.owner_kind is OwnerKind.QUEUE:
            state.waiting_since = command.at
    return change


def _leave_contact(state: State, command: c.LeaveContact) -> Change:
    change = Change(state, command.at)
    if state.contact_email != command.email:
        state.contact_email = command.email
        change.add(EventKind.CONTACT, {"email": command.email})
    return change


def _say(change: Change, command: c.CustomerMessage | c.AgentMessage, author: Author) -> NewMessage:
    message = NewMessage(
        id=new_id(), place=change.state.last_seq + 1, author=author, name=command.name, sender=command.sender,
        client_id=command.client_id, text=command.text, state=MessageState.COMPLETE, sources=(), turn="", part=0,
        at=change.at,
    )  # fmt: skip
    _show_last(change, author, command.text)
    change.add(EventKind.MESSAGE, message=message)
    return message


def _keep_part(
    change: Change, text: str, state: MessageState, name: str, sources: tuple[tuple[str, str], ...]
) -> None:
    live = change.state
    if not text:
        return
    message = NewMessage(
        id=new_id(), place=live.turn_place, author=Author.ASSISTANT, name=name, sender="", client_id="", text=text,
        state=state, sources=sources, turn=live.turn, part=live.turn_part, at=change.at,
    )  # fmt: skip
    _show_last(change, Author.ASSISTANT, text)
    change.add(EventKind.MESSAGE, message=message)


def _mint(change: Change, turn: str, *, part: int, question: int, process: str) -> None:
    state = change.state
    state.fence += 1
    place = change.add(EventKind.TURN_OPENED, {"turn": turn, "part": part})
    state.turn, state.turn_part, state.turn_place = turn, part, place
    state.turn_question, state.turn_process = question, process
    change.opened = state.live_turn()


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


def _queue(change: Change, reason: str, team: int | None = None) -> None:
    """Lets the customer wait for a person, where agents see it: in an open conversation."""
    if change.state.status is Status.RESOLVED:
        _set_status(change, Status.OPEN)
    _set_owner(change, OwnerKind.QUEUE, reason=reason, team=team)
    change.state.waiting_since = change.at


def _set_status(change: Change, status: Status, by: str = "") -> None:
    change.state.status = status
    change.add(EventKind.STATUS, {"status": status.value, "by": by})


def _show_last(change: Change, author: Author, text: str) -> None:
    change.state.last_author, change.state.last_at = author, change.at
    change.state.last_line = " ".join(text.split())[:LAST_LINE_CHARACTERS]


def _owned_by(state: State) -> str:
    return f"{state.owner_name} owns this conversation" if state.owner_name else "take the conversation first"
