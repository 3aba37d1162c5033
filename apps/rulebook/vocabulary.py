"""What a rule's condition may look at and call, and the values it sees. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from django.utils.translation import gettext_noop as _

from apps.engine.rules import RuleInput
from apps.engine.types import Facts, FactsState, Order, Profile

Value: TypeAlias = str | int | float | bool | list["Value"] | dict[str, "Value"] | None

# More than a customer types; keeps a pasted book from holding the loop.
MAX_TEXT_CHARACTERS = 4_000
MAX_ORDERS = 50

# Marked for the catalog; the page that shows them translates.
VARIABLES = {
    "text": _("the customer's message, as written"),
    "text_lower": _("the message in lower case"),
    "locale": _('the language of the page: "en", "zh" …'),
    "turn_number": _("1 for the first question of the conversation"),
    "verified": _("true if the shop vouches for the customer"),
    "tier": _('the customer\'s tier, such as "gold"; "" if unknown'),
    "attributes": _("what else the shop tells: attributes.vip; null if it tells nothing"),
    "orders": _(
        "the customer's orders, newest first: number, status, placed_on, items, total, carrier, tracking, eta"
    ),
    "order_count": _("how many orders there are"),
    "order_statuses": _('the statuses of all orders: "delivered" in order_statuses'),
    "order_numbers": _('the numbers of all orders: "1042" in order_numbers'),
    "within_hours": _("true in business hours"),
}
FUNCTIONS = frozenset({"contains", "startsWith", "endsWith", "matches", "size", "int", "double", "string"})

_INT64 = range(-(2**63), 2**63)


def variables(given: RuleInput, attribute_names: Iterable[str]) -> dict[str, Value]:
    """Every variable with its value; an attribute that is named in a rule but not known is null."""
    text = _text(given.text[:MAX_TEXT_CHARACTERS])
    profile = given.facts.profile
    orders = given.facts.orders[:MAX_ORDERS]
    attributes: dict[str, Value] = dict.fromkeys(attribute_names)
    if profile:
        attributes |= {_text(name): _scalar(value) for name, value in profile.attributes.items()}
    return {
        "text": text,
        "text_lower": text.lower(),
        "locale": given.locale.lower().replace("_", "-").partition("-")[0],
        "turn_number": given.turn_number,
        "verified": given.facts.verified,
        "tier": _text(profile.tier) if profile else "",
        "attributes": attributes,
        "orders": [_order(order) for order in orders],
        "order_count": len(orders),
        "order_statuses": [_text(order.status) for order in orders],
        "order_numbers": [_text(order.number) for order in orders],
        "within_hours": given.within_hours,
    }


def samples(literals: Iterable[str]) -> list[RuleInput]:
    """A visitor, and a customer for each literal who is and says just that, to try an expression on."""
    said = list(literals)[:8]
    nothing = Facts(verified=False, state=FactsState.NONE)
    order = Order("1042", "in_transit", "2026-01-05", ("Lamp",), "$40.00", "UPS", "1Z", "2026-01-09")
    customers = [
        Facts(True, FactsState.WARM, Profile("Mia", "mia@shop.example", tier=said_tier), (order,))
        for said_tier in ["gold", *said]
    ]
    text = " ".join(said) or "hello"
    return [
        RuleInput(text="", locale="en", turn_number=1, facts=nothing, within_hours=False),
        *(
            RuleInput(
                text=text,
                locale=facts.profile.tier if facts.profile else "",
                turn_number=2,
                facts=facts,
                within_hours=True,
            )
            for facts in customers
        ),
    ]


def _order(order: Order) -> dict[str, Value]:
    return {
        "number": _text(order.number),
        "status": _text(order.status),
        "placed_on": _text(order.placed_on),
        "items": [_text(item) for item in order.items],
        "total": _text(order.total),
        "carrier": _text(order.carrier),
        "tracking": _text(order.tracking),
        "eta": _text(order.eta),
    }


def _scalar(value: object) -> Value:
    """CEL's integers have 64 bits; what is no scalar is shown as text."""
    if isinstance(value, bool | float) or (isinstance(value, int) and value in _INT64):
        return value
    return _text(str(value))


def _text(value: str) -> str:
    """CEL's strings are UTF-8: a lone surrogate becomes a question mark."""
    return value.encode("utf-8", "replace").decode("utf-8")
