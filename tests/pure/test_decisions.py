"""What commands do to a conversation, without a database."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.conversations import commands as c
from apps.conversations.decisions import decide
from apps.conversations.state import Change, State, Stored
from apps.wire.protocol import ErrorCode, EventKind, MessageState, OwnerKind, Status
from apps.wire.server_frames import Event

NOW = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)


def fresh(**changes: Any) -> State:
    state = State(
        id="conv", workspace_id="ws", site_id="site", customer_id="cust", last_seq=0, status=Status.OPEN,
        owner_kind=OwnerKind.ASSISTANT, owner_agent_id=None, owner_name="", owner_version=0, owner_reason="",
        team_id=None, waiting_since=None, contact_email="", last_line="", last_author="", last_at=NOW, turn="",
        turn_part=0, turn_place=0, turn_question=0, turn_process="", fence=0,
    )  # fmt: skip
    return replace(state, **changes)


def says(text: str = "hello", **changes: Any) -> c.CustomerMessage:
    command = c.CustomerMessage(
        conversation="conv", customer="cust", name="Mia", client_id="m1", text=text, at=NOW, turn="t1",
        process="p1", assistant=True,
    )  # fmt: skip
    return replace(command, **changes)


def finishes(**changes: Any) -> c.FinishTurn:
    command = c.FinishTurn(
        conversation="conv", turn="t1", fence=1, part=1, text="An answer.", state=MessageState.COMPLETE,
        name="Assistant", at=NOW,
    )  # fmt: skip
    return replace(command, **changes)


def takes(agent: str = "kim") -> c.Take:
    return c.Take(conversation="conv", workspace="ws", agent=agent, name=agent.title(), at=NOW)


def applied(state: State, command: c.Command) -> c.Appended:
    decided = decide(state, command, None)
    return decided.result() if isinstance(decided, Change) else decided


def kinds(appended: c.Appended) -> list[EventKind]:
    return [event.kind for event in appended.events]


def test_a_question_opens_a_turn_in_the_same_commit() -> None:
    appended = applied(fresh(), says())
    assert kinds(appended) == [EventKind.MESSAGE, EventKind.TURN_OPENED]
    assert appended.opened == c.OpenedTurn(turn="t1", part=1, fence=1, place=2, question=1)


def test_an_answer_stands_where_its_turn_opened_even_after_later_messages() -> None:
    state = fresh()
    applied(state, says())
    later = applied(state, says("and another thing", client_id="m2", turn="t2"))
    assert later.opened is None
    answer = applied(state, finishes()).message
    assert answer is not None
    assert (answer.place, later.seq) == (2, 3)


def test_a_newer_message_supersedes_only_the_turn_it_names() -> None:
    state = fresh()
    applied(state, says())
    superseding = applied(state, says("rather this", client_id="m2", turn="t2", supersede="t1"))
    assert superseding.opened == c.OpenedTurn(turn="t2", part=1, fence=2, place=4, question=3)
    with pytest.raises(c.Refusal) as refused:
        applied(state, finishes())
    assert refused.value.code is ErrorCode.NOT_OWNER


def test_a_message_to_a_human_opens_no_turn_and_starts_the_waiting_clock() -> None:
    state = fresh(owner_kind=OwnerKind.AGENT, owner_agent_id="kim", owner_name="Kim")
    assert applied(state, says()).opened is None
    assert state.waiting_since == NOW


def test_without_an_assistant_the_message_goes_to_the_queue() -> None:
    state = fresh()
    appended = applied(state, says(assistant=False))
    assert kinds(appended) == [EventKind.MESSAGE, EventKind.OWNER]
    assert (state.owner_kind, state.owner_reason, state.waiting_since) == ("queue", "assistant_off", NOW)


def test_a_new_episode_does_not_inherit_the_owner() -> None:
    state = fresh(status=Status.RESOLVED, owner_kind=OwnerKind.AGENT, owner_agent_id="kim", owner_name="Kim")
    appended = applied(state, says())
    assert kinds(appended) == [EventKind.STATUS, EventKind.OWNER, EventKind.MESSAGE, EventKind.TURN_OPENED]
    assert (state.status, state.owner_kind, state.owner_agent_id) == ("open", "assistant", None)


def test_a_message_that_reopens_is_acknowledged_by_its_own_number() -> None:
    appended = applied(fresh(status=Status.RESOLVED), says())
    assert appended.message is not None
    assert appended.seq == appended.message.place == 3


def test_an_answer_finished_after_a_takeover_is_marked_and_hands_nothing_over() -> None:
    state = fresh()
    applied(state, says())
    applied(state, takes())
    finished = applied(state, finishes(handoff=c.Handoff(reason="model")))
    assert finished.message is not None
    assert finished.message.state is MessageState.TAKEN_OVER
    assert (state.owner_kind, state.turn) == ("agent", "")


def test_the_second_agent_is_told_who_took_it() -> None:
    state = fresh(owner_kind=OwnerKind.QUEUE, waiting_since=NOW)
    applied(state, takes("kim"))
    with pytest.raises(c.Refusal) as refused:
        applied(state, takes("ana"))
    assert (refused.value.code, refused.value.message) == (ErrorCode.ALREADY_TAKEN, "Kim")
    assert (state.owner_agent_id, state.owner_version) == ("kim", 1)


def test_taking_twice_changes_nothing() -> None:
    state = fresh()
    applied(state, takes())
    assert applied(state, takes()).events == ()


def test_only_the_owning_agent_may_write() -> None:
    state = fresh()
    message = c.AgentMessage(
        conversation="conv", workspace="ws", agent="kim", name="Kim", client_id="a1", text="Hi", at=NOW
    )
    with pytest.raises(c.Refusal) as refused:
        applied(state, message)
    assert (refused.value.code, state.last_seq) == (ErrorCode.NOT_OWNER, 0)
    applied(state, takes())
    assert kinds(applied(state, message)) == [EventKind.MESSAGE]


def test_an_agents_reply_to_somebody_who_left_an_address_is_mailed() -> None:
    state = fresh(
        owner_kind=OwnerKind.AGENT, owner_agent_id="kim", owner_name="Kim", contact_email="mia@example.com"
    )
    message = c.AgentMessage(
        conversation="conv", workspace="ws", agent="kim", name="Kim", client_id="a1", text="Hi", at=NOW
    )
    decided = decide(state, message, None)
    assert isinstance(decided, Change)
    assert [effect.kind for effect in decided.effects] == ["mail.reply"]


@pytest.mark.parametrize(
    "command",
    [says(customer="other"), replace(takes(), workspace="other")],
    ids=["another customer", "another workspace"],
)
def test_a_foreign_conversation_does_not_exist(command: c.Command) -> None:
    state = fresh()
    with pytest.raises(c.Refusal) as refused:
        applied(state, command)
    assert (refused.value.code, state.last_seq) == (ErrorCode.NOT_FOUND, 0)


def test_a_repeated_id_returns_the_first_result_and_another_body_is_refused() -> None:
    state = fresh(last_seq=5)
    stored = Stored(id="x", conversation="conv", text="hello", seq=3, at=NOW)
    again = decide(state, says(), stored)
    assert isinstance(again, c.Appended)
    assert (again.seq, again.events, again.opened, state.last_seq) == (3, (), None, 5)
    with pytest.raises(c.Refusal) as refused:
        decide(state, says("something else"), stored)
    assert refused.value.code is ErrorCode.ID_REUSED


def test_a_dead_processs_text_becomes_an_interrupted_part_and_the_retry_a_new_one() -> None:
    state = fresh()
    applied(state, says())
    adopted = applied(
        state,
        c.AdoptTurn(
            conversation="conv",
            turn="t1",
            fence=1,
            text="Your ord",
            name="Assistant",
            process="p2",
            retry=True,
            at=NOW,
        ),
    )
    assert kinds(adopted) == [EventKind.MESSAGE, EventKind.TURN_OPENED]
    assert adopted.message is not None
    assert (adopted.message.text, adopted.message.state, adopted.message.place) == (
        "Your ord", MessageState.INTERRUPTED, 2,
    )  # fmt: skip
    assert adopted.opened == c.OpenedTurn(turn="t1", part=2, fence=2, place=4, question=1)
    with pytest.raises(c.Refusal):
        applied(state, finishes())


def test_a_retry_that_answers_a_newer_question_takes_that_up() -> None:
    state = fresh()
    applied(state, says())
    adopted = applied(
        state,
        c.AdoptTurn(
            conversation="conv", turn="t1", fence=1, text="Your ord", name="Assistant", process="p2", retry=True,
            at=NOW, question=3,
        ),
    )  # fmt: skip
    assert adopted.opened is not None
    assert (adopted.opened.question, state.turn_question) == (3, 3)


@pytest.mark.parametrize("owner", [OwnerKind.ASSISTANT, OwnerKind.QUEUE])
def test_a_turn_that_is_not_tried_again_ends_with_an_apology_of_the_assistant_alone(owner: OwnerKind) -> None:
    state = fresh()
    applied(state, says())
    state.owner_kind = owner
    ended = applied(
        state,
        c.AdoptTurn(
            conversation="conv", turn="t1", fence=1, text="Your ord", name="Assistant", process="p2", retry=False,
            at=NOW, apology="Sorry.",
        ),
    )  # fmt: skip
    said = [(event.message.text, event.message.state) for event in ended.events if event.message is not None]
    apology = [("Sorry.", MessageState.COMPLETE)] if owner is OwnerKind.ASSISTANT else []
    assert said == [("Your ord", MessageState.INTERRUPTED), *apology]
    assert ended.opened is None
    assert state.turn == ""


def test_a_turn_that_said_nothing_leaves_no_message() -> None:
    state = fresh()
    applied(state, says())
    assert applied(state, finishes(text="", state=MessageState.STOPPED)).events == ()
    assert state.turn == ""


@pytest.mark.parametrize(
    ("kind", "agent"), [(OwnerKind.QUEUE, None), (OwnerKind.AGENT, "kim"), (OwnerKind.ASSISTANT, None)]
)
def test_asking_for_a_person_after_the_end_waits_for_one_again(kind: OwnerKind, agent: str | None) -> None:
    state = fresh(status=Status.RESOLVED, owner_kind=kind, owner_agent_id=agent, owner_name=agent or "")
    asked = applied(state, c.RequestHandoff(conversation="conv", customer="cust", at=NOW))
    assert kinds(asked) == [EventKind.STATUS, EventKind.OWNER]
    assert (state.status, state.owner_kind, state.owner_agent_id) == ("open", "queue", None)
    assert state.waiting_since == NOW


def test_a_question_left_over_when_an_agent_resolved_opens_no_turn() -> None:
    state = fresh()
    applied(state, says())
    left = applied(state, says("and this?", client_id="m2", turn="t2"))
    applied(state, finishes())
    applied(state, c.Resolve(conversation="conv", workspace="ws", agent="kim", name="Kim", at=NOW))
    command = c.OpenTurn(conversation="conv", turn="t3", process="p1", question=left.seq, at=NOW)
    with pytest.raises(c.Refusal):
        applied(state, command)
    applied(state, c.Reopen(conversation="conv", workspace="ws", agent="kim", at=NOW))
    assert applied(state, command).opened is not None


def test_a_model_handoff_of_what_was_resolved_meanwhile_waits_in_the_queue() -> None:
    state = fresh()
    applied(state, says())
    applied(state, c.Resolve(conversation="conv", workspace="ws", agent="kim", name="Kim", at=NOW))
    handed = applied(state, finishes(handoff=c.Handoff(reason="model")))
    assert kinds(handed) == [EventKind.MESSAGE, EventKind.STATUS, EventKind.OWNER]
    assert (state.status, state.owner_kind, state.waiting_since) == ("open", "queue", NOW)


def test_a_model_handoff_puts_the_conversation_into_the_queue() -> None:
    state = fresh()
    applied(state, says())
    finished = applied(state, finishes(handoff=c.Handoff(reason="model", team=7)))
    assert kinds(finished) == [EventKind.MESSAGE, EventKind.OWNER]
    assert (state.owner_kind, state.owner_reason, state.team_id) == ("queue", "model", 7)
    assert state.waiting_since == NOW


_agents = st.sampled_from(["kim", "ana"])
_commands: st.SearchStrategy[Any] = st.one_of(
    st.builds(
        lambda n, supersede: says(f"text {n}", client_id=f"m{n}", turn=f"t{n}", supersede=supersede),
        st.integers(1, 30),
        st.sampled_from(["", "t1", "t2", "t3"]),
    ),
    st.builds(takes, _agents),
    st.builds(lambda a: c.HandBack(conversation="conv", workspace="ws", agent=a, at=NOW), _agents),
    st.builds(lambda a: c.Resolve(conversation="conv", workspace="ws", agent=a, name=a, at=NOW), _agents),
    st.builds(lambda: c.RequestHandoff(conversation="conv", customer="cust", at=NOW)),
    st.builds(
        lambda fence, part, handoff: ("finish", fence, part, handoff),
        st.integers(-1, 1),
        st.booleans(),
        st.sampled_from([None, c.Handoff(reason="model")]),
    ),
    st.builds(lambda retry: ("adopt", retry), st.booleans()),
)


@settings(max_examples=300)
@given(st.lists(_commands, max_size=30))
def test_any_history_numbers_without_holes_and_keeps_one_message_a_place(history: list[Any]) -> None:
    state = fresh()
    events: list[Event] = []
    seen: dict[str, Stored] = {}
    for index, step in enumerate(history):
        at = NOW + timedelta(seconds=index)
        command = _resolved(step, state, at)
        before = replace(state)
        stored = seen.get(command.client_id) if isinstance(command, c.CustomerMessage) else None
        try:
            decided = decide(state, command, stored)
        except c.Refusal:
            assert state == before
            continue
        if isinstance(decided, Change):
            events += decided.result().events
            for event in decided.events:
                if event.message is not None and event.message.client_id:
                    seen[event.message.client_id] = Stored("x", "conv", event.message.text, event.seq, at)
        assert state.fence >= before.fence
        assert bool(state.turn) == bool(state.turn_process)
        assert state.waiting_since is None or state.status is Status.OPEN
        assert state.waiting_since is not None or (state.status, state.owner_kind) != ("open", "queue")
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    places = [event.message.place for event in events if event.message is not None]
    assert len(places) == len(set(places))
    parts = [(e.message.turn, e.message.part) for e in events if e.message is not None and e.message.turn]
    assert len(parts) == len(set(parts))
    assert state.owner_kind in set(OwnerKind)


def _resolved(step: Any, state: State, at: datetime) -> c.Command:
    match step:
        case ("finish", fence, empty, handoff):
            return finishes(
                turn=state.turn or "t1", fence=state.fence + fence, part=state.turn_part,
                text="" if empty else "An answer.", handoff=handoff, at=at,
            )  # fmt: skip
        case ("adopt", retry):
            return c.AdoptTurn(
                conversation="conv", turn=state.turn or "t1", fence=state.fence, text="part", name="Assistant",
                process="p2", retry=retry, at=at, apology="Sorry.",
            )  # fmt: skip
        case c.CustomerMessage():
            # A turn's id is minted once; a superseded or finished one never comes back.
            return replace(step, turn=f"t{state.last_seq}x", at=at)
        case _:
            return step  # type: ignore[no-any-return]
