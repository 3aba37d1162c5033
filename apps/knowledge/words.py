"""Words of English and Chinese text, as the lexical index sees them. Pure."""

from __future__ import annotations

import re

_RUN = re.compile(r"[a-z0-9]+(?:'[a-z]+)?|[\u3400-\u9fff\uf900-\ufaff]+")

_ENGLISH_STOPS = frozenset(
    """a about after all also am an and any are as at be because been before being but by can cannot can't could d did
    do does doesn't doing don't for from get got had has have having he hello help her hey hi him his how i i'd i'll
    i'm i've if in into is isn't it it's its just know let like ll may me might mine more most much must my need no
    not now of off oh ok on one or our out over please re s shall she should so some tell thank thanks that that's the
    their them then there these they this those to too us ve very want was wasn't we we'd well were what what's when
    where which while who whom whose why will with won't would yes you you'd you're your yours""".split()  # noqa: SIM905 - 150 quotes would not read better
)

# Longest first: these say how something is asked, not what about. They part the words round them.
_CHINESE_STOPS = sorted(
    """请问一下 请问 你好 您好 你们 您们 我们 他们 咱们 可不可以 能不能 会不会 是不是 有没有 要不要 行不行 可以 能够
    什么时候 为什么 怎么样 怎么办 怎么 怎样 如何 什么 哪些 哪里 哪儿 哪个 多少 几个 是否 还是 或者 如果 的话 的时候 时候
    一下 一个 这个 那个 这些 那些 已经 因为 所以 但是 而且 以后 之后 需要 想要 应该 知道 告诉 帮我 麻烦 谢谢 没有
    我 你 您 他 她 它 的 了 吗 呢 吧 啊 呀 着 过 是 有 在 和 与 跟 就 都 也 还 很 把 被 给 对 从 到 会 能 想 要 请 那
    这 哪 几 个 些 么 嘛 得 地 又 再 让 用 时""".split(),  # noqa: SIM905 - as above
    key=len,
    reverse=True,
)
_CHINESE_STOP = re.compile("|".join(_CHINESE_STOPS))


def words(text: str) -> list[str]:
    """The words of a text that is searched: English stems; Chinese characters and pairs of neighbours."""
    found: list[str] = []
    for run in _RUN.findall(text.lower()):
        if _is_latin(run):
            found += _english(run)
        else:
            found += run
            found += _pairs(run)
    return found


def asked_words(question: str) -> list[str]:
    """The words a question is about: as `words`, without what only says that something is asked.

    Of a Chinese run its pairs, or the one character it has.
    """
    found: list[str] = []
    for run in _RUN.findall(question.lower()):
        if _is_latin(run):
            found += _english(run)
            continue
        for piece in _CHINESE_STOP.split(run):
            found += _pairs(piece) if len(piece) > 1 else piece
    return found


def _is_latin(run: str) -> bool:
    return run[0].isascii()


def _pairs(run: str) -> list[str]:
    return [run[at : at + 2] for at in range(len(run) - 1)]


def _english(word: str) -> list[str]:
    return [] if word in _ENGLISH_STOPS else [stem(word)]


def stem(word: str) -> str:
    """A light stem: plurals, -ing, -ed, -ly and a final e. Wrong stems do no harm where both sides have them."""
    word = word.removesuffix("'s").replace("'", "")
    if len(word) <= 3 or word[0].isdigit():
        return word
    if word.endswith("ies"):
        word = word[:-3] + "y"
    elif word.endswith(("sses", "shes", "ches", "xes", "zes")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for suffix in ("ing", "ed", "ly"):
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            word = word.removesuffix(suffix)
            if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "ls":
                word = word[:-1]
            break
    return word.removesuffix("e") if len(word) > 3 else word
