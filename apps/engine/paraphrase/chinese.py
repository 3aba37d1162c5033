"""Reads a Chinese question: its kind, its words, its numbers, what it denies. Pure."""

from __future__ import annotations

import re

from apps.engine.paraphrase.chinese_kinds import kind_of, settled
from apps.engine.paraphrase.chinese_words import CONCEPTS, DEALINGS, IDLE, NOT_DENYING
from apps.engine.paraphrase.meaning import Meaning, ordered

_DIGITS = {digit: value for value, digit in enumerate("零一二三四五六七八九")} | {"两": 2, "〇": 0}
_TENS = {"十": 10, "百": 100, "千": 1000, "万": 10000}
_UNIT = (
    "个工作日|工作日|个小时|小时|个月|分钟|星期|个季节|季节|公里|厘米|毫米|公斤|美元|欧元|英镑|人民币|积分|流明"
    "|天|日|年|月|周|季|点|度|伏|瓦时|瓦|元|块|%|℃|折|期|次|张|只|份|码|件|倍|米|克|岁|号|寸|分|°c"
)
_SAME_UNIT = {
    "个工作日": "工作日", "个小时": "小时", "个月": "月", "个季节": "季节", "季": "季节", "日": "天", "块": "元",
    "积分": "分", "℃": "度", "°c": "度",
}  # fmt: skip
_NUMBER = re.compile(rf"(?P<value>\d+(?:\.\d+)?|[零一二两三四五六七八九十百千万]+)(?:个)?(?P<unit>{_UNIT})?")
_LATIN = re.compile(r"[a-z][a-z0-9+&.-]*|[$€£¥]\d+(?:\.\d+)?")
_HABIT = re.compile(r"(\S)[不没]\1")  # 能不能, 会不会; 有没有 among them
_NEGATION = re.compile(r"不能|不可以?|无法|没有|不会|不要|不用|不是|不|没|未|无|别|勿|非")
_MAY_NOT = frozenset({"不能", "不可", "不可以", "无法"})

_ACTOR = re.compile(r"我们|我|你们|您|你|贵店")
# What a shop does for its customers is what customers may do.
_FOR_CUSTOMERS = re.compile(
    r"你们家?(?:这里|这儿|店里)?(?:都|也)?(?:可以|能|会)?"
    r"(?:有|支持|接受|提供|卖|寄|送|发|修|退|换|收|用|配送|营业|开|几点|什么时候|在哪|哪|怎么|的)"
)
_REFERS = re.compile(
    r"它|[他她]|[这那](?:个|些|种|样|款|双|张|件)|上面|刚才|刚刚|前面说"
    r"|^(?:那|还有|另外|而且|然后|所以|但是|可是|如果是)|呢$"
)
_PASSING = re.compile(
    r"今[天晚日年]|明[天日年]|昨[天日]|现在|目前|最近|[本这下上](?:个?(?:周|星期|月|礼拜)|次)|刚刚|马上"
)
_OWN = re.compile(r"我的?(?:这个|那个)?(?:订单|包裹|快递|退款|退货|货|单子)|本人")
_STATE = re.compile(
    r"(?:订单|包裹|快递|货|物流).{0,3}(?:到哪|在哪|到了吗|发货了吗|发了吗|没到|状态)"
    r"|(?:订单|单号|快递单)号?\D?\d{3,}|#\d{2,}|\d{5,}|@|我叫|我是(?=\S{2,4}$)"
)


def read(plain: str) -> Meaning:
    """The meaning of a question in its normal form. About 0.1 ms."""
    habitual = _HABIT.sub(r"\1", plain)
    kind, rest = kind_of(habitual, asks=habitual != plain)
    words = _Words(rest)
    kind, kept = settled(kind, habitual, frozenset(words.found))
    return Meaning(
        language="zh",
        kind=kind,
        words=kept,
        numbers=tuple(sorted(words.numbers)),
        negated=tuple(sorted(words.negated)),
        order=ordered(words.sequence, kept, _ACTS),
        actor=_actor(plain),
        personal=bool(_OWN.search(plain) or _STATE.search(plain)),
        refers=bool(_REFERS.search(plain)),
        passing=bool(_PASSING.search(plain)),
    )


class _Words:
    """The words of a question as concepts, in order; idle ones left out; numbers and denials apart."""

    def __init__(self, rest: str) -> None:
        self.found: set[str] = set()
        self.sequence: list[str] = []
        self.numbers: list[str] = []
        self.negated: list[str] = []
        self._denies = ""
        self._run = ""  # characters of no lexicon, which make a word together
        at = 0
        while at < len(rest):
            at += self._step(rest, at)
        self._end_run()
        if self._denies:
            self.negated.append(self._denies)

    def _step(self, text: str, at: int) -> int:
        """How many characters from `at` were read."""
        number = _NUMBER.match(text, at)
        if number and _counts(number):
            return self._read(number.group(), number=_number(number))
        if latin := _LATIN.match(text, at):
            return self._read(latin.group(), word=latin.group())
        if phrase := _PHRASE.match(text, at):
            return self._read(phrase.group(), word=_BY_PHRASE[phrase.group()])
        if negation := _NEGATION.match(text, at):
            return self._read(negation.group(), denies="may not" if negation.group() in _MAY_NOT else "not")
        if text[at].isspace():
            return self._read(text[at])
        self._run += text[at]
        return 1

    def _read(self, part: str, *, word: str = "", number: str = "", denies: str = "") -> int:
        self._end_run()
        if word:
            self._add(word)
        if number:
            self.numbers.append(number)
        self._denies = self._denies or denies
        return len(part)

    def _end_run(self) -> None:
        run, self._run = self._run, ""
        if run:
            self._add(run)

    def _add(self, word: str) -> None:
        self.found.add(word)
        self.sequence.append(word)
        if self._denies:
            self.negated.append(f"{self._denies} {word}")
            self._denies = ""


def _counts(match: re.Match[str]) -> bool:
    """一 alone is an article and begins words such as 一下 and 一起."""
    value = match.group("value")
    return value[0].isdigit() or bool(match.group("unit")) or len(value) > 1


def _number(match: re.Match[str]) -> str:
    unit = match.group("unit") or ""
    return f"{_value(match.group('value'))} {_SAME_UNIT.get(unit, unit)}".strip()


def _value(written: str) -> str:
    if written[0].isdigit():
        return written
    total, held = 0, 0
    for character in written:
        if character in _TENS:
            total += (held or 1) * _TENS[character]
            held = 0
        else:
            held = _DIGITS[character]
    return str(total + held)


def _actor(text: str) -> str:
    match = _ACTOR.search(text)
    if not match:
        return ""
    if match.group().startswith("我"):
        return "customer"
    return "" if _FOR_CUSTOMERS.search(text) else "shop"


def _phrases() -> dict[str, str]:
    phrases = dict.fromkeys(IDLE, "")
    for line in CONCEPTS.splitlines():
        name, _, written = line.partition(": ")
        phrases |= dict.fromkeys(written.split(), f"={name}")
    return phrases | NOT_DENYING


_BY_PHRASE = _phrases()
_PHRASE = re.compile("|".join(re.escape(phrase) for phrase in sorted(_BY_PHRASE, key=len, reverse=True)))
_ACTS = frozenset(f"={name}" for name in DEALINGS)
