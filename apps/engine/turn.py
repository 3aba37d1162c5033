"""One turn: rules decide, then a cached answer, or the context and the model. Pure; the shell brings the ports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from apps.engine.cache import Question
from apps.engine.context import Context
from apps.engine.deadlines import FACTS_COPY_S, FACTS_FETCH_S, RETRIEVAL_S, within
from apps.engine.events import (
    Acting,
    Delta,
    Done,
    Emit,
    Failed,
    Finished,
    HandoffCall,
    HandoffRequested,
    ModelEvent,
    TextDelta,
)
from apps.engine.needs import needs_facts, order_number
from apps.engine.ports import AnswerCache, FactSource, Model, ModelUnavailable, Retrieval, Trace
from apps.engine.prompt import facts_message, policy_message
from apps.engine.reuse import Asker, Reuse
from apps.engine.rules import Decision, RuleInput, RuleSet
from apps.engine.sources import behind
from apps.engine.types import Assistant, Facts, ModelRequest, Passage, Usage

MAX_SOURCES = 2


@dataclass(frozen=True, slots=True)
class TurnInput:
    """What is known when the turn starts. The question is the newest message of the context."""

    conversation: str
    question: str
    locale: str
    verified: bool
    context: Context
    assistant: Assistant
    teams: tuple[str, ...]
    within_hours: bool


@dataclass(frozen=True, slots=True)
class Ports:
    """What one turn may ask of the outside."""

    model: Model
    facts: FactSource
    retrieval: Retrieval
    rules: RuleSet
    answers: AnswerCache | None = None  # None where the site keeps none


async def run(given: TurnInput, ports: Ports, emit: Emit, trace: Trace) -> None:
    """Emits `Acting`, `Delta`, `HandoffRequested`, then exactly one of `Finished` or `Failed`.

    The trace says which rules matched, which could not be asked, and what they tagged. Cancelling it closes the
    model's stream.
    """
    facts = await _facts(given, ports, emit, trace)
    with trace.stage("rules"):
        decision = ports.rules.decide(_rule_input(given, facts))
    _mark(trace, decision)
    if decision.reply:
        await emit(Delta(decision.reply))
    if decision.handoff:
        await emit(HandoffRequested("rule", decision.team))
    if decision.reply or decision.handoff:
        await emit(Finished(sources=()))
        return
    reuse = Reuse(ports.answers, _asker(given), decision, given.question, given.locale)
    if await reuse.same_words(emit, trace):
        return
    passages = await _passages(ports, trace)
    if await reuse.same_meaning(passages, emit, trace):
        return
    with trace.stage("context"):
        request = _request(given, facts, passages, decision)
    await _answer(request, ports.model, emit, reuse.anyones(facts))


def expected_request(
    given: TurnInput, facts: Facts, rules: RuleSet, passages: tuple[Passage, ...]
) -> ModelRequest | None:
    """What this turn would ask its model; None where a rule would do more than add instructions. Has no effect."""
    decision = rules.decide(_rule_input(given, facts))
    if decision.reply or decision.handoff or decision.team or decision.tags or decision.failed:
        return None
    return _request(given, facts, passages, decision)


async def _facts(given: TurnInput, ports: Ports, emit: Emit, trace: Trace) -> Facts:
    needed = given.verified and needs_facts(given.question)
    if needed:
        await emit(Acting("order", order_number(given.question)))
    with trace.stage("profile"):
        facts = await ports.facts.facts(needed, FACTS_FETCH_S if needed else FACTS_COPY_S)
    trace.marks["profile"] = facts.state.value
    return facts


async def _passages(ports: Ports, trace: Trace) -> tuple[Passage, ...]:
    with trace.stage("retrieval"):
        try:
            async with within(RETRIEVAL_S):
                return await ports.retrieval.passages()
        except TimeoutError:
            trace.marks["retrieval"] = "late"
            return ()


def _rule_input(given: TurnInput, facts: Facts) -> RuleInput:
    return RuleInput(
        text=given.question,
        locale=given.locale,
        turn_number=given.context.customer_turns(),
        facts=facts,
        within_hours=given.within_hours,
    )


def _mark(trace: Trace, decision: Decision) -> None:
    marks = {"rules": decision.matched, "rules_failed": decision.failed, "tags": decision.tags}
    trace.marks.update({name: ", ".join(values) for name, values in marks.items() if values})


def _asker(given: TurnInput) -> Asker:
    context = given.context
    return Asker(verified=given.verified, first=context.customer_turns() <= 1 and len(context.said) <= 1)


async def _answer(request: ModelRequest, model: Model, emit: Emit, anyones: Question | None) -> None:
    said = _Said()

    async def on_event(event: ModelEvent) -> None:
        match event:
            case TextDelta():
                said.text.append(event.text)
                await emit(Delta(event.text))
            case HandoffCall():
                said.whole, said.handed_over = False, True
                await emit(HandoffRequested("model", event.team))
            case Done():
                said.usage, said.endpoint, said.told = event.usage, event.endpoint, event.told
                said.whole = said.whole and event.finish == "stop"

    try:
        await model.stream(request, on_event)
    except ModelUnavailable as unavailable:
        await emit(Failed(unavailable.reason))
        return
    # That a person is coming stands in no article, whatever was found for the question.
    sources = () if said.handed_over else _named(said.told_of(request))
    reusable = anyones if said.whole and sources else None
    await emit(Finished(sources, said.usage, said.endpoint, reusable))


@dataclass(slots=True)
class _Said:
    text: list[str] = field(default_factory=list)
    whole: bool = True
    handed_over: bool = False
    usage: Usage | None = None
    endpoint: str = ""
    told: tuple[Passage, ...] | None = None

    def told_of(self, request: ModelRequest) -> tuple[Passage, ...]:
        """The passages behind the text: as the model says, else as the text does."""
        return behind("".join(self.text), request) if self.told is None else self.told


def _request(
    given: TurnInput, facts: Facts, passages: tuple[Passage, ...], decision: Decision
) -> ModelRequest:
    return ModelRequest(
        messages=given.context.prompt(
            policy_message(given.assistant), facts_message(facts), passages, decision.instructions
        ),
        question=given.question,
        locale=given.locale,
        facts=facts,
        passages=passages,
        teams=given.teams,
        cache_key=given.conversation,
        endpoint=given.context.endpoint,
    )


def _named(passages: Sequence[Passage]) -> tuple[tuple[str, str], ...]:
    return tuple(dict.fromkeys((p.title, p.url) for p in passages))[:MAX_SOURCES]
