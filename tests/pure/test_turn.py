"""How a turn thinks, with doubles for what lies outside the engine."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace

import pytest

from apps.engine import turn as engine
from apps.engine.context import Context
from apps.engine.events import (
    Acting,
    Delta,
    Done,
    Failed,
    Finished,
    HandoffCall,
    HandoffRequested,
    ModelEvent,
    OnModelEvent,
    TextDelta,
    TurnEvent,
)
from apps.engine.ports import ModelUnavailable
from apps.engine.rules import Decision, RuleInput
from apps.engine.types import Assistant, Facts, FactsState, ModelRequest, Passage, Speaker, Usage
from apps.telemetry.waterfall import Waterfall

VISITOR = Facts(verified=False, state=FactsState.NONE)
MIA = Facts(verified=True, state=FactsState.WARM)
RETURNS = Passage("Returns", "Thirty days.", "https://shop.example/r", 0.9, answerable=True)
BATTERIES = replace(RETURNS, title="Batteries", answerable=False)
COST = Usage(10, 2)


@dataclass
class Model:
    """Says its events, or fails first."""

    says: tuple[ModelEvent, ...] = (TextDelta("Hello."), Done("stop", COST, "first"))
    fails: ModelUnavailable | None = None
    asked: list[ModelRequest] = field(default_factory=list)

    async def stream(self, request: ModelRequest, on_event: OnModelEvent) -> None:
        self.asked.append(request)
        if self.fails is not None:
            raise self.fails
        for event in self.says:
            await on_event(event)


class SilentModel:
    """Never ends; remembers that it was left."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.left = False

    async def stream(self, request: ModelRequest, on_event: OnModelEvent) -> None:
        self.entered.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.left = True


@dataclass
class FactSource:
    known: Facts = VISITOR
    asked: list[tuple[bool, float]] = field(default_factory=list)

    async def facts(self, needed: bool, deadline_s: float) -> Facts:
        self.asked.append((needed, deadline_s))
        return self.known


@dataclass
class Retrieval:
    found: tuple[Passage, ...] | None = ()  # None: never answers

    async def passages(self) -> tuple[Passage, ...]:
        if self.found is None:
            await asyncio.Event().wait()
        assert self.found is not None
        return self.found


@dataclass
class Rules:
    decision: Decision = field(default_factory=Decision)
    asked: list[RuleInput] = field(default_factory=list)

    def decide(self, given: RuleInput) -> Decision:
        self.asked.append(given)
        return self.decision


@dataclass
class Turn:
    """One turn: what it was given, what it did, what its trace says."""

    question: str = "Do you sell lamps?"
    verified: bool = False
    model: Model | SilentModel = field(default_factory=Model)
    facts: FactSource = field(default_factory=FactSource)
    retrieval: Retrieval = field(default_factory=Retrieval)
    rules: Rules = field(default_factory=Rules)
    emitted: list[TurnEvent] = field(default_factory=list)
    trace: Waterfall = field(default_factory=Waterfall)

    async def run(self) -> list[TurnEvent]:
        context = Context()
        context.add(1, Speaker.CUSTOMER, self.question)
        given = engine.TurnInput(
            conversation="c",
            question=self.question,
            locale="en",
            verified=self.verified,
            context=context,
            assistant=Assistant("Lumen", "Lantern", ""),
            teams=("Returns",),
            within_hours=True,
        )

        async def emit(event: TurnEvent) -> None:
            self.emitted.append(event)

        ports = engine.Ports(self.model, self.facts, self.retrieval, self.rules)
        await engine.run(given, ports, emit, self.trace)
        return self.emitted


async def test_an_answer_is_the_models_words_then_its_end_with_what_it_cost() -> None:
    assert await Turn().run() == [Delta("Hello."), Finished((), COST, "first")]


async def test_a_rules_reply_is_said_instead_of_asking_the_model() -> None:
    turn = Turn(model=Model(), rules=Rules(Decision(reply="Closed today.", matched=("holiday",))))
    assert await turn.run() == [Delta("Closed today."), Finished(())]
    assert isinstance(turn.model, Model)
    assert turn.model.asked == []
    assert turn.trace.marks["rules"] == "holiday"


async def test_a_rule_may_hand_over_without_a_word() -> None:
    turn = Turn(rules=Rules(Decision(handoff=True, team="Returns")))
    assert await turn.run() == [HandoffRequested("rule", "Returns"), Finished(())]


async def test_the_trace_names_tags_and_rules_that_could_not_be_asked() -> None:
    turn = Turn(rules=Rules(Decision(tags=("safety", "lamp"), failed=("broken",))))
    await turn.run()
    assert turn.trace.marks == {"profile": "none", "tags": "safety, lamp", "rules_failed": "broken"}


async def test_a_rules_instruction_reaches_the_model_behind_the_stable_part() -> None:
    turn = Turn(model=(model := Model()), rules=Rules(Decision(instructions=("Be short.",))))
    await turn.run()
    roles = [(message.role, "Be short." in message.content) for message in model.asked[0].messages]
    assert roles == [("system", False), ("system", False), ("system", True), ("user", False)]


async def test_the_models_wish_for_a_human_is_passed_on() -> None:
    turn = Turn(model=Model((HandoffCall("angry", "Returns"), Done("tool_calls"))))
    assert await turn.run() == [HandoffRequested("model", "Returns"), Finished(())]


async def test_an_answer_names_each_article_behind_it_once_and_none_beside_the_point() -> None:
    found = (RETURNS, replace(RETURNS, text="Worn boots too."), BATTERIES)
    model = Model((TextDelta("You have thirty days."), Done("stop")))
    [*_, finished] = await Turn(model=model, retrieval=Retrieval(found)).run()
    assert isinstance(finished, Finished)
    assert finished.sources == (("Returns", "https://shop.example/r"),)


async def test_an_answer_from_nothing_that_was_found_names_no_article() -> None:
    model = Model((TextDelta("Please log in, then ask me again."), Done("stop")))
    [*_, finished] = await Turn(model=model, retrieval=Retrieval((RETURNS,))).run()
    assert finished == Finished(())


async def test_a_model_that_says_what_it_told_is_believed() -> None:
    model = Model((TextDelta("Thirty days."), Done("stop", told=(BATTERIES,))))
    [*_, finished] = await Turn(model=model, retrieval=Retrieval((RETURNS,))).run()
    assert finished == Finished((("Batteries", "https://shop.example/r"),))


async def test_where_nothing_was_said_no_article_is_named() -> None:
    turn = Turn(model=Model((HandoffCall(""), Done("tool_calls"))), retrieval=Retrieval((RETURNS,)))
    [*_, finished] = await turn.run()
    assert finished == Finished(())


async def test_a_handover_in_words_names_no_article() -> None:
    says = (TextDelta("Of course. I'm bringing in a colleague."), HandoffCall(""), Done("stop"))
    [*_, finished] = await Turn(model=Model(says), retrieval=Retrieval((RETURNS,))).run()
    assert finished == Finished(())


async def test_no_model_is_said_to_have_failed() -> None:
    assert await Turn(model=Model(fails=ModelUnavailable("stalled_turn"))).run() == [Failed("stalled_turn")]


@pytest.mark.parametrize(
    ("verified", "question", "asked", "acting"),
    [
        (True, "Where is my order 1042?", (True, 1.0), [Acting("order", "1042")]),
        (True, "我的订单到哪了", (True, 1.0), [Acting("order", "")]),
        (True, "Do you sell lamps?", (False, 0.05), []),
        (False, "Where is my order 1042?", (False, 0.05), []),
    ],
)
async def test_the_shop_may_be_asked_only_for_a_known_customers_own_orders(
    verified: bool, question: str, asked: tuple[bool, float], acting: list[TurnEvent]
) -> None:
    turn = Turn(question=question, verified=verified, facts=FactSource(MIA if verified else VISITOR))
    events = await turn.run()
    assert turn.facts.asked == [asked]
    assert [event for event in events if isinstance(event, Acting)] == acting


async def test_without_facts_the_turn_goes_on_and_the_trace_says_so() -> None:
    late = Facts(verified=True, state=FactsState.UNAVAILABLE)
    turn = Turn(verified=True, facts=FactSource(late))
    assert (await turn.run())[-1] == Finished((), COST, "first")
    assert turn.trace.marks["profile"] == "unavailable"
    assert turn.rules.asked[0].facts == late


async def test_passages_that_are_late_are_left_out_and_the_trace_says_so() -> None:
    turn = Turn(model=(model := Model()), retrieval=Retrieval(None))
    await turn.run()
    assert model.asked[0].passages == ()
    assert turn.trace.marks["retrieval"] == "late"


async def test_cancelling_a_turn_leaves_the_model() -> None:
    model = SilentModel()
    turn = Turn(model=model)
    running = asyncio.create_task(turn.run())
    await model.entered.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert model.left
    assert turn.emitted == []
