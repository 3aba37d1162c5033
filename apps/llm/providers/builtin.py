"""The builtin assistant: no language model, no network. It answers from orders and articles, and says what it cannot.

It is the default of a fresh installation, and the named, metered fallback behind every site's endpoints.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from apps.engine.events import Done, HandoffCall, OnModelEvent, TextDelta
from apps.engine.languages import Language, asked_in
from apps.engine.types import Facts, FactsState, ModelRequest, Order, Passage
from apps.llm.providers.builtin_intent import Intent, Understood, understand
from apps.llm.providers.builtin_policy import best_passage, concise
from apps.llm.providers.builtin_words import OFFERS, WORDS, Words, order_line, order_sentences

NAME = "builtin"

# Between two pieces. About the pace of a quick model (33 pieces of a word or two a second): a whole answer dropped in
# one frame reads like a form letter, and the customer's stop button would have nothing to stop.
PACE_S = 0.03
LISTED_ORDERS = 5

_PIECE = re.compile(r"\s*[^\s\u2e80-\u9fff\uff00-\uffef]+\s*|\s*[\u2e80-\u9fff\uff00-\uffef]{1,4}\s*|\s+")


@dataclass(frozen=True, slots=True)
class Answer:
    """What will be said, whether a human is called, and the passages that the text quotes."""

    text: str
    handoff: HandoffCall | None = None
    told: tuple[Passage, ...] = ()


async def stream(request: ModelRequest, on_event: OnModelEvent, pace_s: float = PACE_S) -> None:
    """Says the answer in small pieces, evenly paced, the first at once; then the action, then `Done`. Cannot fail."""
    answer = compose(request)
    for number, piece in enumerate(pieces(answer.text)):
        if number:
            await asyncio.sleep(pace_s)
        await on_event(TextDelta(piece))
    if answer.handoff is not None:
        await on_event(answer.handoff)
    await on_event(Done("tool_calls" if answer.handoff else "stop", endpoint=NAME, told=answer.told))


def pieces(text: str) -> Iterator[str]:
    """A word, or up to four Chinese characters, each. Joined they are the text."""
    return (match.group() for match in _PIECE.finditer(text))


def compose(request: ModelRequest) -> Answer:
    """The whole answer. Pure."""
    words = WORDS[asked_in(request.question, request.locale)]
    understood = understand(request.question, request.facts.orders)
    match understood.intent:
        case Intent.HANDOFF:
            return _handoff(words, request)
        case Intent.YES if _offered(request):
            return _handoff(words, request)
        case Intent.MACHINE:
            return Answer(words.machine)
        case Intent.GREETING:
            return Answer(_greeting(words, request.facts))
        case Intent.THANKS:
            return Answer(words.thanks)
        case Intent.ORDER | Intent.ORDER_CHANGE:
            return _about_order(words, request, understood)
        case Intent.YES | Intent.OTHER:
            return _policy(words, request) or Answer(_unknown(words))


def _handoff(words: Words, request: ModelRequest) -> Answer:
    question = request.question.casefold()
    team = next((team for team in request.teams if team.casefold() in question), "")
    return Answer(words.handoff, HandoffCall("The customer asked for a person.", team))


def _offered(request: ModelRequest) -> bool:
    said = [message.content for message in request.messages if message.role == "assistant"]
    return bool(said) and any(said[-1].rstrip().endswith(offer) for offer in OFFERS)


def _greeting(words: Words, facts: Facts) -> str:
    name = facts.profile.name.split() if facts.profile is not None else []
    if not name:
        return words.greeting
    # A Chinese name is called whole; of others the first part.
    return words.greeting_named.format(name=" ".join(name) if words.language is Language.CHINESE else name[0])


def _unknown(words: Words) -> str:
    return words.join.join([words.unknown, words.offer])


def _about_order(words: Words, request: ModelRequest, understood: Understood) -> Answer:
    """The order's state; a question about the rules ("can I return my order?") gets its article too."""
    state = _order_state(words, request.facts, understood)
    policy = _policy(words, request) if understood.asks_policy else None
    if policy is None:
        return Answer(state)
    known = any(order.number == understood.number for order in request.facts.orders)
    return replace(policy, text=f"{state}\n\n{policy.text}") if known else policy


def _order_state(words: Words, facts: Facts, understood: Understood) -> str:
    if not facts.verified:
        # The same words whether the number exists or not: a stranger learns nothing.
        return words.identify
    if facts.state is FactsState.UNAVAILABLE:
        return words.join.join([words.orders_unavailable, words.offer])
    if facts.state is FactsState.NONE:
        return words.join.join([words.no_source, words.offer])
    chosen = _chosen(facts.orders, understood)
    if not chosen:
        return words.not_found.format(number=understood.number) if understood.number else words.no_orders
    said = _orders_in_words(words, chosen)
    if understood.intent is Intent.ORDER_CHANGE:
        said = f"{said}\n\n{words.join.join([words.cannot_change, words.offer])}"
    return said


def _chosen(orders: tuple[Order, ...], understood: Understood) -> list[Order]:
    newest_first = sorted(orders, key=lambda order: order.placed_on, reverse=True)
    if understood.number:
        return [order for order in newest_first if order.number == understood.number]
    return newest_first[: 1 if understood.latest else LISTED_ORDERS]


def _orders_in_words(words: Words, orders: list[Order]) -> str:
    if len(orders) == 1:
        return words.join.join(order_sentences(words, orders[0]))
    return "\n".join([words.list_intro, "", *(order_line(words, order) for order in orders)])


def _policy(words: Words, request: ModelRequest) -> Answer | None:
    passage = best_passage(request.passages, request.question, words.language)
    if passage is None:
        return None
    return Answer(concise(passage, request.question), told=(passage,))
