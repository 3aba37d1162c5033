"""What a question wants, told by its words, in English and Chinese. Pure; deliberately small and readable."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from enum import StrEnum

from apps.engine.types import Order


class Intent(StrEnum):
    """What the builtin assistant can recognise."""

    HANDOFF = "handoff"
    MACHINE = "machine"  # "are you a robot?"
    ORDER = "order"
    ORDER_CHANGE = "order_change"
    GREETING = "greeting"
    THANKS = "thanks"
    YES = "yes"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Understood:
    """`number` is the order number as the customer wrote it, "" without one; `latest` asks for the newest order.

    `asks_policy` marks an order question that an article may answer better than the order's state.
    """

    intent: Intent
    number: str = ""
    latest: bool = False
    asks_policy: bool = False


_PERSON = (
    r"(?:human|(?:real |live |actual )?person|real human|agent|representative|rep|operator|someone(?: real)?|somebody"
    r"|colleague|staff|support team|customer service|your team)"
)
_HANDOFF = re.compile(
    rf"\b(?:talk|speak|chat|connect|transfer|put|get|need|want|escalate|bring|call|reach|prefer|give)\b[^.?!]{{0,40}}\b{_PERSON}\b"
    rf"|(?:'d|’d|\bwould) like (?:a |an )?{_PERSON}\b"
    rf"|^\W*(?:a |an )?{_PERSON}\W*(?:please\W*)?$"
    r"|转.{0,3}人工|人工(?:客服|服务)|(?:找|要|接|和|跟|联系).{0,4}(?:人工|真人|客服)|^\W*(?:人工|真人|客服)\W*$",
    re.IGNORECASE,
)
_NO_HANDOFF = re.compile(
    r"\b(?:don'?t|do not|no need|without|not)\b[^.?!]{0,30}\b(?:talk|speak|chat|human|person|agent|someone)\b"
    r"|(?:不|别|没)(?:用|要|需要|想|必)?.{0,2}(?:转|找|接|联系)?.{0,2}(?:人工|真人|客服)",
    re.IGNORECASE,
)
_MACHINE = re.compile(
    r"\bare (?:you|u)\b[^.?!]{0,20}\b(?:bot|robot|human|real|ai|machine|person|automated)\b"
    r"|\bam i (?:talking|speaking|chatting)\b[^.?!]{0,20}\b(?:bot|robot|human|machine|person)\b"
    r"|你是(?:不是)?.{0,3}(?:机器人|真人|人工|AI)",
    re.IGNORECASE,
)
_ORDER = re.compile(
    r"\border(?:s|ed)?\b|\b(?:parcel|package|shipment|delivery|tracking|track)\b"
    r"|\bwhere(?:'s| is| are)\s+my\b|\bwhen\b.{0,20}\b(?:arrive|come|get here|delivered)\b"
    r"|订单|包裹|快递|物流|运单|到哪|发货了|什么时候到|何时到|送到",
    re.IGNORECASE,
)
# Words that make an order's owner ask about that order, not about ordering in general.
_MINE = re.compile(
    r"\bmy\b|\bmine\b|\bi (?:ordered|bought|purchased)\b|\bwhere\b|\btrack\b|\bstatus\b"
    r"|我|到哪|状态|查|物流信息|发货了|什么时候到|何时到",
    re.IGNORECASE,
)
_CHANGE = re.compile(
    r"\b(?:cancel|change|update|modify|edit|redirect|stop)\b|取消|修改|更改|改(?:一下)?(?:地址|电话|收货)|撤销",
    re.IGNORECASE,
)
_POLICY = re.compile(
    r"\b(?:return|refund|exchange|warranty|guarantee|policy|how long|how much|cost|fee|repair)(?:s|ed|ing|able)?\b"
    r"|退|换货|保修|政策|运费|费用|多久|维修",
    re.IGNORECASE,
)
_LATEST = re.compile(r"\b(?:last|latest|most recent|newest)\b|最近|最新|上一(?:个|单)", re.IGNORECASE)
_NUMBER = re.compile(r"(?<![\w.,-])(?:[A-Za-z]{1,3}-?)?\d{3,14}(?![\w-]|[.,]\d)", re.ASCII)
_NAMED_NUMBER = re.compile(
    r"(?:\border\s*(?:no\.?|number|nr\.?|id|#)?\s*(?:is\s+)?[#:№]?\s*|#\s*|订单号?(?:是|为)?[：:#\s]*|单号(?:是|为)?[：:#\s]*)"
    r"((?:[A-Za-z]{1,3}-?)?\d{1,14})(?![A-Za-z-]|\d)",
    re.IGNORECASE | re.ASCII,
)
_GREETING = re.compile(
    r"^\W*(?:hi|hello|hey|hiya|good (?:morning|afternoon|evening|day)|greetings|yo|howdy"
    r"|你好|您好|哈喽|嗨|在吗|在么|有人吗|早上好|上午好|下午好|晚上好)"
    r"(?:\s+(?:there|all|everyone|team|again))?(?:[啊呀吗呢哦])?\W*$",
    re.IGNORECASE,
)
_THANKS = re.compile(
    r"^\W*(?:(?:ok(?:ay)?|great|perfect|good|好的?|行)[\s,，。!！]*)?"
    r"(?:thanks?(?: you)?(?: (?:so|very) much| a lot)?|thx|ty|cheers|bye|goodbye|see you|that'?s all"
    r"|谢谢(?:你|您|啦|了)?|多谢|感谢|再见|拜拜|没事了|没有了)[^?？]{0,12}$",
    re.IGNORECASE,
)
_YES = re.compile(
    r"^\W*(?:yes|yeah|yep|yup|sure|ok|okay|please|yes please|please do|go ahead|do it"
    r"|好|好的|好啊|可以|是|是的|要|需要|嗯|行|麻烦了|转吧)\W*(?:please|thanks?|谢谢)?\W*$",
    re.IGNORECASE,
)


def understand(question: str, orders: tuple[Order, ...]) -> Understood:
    """The strongest reading of a question. `orders` help to tell an order's number from any other number."""
    text = unicodedata.normalize("NFKC", question).strip()
    if _MACHINE.search(text):
        return Understood(Intent.MACHINE)
    if _HANDOFF.search(text) and not _NO_HANDOFF.search(text):
        return Understood(Intent.HANDOFF)
    order = _order(text, orders)
    if order is not None:
        return order
    for intent, pattern in ((Intent.GREETING, _GREETING), (Intent.THANKS, _THANKS), (Intent.YES, _YES)):
        if pattern.match(text):
            return Understood(intent)
    return Understood(Intent.OTHER)


def _order(text: str, orders: tuple[Order, ...]) -> Understood | None:
    number = order_number(text, orders)
    about_orders = bool(_ORDER.search(text))
    if not number and not (about_orders and _MINE.search(text)):
        return None
    intent = Intent.ORDER_CHANGE if _CHANGE.search(text) else Intent.ORDER
    asks_policy = bool(_POLICY.search(text)) or (intent is Intent.ORDER_CHANGE and not number)
    return Understood(intent, number, latest=bool(_LATEST.search(text)), asks_policy=asks_policy)


def order_number(text: str, orders: tuple[Order, ...]) -> str:
    """The number of the order that is meant: one that is named as such, a known one, or one beside order words."""
    known = {order.number.casefold(): order.number for order in orders}
    candidates = [match.group() for match in _NUMBER.finditer(text)]
    for candidate in candidates:
        if candidate.casefold() in known:
            return known[candidate.casefold()]
    if named := _NAMED_NUMBER.search(text):
        return known.get(named.group(1).casefold(), named.group(1))
    if candidates and _ORDER.search(text) and _MINE.search(text):
        return candidates[0]
    return ""
