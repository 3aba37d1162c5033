"""The shop's replies as typed values: strict and bounded. Pure: no HTTP, no Django."""

from __future__ import annotations

from typing import Final, TypeVar

import msgspec

from apps.engine.types import AttributeValue, Order, Profile

_T = TypeVar("_T")

REPLY_LIMIT_BYTES: Final = 256 * 1024
ORDERS_LIMIT: Final = 200
ATTRIBUTES_LIMIT: Final = 50
TEXT_LIMIT: Final = 500


class ShopError(Exception):
    """The shop gave no usable answer; `reason` is one word for logs and metrics."""

    reason = "failed"


class ShopUnreachable(ShopError):
    """No answer in time, a broken connection, or a 5xx."""

    reason = "unreachable"


class ShopRefused(ShopError):
    """The key of the profile source is wrong (401 or 403)."""

    reason = "refused"


class ShopGarbled(ShopError):
    """An answer that is not what the contract says, or is larger than it allows."""

    reason = "garbled"


class _Customer(msgspec.Struct, frozen=True):
    id: str
    name: str
    email: str = ""
    tier: str = ""
    attributes: dict[str, AttributeValue] = {}


class _Order(msgspec.Struct, frozen=True):
    number: str
    status: str
    placed_on: str
    items: tuple[str, ...] = ()
    total: str = ""
    carrier: str | None = None
    tracking: str | None = None
    eta: str | None = None


class _Orders(msgspec.Struct, frozen=True):
    orders: tuple[_Order, ...]


_customer = msgspec.json.Decoder(_Customer)
_orders = msgspec.json.Decoder(_Orders)


def parse_profile(body: bytes, external_id: str) -> Profile:
    """The profile of exactly this customer. Raises `ShopGarbled`."""
    read = _decoded(_customer, body)
    if read.id != external_id:
        raise ShopGarbled("the shop answered with another customer")
    attributes = dict(list(read.attributes.items())[:ATTRIBUTES_LIMIT])
    return Profile(
        name=_text(read.name),
        email=_text(read.email),
        tier=_text(read.tier),
        attributes={
            _text(key): _text(value) if isinstance(value, str) else value for key, value in attributes.items()
        },
    )


def parse_orders(body: bytes) -> tuple[Order, ...]:
    """At most 200 orders, in the shop's order. Raises `ShopGarbled`."""
    orders = _decoded(_orders, body).orders
    if len(orders) > ORDERS_LIMIT:
        raise ShopGarbled(f"more than {ORDERS_LIMIT} orders")
    return tuple(
        Order(
            number=_text(order.number),
            status=_text(order.status),
            placed_on=_text(order.placed_on),
            items=tuple(_text(item) for item in order.items[:ATTRIBUTES_LIMIT]),
            total=_text(order.total),
            carrier=_text(order.carrier or ""),
            tracking=_text(order.tracking or ""),
            eta=_text(order.eta or ""),
        )
        for order in orders
    )


def _decoded(decoder: msgspec.json.Decoder[_T], body: bytes) -> _T:
    if len(body) > REPLY_LIMIT_BYTES:
        raise ShopGarbled(f"more than {REPLY_LIMIT_BYTES} bytes")
    try:
        return decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ShopGarbled(str(error)) from error


def _text(value: str) -> str:
    # Control characters could forge lines of a prompt or break PostgreSQL; the rest is text, tags and all.
    return "".join(character for character in value[:TEXT_LIMIT] if character >= " " and character != "\x7f")
