"""What a question needs before it can be answered."""

from __future__ import annotations

import re

_ORDER_WORDS = re.compile(
    r"\b(orders?|deliver\w*|ship\w*|parcel|package|track\w*|refund\w*|return\w*|cancel\w*|arriv\w*)\b|#?\b\d{3,}\b"
    r"|订单|快递|物流|发货|包裹|退款|退货|到哪|送到|取消",
    re.IGNORECASE,
)
_ORDER_NUMBER = re.compile(r"(?<!\d)#?(\d{3,12})(?!\d)")


def needs_facts(question: str) -> bool:
    """Whether the question is likely to be about the customer's own orders."""
    return _ORDER_WORDS.search(question) is not None


def order_number(question: str) -> str:
    """The order number the question names, or ""."""
    found = _ORDER_NUMBER.search(question)
    return found.group(1) if found else ""
