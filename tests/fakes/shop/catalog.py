"""Who buys at Lantern, and what became of their orders."""

from __future__ import annotations

from datetime import date, timedelta

import msgspec


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """An order as the API shows it. Days are ISO; `total` is formatted with its currency."""

    number: str
    status: str  # processing | shipped | in_transit | delivered | cancelled | returned
    placed_on: str
    items: tuple[str, ...]
    total: str
    carrier: str = ""
    tracking: str = ""
    eta: str = ""


class Customer(msgspec.Struct, frozen=True, kw_only=True):
    """A customer with orders, newest first."""

    id: str
    name: str
    email: str
    tier: str
    attributes: dict[str, str | int | float | bool] = {}
    orders: tuple[Order, ...] = ()


def lantern(today: date) -> dict[str, Customer]:
    """The demo's customers, with orders that are recent whenever the demo runs."""
    return {customer.id: customer for customer in (_mia(today), _leo(today))}


def _mia(today: date) -> Customer:
    return Customer(
        id="mia",
        name="Mia Chen",
        email="mia.chen@example.com",
        tier="gold",
        attributes={"language": "zh-Hans", "city": "Vancouver", "member_since": 2021, "newsletter": True},
        orders=(
            Order(
                number="1042",
                status="in_transit",
                placed_on=_day(today, -4),
                items=("Ember camping lantern", "Wool trekking socks, 2 pairs"),
                total="CA$118.00",
                carrier="Canada Post",
                tracking="7023210884410037",
                eta=_day(today, 2),
            ),
            Order(
                number="1017",
                status="delivered",
                placed_on=_day(today, -31),
                items=("Ridgeline hiking boots, size 38",),
                total="CA$189.00",
                carrier="UPS",
                tracking="1Z84W5120397164410",
                eta=_day(today, -26),
            ),
            Order(
                number="0998",
                status="returned",
                placed_on=_day(today, -74),
                items=("Skylark tent for two", "Tent footprint"),
                total="CA$342.50",
                carrier="Canada Post",
                tracking="7023210879925518",
                eta=_day(today, -68),
            ),
        ),
    )


def _leo(today: date) -> Customer:
    return Customer(
        id="leo",
        name="Leo Martin",
        email="leo.martin@example.com",
        tier="standard",
        attributes={"language": "en", "city": "Lyon", "member_since": 2025, "newsletter": False},
        orders=(
            Order(
                number="1050",
                status="processing",
                placed_on=_day(today, -1),
                items=("Harbor desk lamp, brass", "Warm LED bulb, pack of 3"),
                total="€94.90",
                eta=_day(today, 5),
            ),
            Order(
                number="1031",
                status="delivered",
                placed_on=_day(today, -19),
                items=("Trail headlamp",),
                total="€49.00",
                carrier="DHL",
                tracking="JJD000390016512480",
                eta=_day(today, -15),
            ),
        ),
    )


def _day(today: date, days: int) -> str:
    return (today + timedelta(days=days)).isoformat()
