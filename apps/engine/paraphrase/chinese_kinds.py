"""Tells what kind of answer a Chinese question wants, and what its kind says already. Pure."""

from __future__ import annotations

import re

from apps.engine.paraphrase.meaning import Kind, beyond, known, listed

Found = frozenset[str]

_LONG = (
    r"(?:多久|多长时间|多长|几个?(?:天|年|月|小时|钟头|工作日|周|星期|季节|礼拜)"
    r"|多少个?(?:天|年|月|小时|工作日|周|星期|日子))"
)
_WITHIN = (
    rf"{_LONG}(?:之内|以内|内)|(?:最晚|最迟)(?:{_LONG}|什么时候)?|到?(?:什么时候|何时)(?:之前|以前|为止)"
    rf"|(?:期限|时间限制|截止时间)(?:是|有)?(?:{_LONG}|多少|什么)?"
)
# The first that is found decides.
_KINDS: tuple[tuple[re.Pattern[str], Kind], ...] = tuple(
    (re.compile(pattern), kind)
    for pattern, kind in (
        (rf"(?:每?隔)?{_LONG}(?=.{{0,8}}一次)|每?隔{_LONG}", Kind.OFTEN),
        (_WITHIN, Kind.SPAN),
        (_LONG, Kind.SPAN),
        (r"怎么(?:收费|收钱|收$|算$|算钱)|如何收费", Kind.COST),
        (r"怎么办(?!理)|咋办|怎么处理|如何处理|怎么应对|会怎么?样|该怎么做|如何是好", Kind.REMEDY),
        (r"为什么|为何|为啥|怎么会|什么原因|(?:原因|理由)是什么|怎么回事", Kind.WHY),
        (
            r"(?:应该|该|要|需要|可以|能)?(?:怎么样|怎么|怎样|如何|咋样?)(?:才能|可以|能|才)?"
            r"|(?:流程|步骤|方法)(?:是什么|是怎样的|是怎么样的|有哪些)?|是怎样的",
            Kind.HOW,
        ),
        (r"(?<=满)多少钱?|多少钱?(?=包邮|免运费|免邮|可以包邮|才)|(?<=消费)多少", Kind.COUNT),
        (
            r"多少钱|什么价格?|(?<=费用)(?:是|要|需要|为)?多少|(?<=价格)(?:是|为)?多少"
            r"|(?<=费)(?:是|要|得)?多少钱?|多少(?=运费|邮费|费用)",
            Kind.COST,
        ),
        (r"什么时候|啥时候|何时|几点到几点|几点|几时|哪一?天", Kind.WHEN),
        (r"在?(?:哪里|哪儿|什么地方|何处|哪(?![些个种款类几双张件家]))", Kind.WHERE),
        (r"由?谁", Kind.WHO),
        (r"几(?=[个张件次只双盏单份])|多少", Kind.COUNT),
        (r"哪(?:些|个|种|款|类|几个|几种|双|家)|什么(?:样的?|种)?|啥", Kind.WHAT),
    )
)
_ASKS = re.compile(r"吗|是否|能否|可否|吧$|有没有")
_MUST = re.compile(r"需要|必须|一定要|务必|非要|(?<![只主重想不])要(?!求|是)|得(?=[先自付交])")
_HAPPENED = re.compile(r"[了没]|不")

# 多久: what may be waited for takes its time, what is allowed or promised holds for it.
_WAITING = re.compile(
    r"到账|送到|能到|到货|收到|才能|才会|才(?=[能会软满好到])|需要|要(?!求)|花|完成|有结果|能退|退回|退钱|退款"
    r"|充满|能送|送达"
)
_WINDOW = re.compile(rf"{_WITHIN}|最晚|最迟|期限|截止|之前|以前|为止|期(?:是|有)?{_LONG}")
_LASTING = listed("=warranty =valid =keep =expire =gold")
_FEES = listed("=interest =member-fee =customs =shipping-fee =cost =money")
_PAYS = listed("=pay 交 收 付")

_SAID = {
    kind: listed(words)
    for kind, words in {
        Kind.COST: "=cost 收费 费 =money",
        Kind.SPAN: "期",
        Kind.TAKES: "=received 到账 时间 好",
        Kind.HOW: "=method",
        Kind.WHAT: "=choose 都 好",
        Kind.YES: "=sell",
        Kind.WHERE: "从 去",
        Kind.COUNT: "最多 最大",
        Kind.MUST: "交 =pay 收",
    }.items()
}


def kind_of(text: str, asks: bool) -> tuple[Kind, str]:
    """The kind as its first words tell it, and the text without them. `asks`: something else made it a question."""
    for pattern, kind in _KINDS:
        if found := pattern.search(text):
            return kind, f"{text[: found.start()]} {text[found.end() :]}"
    if asks or _ASKS.search(text):
        return (Kind.MUST, _MUST.sub(" ", text)) if _MUST.search(text) else (Kind.YES, text)
    return (Kind.REMEDY if _HAPPENED.search(text) else Kind.NONE), text


def settled(kind: Kind, text: str, found: Found) -> tuple[Kind, Found]:
    """The kind once the words are known, and the words that it does not say already."""
    if kind is Kind.YES and "=return" in found and found & _FEES and not found & (_PAYS | {"=free"}):
        found = found - {"=return"} | {"=refund"}  # 运费退吗: nobody pays, the fee comes back
    kind = _refined(kind, text, found)
    kept = _same_said_otherwise(kind, found)
    return kind, beyond(kept, _SAID.get(kind, frozenset()))


def _refined(kind: Kind, text: str, found: Found) -> Kind:
    if kind is Kind.WHEN and "=expire" in found:
        return Kind.SPAN
    if kind is Kind.WHEN and ("到账" in text or found & {"=received", "=refund"}):
        return Kind.TAKES
    if kind is Kind.SPAN and not _holds(text, found):
        return Kind.TAKES
    # Whether a fee is charged and whether it must be paid is one question.
    return Kind.YES if kind is Kind.MUST and found & _FEES else kind


def _holds(text: str, found: Found) -> bool:
    """Whether 多久 asks how long something holds, and not how long it takes."""
    return bool(_WINDOW.search(text) or found & _LASTING or not _WAITING.search(text))


def _same_said_otherwise(kind: Kind, found: Found) -> Found:
    if kind is Kind.SPAN:
        found = frozenset("=valid" if word in ("=expire", "=use") else word for word in found)
    if kind is Kind.COST and "=shipping-fee" in found:
        found = found - {"=shipping-fee"} | {"=delivery"}
    if kind is Kind.YES and found & _FEES:
        found -= _PAYS
    if kind is Kind.YES and "=pay" in found and any(not known(word) for word in found):
        found -= {"=use"}  # 用 PayPal 付款 is PayPal 付款
    return found
