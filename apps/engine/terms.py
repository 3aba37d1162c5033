"""The words of a text that carry meaning, for telling whether two texts speak of the same. Pure."""

from __future__ import annotations

import re

_LATIN_WORD = re.compile(r"[a-z0-9]+")
_HAN_RUN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]+")
_COMMON = frozenset(
    re.findall(
        r"\w+",
        "a an the i you we my our your it is are was be been do does did can could will would should may to of for in "
        "on at by with from and or if not no what how when where which who why this that there have has had get me us",
    )
)
_COMMON_HAN = frozenset(
    {"可以", "什么", "怎么", "我的", "吗", "多少", "如何", "你们", "我们", "能不", "不能"}
)


def terms(text: str) -> frozenset[str]:
    """Stemmed Latin words and Chinese character pairs that carry meaning."""
    lowered = text.casefold()
    words = {_stem(word) for word in _LATIN_WORD.findall(lowered) if word not in _COMMON}
    pairs = {run[i : i + 2] for run in _HAN_RUN.findall(lowered) for i in range(max(1, len(run) - 1))}
    return frozenset(words | (pairs - _COMMON_HAN))


def _stem(word: str) -> str:
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending)
    return word
