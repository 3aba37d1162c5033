"""The sentences of the builtin assistant, written in each language. Words only; nothing here decides."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from apps.engine.languages import Language
from apps.engine.types import Order


@dataclass(frozen=True, slots=True)
class Words:
    """One language's sentences. Braces are filled by name."""

    language: Language
    greeting: str
    greeting_named: str
    thanks: str
    machine: str
    handoff: str
    unknown: str
    offer: str
    identify: str
    orders_unavailable: str
    no_source: str
    no_orders: str
    not_found: str
    list_intro: str
    list_item: str
    cannot_change: str
    statuses: dict[str, str]
    other_status: str
    brief: dict[str, str]
    by_carrier: str
    expected: str
    tracking: str
    contents: str
    join: str  # between sentences
    list_join: str  # between things


ENGLISH = Words(
    language=Language.ENGLISH,
    greeting="Hello! What can I help you with?",
    greeting_named="Hello {name}! What can I help you with?",
    thanks="You're welcome. If anything else comes up, just write.",
    machine="I'm an automated assistant. I can look up orders and our help articles, and bring in a colleague "
    "whenever you like.",
    handoff="Of course. I'm bringing in a colleague.",
    unknown="I don't have an answer to that, and I'd rather not guess.",
    offer="Would you like me to bring in a colleague?",
    identify="To look up an order I need to know that it's yours. Please log in, then ask me again. "
    "If you can't log in, I can bring in a colleague.",
    orders_unavailable="I can't reach your orders right now. Please try again in a moment.",
    no_source="I can't see orders from here.",
    no_orders="I don't see any orders in your account yet.",
    not_found="I can't find order {number} in your account. Could you check the number?",
    list_intro="These are your orders:",
    list_item="- **{number}** ({placed}): {brief}",
    cannot_change="I can't change orders myself, but a colleague can.",
    statuses={
        "processing": "Order **{number}** is being prepared.",
        "shipped": "Order **{number}** has been shipped{carrier}.",
        "in_transit": "Order **{number}** is on its way{carrier}.",
        "delivered": "Order **{number}** has been delivered{carrier}.",
        "cancelled": "Order **{number}** was cancelled.",
        "returned": "Order **{number}** was returned to us.",
    },
    other_status="Order **{number}** has the status “{status}”.",
    brief={
        "processing": "being prepared", "shipped": "shipped", "in_transit": "on its way",
        "delivered": "delivered", "cancelled": "cancelled", "returned": "returned",
    },
    by_carrier=" with {carrier}",
    expected="It should arrive on {day}.",
    tracking="Tracking number: {tracking}.",
    contents="In it: {items}.",
    join=" ",
    list_join=", ",
)  # fmt: skip

CHINESE = Words(
    language=Language.CHINESE,
    greeting="您好！有什么可以帮您？",
    greeting_named="{name}，您好！有什么可以帮您？",
    thanks="不客气。还有问题随时告诉我。",
    machine="我是自动助手，可以帮您查订单、查帮助文章，也可以随时为您转接人工客服。",
    handoff="好的，正在为您转接人工客服。",
    unknown="这个问题我没有可靠的答案，不想随便猜。",
    offer="需要我为您转接人工客服吗？",
    identify="查询订单前，我需要确认订单属于您。请先登录，然后再问我一次。如果无法登录，我可以为您转接人工客服。",
    orders_unavailable="暂时查不到您的订单，请稍后再试。",
    no_source="我这里看不到订单信息。",
    no_orders="您的账户里还没有订单。",
    not_found="在您的账户里没有找到订单 {number}，请核对一下订单号。",
    list_intro="您的订单如下：",
    list_item="- **{number}**（{placed}）：{brief}",
    cannot_change="我不能直接修改订单，人工客服可以帮您处理。",
    statuses={
        "processing": "订单 **{number}** 正在备货。",
        "shipped": "订单 **{number}** 已发货{carrier}。",
        "in_transit": "订单 **{number}** 正在运送途中{carrier}。",
        "delivered": "订单 **{number}** 已送达{carrier}。",
        "cancelled": "订单 **{number}** 已取消。",
        "returned": "订单 **{number}** 已退货。",
    },
    other_status="订单 **{number}** 的状态是“{status}”。",
    brief={
        "processing": "备货中", "shipped": "已发货", "in_transit": "运送途中",
        "delivered": "已送达", "cancelled": "已取消", "returned": "已退货",
    },
    by_carrier="（{carrier}）",
    expected="预计 {day}送达。",
    tracking="运单号：{tracking}。",
    contents="商品：{items}。",
    join="",
    list_join="、",
)  # fmt: skip

WORDS = {words.language: words for words in (ENGLISH, CHINESE)}
OFFERS = (ENGLISH.offer, CHINESE.offer, ENGLISH.identify, CHINESE.identify)
_ON_THE_WAY = ("processing", "shipped", "in_transit")


def order_sentences(words: Words, order: Order) -> list[str]:
    """The order's state, then what helps with it."""
    carrier = words.by_carrier.format(carrier=order.carrier) if order.carrier else ""
    template = words.statuses.get(order.status, words.other_status)
    said = [template.format(number=order.number, carrier=carrier, status=order.status)]
    if order.eta and order.status in _ON_THE_WAY:
        said.append(words.expected.format(day=day_in_words(words, order.eta, with_year=False)))
    if order.tracking and order.status in ("shipped", "in_transit"):
        said.append(words.tracking.format(tracking=order.tracking))
    if order.items:
        said.append(words.contents.format(items=words.list_join.join(order.items)))
    return said


def order_line(words: Words, order: Order) -> str:
    """One line of a list."""
    brief = words.brief.get(order.status, order.status)
    placed = day_in_words(words, order.placed_on, with_year=True)
    return words.list_item.format(number=order.number, placed=placed, brief=brief)


def day_in_words(words: Words, iso: str, *, with_year: bool) -> str:
    """3 December (2026); 2026年12月3日. What is no ISO day is said as it came."""
    try:
        day = dt.date.fromisoformat(iso[:10])
    except ValueError:
        return iso
    if words.language is Language.CHINESE:
        return f"{f'{day.year}年' if with_year else ''}{day.month}月{day.day}日"
    return f"{day.day} {_MONTHS[day.month - 1]}{f' {day.year}' if with_year else ''}"


# Not strftime: its names follow the server's locale.
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
