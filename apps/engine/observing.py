"""What the product can tell of a message without a model: its articles, its rules, whether it is about an order.

The same reading is learned from finished conversations and predicted in running ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from apps.engine.dialogue import Act, History, Move
from apps.engine.needs import needs_facts, order_number
from apps.engine.prediction import MAX_REQUESTS, Predictor

ORDER: Final[Act] = ("ask", "order")
_OTHER: Final[Act] = ("say", "")


class Need(StrEnum):
    """What must be at hand before a question can be answered."""

    FACTS = "facts"  # the customer's profile and orders


def asked(text: str, articles: Iterable[str] = (), rules: Iterable[str] = ()) -> Move:
    """The customer's message, with the articles and rules of its answer once there is one."""
    about: list[Act] = [ORDER] if needs_facts(text) else []
    about += [("ask", article) for article in articles]
    details = {f"rule {rule}" for rule in rules} | ({"number"} if order_number(text) else set())
    return Move(by_customer=True, acts=tuple(about) or (_OTHER,), details=frozenset(details))


def answered(by: str, articles: Iterable[str] = ()) -> Move:
    """A message of the assistant or of a person; `by` says which."""
    return Move(by_customer=False, acts=tuple((by, article) for article in articles) or ((by, ""),))


def needs_of(request: Iterable[Act]) -> frozenset[Need]:
    """What a request needs."""
    return frozenset({Need.FACTS} if ORDER in request else ())


def expected_needs(predictor: Predictor, moves: Iterable[Move]) -> dict[Need, float]:
    """How likely the next question needs what. About 0.5 ms; nothing before the customer has asked anything."""
    history = History()
    for move in moves:
        history.observe(move)
    chances: dict[Need, float] = {}
    if not history.customer_moves:
        return chances
    for prediction in predictor.predict(history, MAX_REQUESTS):
        for need in needs_of(prediction.request):
            chances[need] = chances.get(need, 0.0) + prediction.probability
    return chances
