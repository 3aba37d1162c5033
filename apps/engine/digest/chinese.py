"""Chinese, which does not part its words: fillers and what was said before part them, units and name endings tell."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from apps.engine.digest.worth import Known, Piece, Worth

# What says how something is told and not what. Longest first; each may stand anywhere.
_FILLERS: Final = tuple(
    """
    请问一下 请问 你好啊 你好 您好 你们 您们 我们 他们 咱们 可不可以 能不能 会不会 是不是 有没有 要不要
    行不行 可以吗 可以的 可以 能够 什么时候 为什么 怎么样 怎么办 怎么 怎样 如何 有什么 什么样 什么 有哪些
    哪些 哪里 哪儿 哪个 哪家 是多少 多少 几个 是否 还是 或者 如果 的话 的时候 时候 一下子 一下 一个 一家
    一些 一点 一种 一张 一辆 找个 找家 这个 那个 这家 它家 他家 这些 那些 这里 那里 这边 那边 已经 因为
    所以 但是 而且 以后 之后 然后 需要 想要 应该 知道 告诉 帮我 帮忙 帮您 帮你 麻烦 谢谢 感谢 非常 没问题
    没有问题 问题 好的 好了 好吧 好啊 好嘞 行吧 那好 太好了 太棒了 不客气 不用谢 客气 抱歉 不好意思
    对不起 推荐您去 推荐您 推荐一 推荐 建议您 建议 给您 给我 为您 为你 给你 我想 我要 我找 我查 想找 想去
    想吃 查一 查询 查到 找到 还有 都有 另外 顺便 最好 不错 比较 十分 特别 符合您 符合 满足 要求 条件
    的要求 愉快 祝您 祝你 希望 这样 那样 那么 就是 就行 的地方 地方 您可以 您看 看看 看一 知道了 明白
    了解 请您 请你 请给 请帮 能帮 能给 能告 诉我 记一 记下 别的 其他 其它 到时 一共 大概 左右吧 是在 是的
    有的 没错 好玩的 好吃的 怎么走 打算 当然 不用 没关系 太好啦 啥 完全 合适 满意 欢迎 随时 联系 生活
    吃完饭 结束后 结束 选择 安排 正好 刚才 刚刚 肯定 高兴 方便 清楚 最后 一会 喜欢 介绍 必须 没事 帮助
    并且 名叫 分别 觉得 咋样 不是 真的 里面 左右 等等 好像 属于 有啥 是啥 报歉 挺多 不少 还想 还要 再帮
    再给 再找 再见
    """.split()  # noqa: SIM905 - 200 quotes would not read better
)
_FILLER: Final = re.compile("|".join(sorted(_FILLERS, key=len, reverse=True)))
# A name follows these.
_INTRODUCING: Final = frozenset({"推荐您去", "推荐您", "推荐", "名叫", "建议您", "建议"})
# At the edges of what fillers leave these are filler too; inside it they may belong to a name.
_HEADS: Final = (
    "我你您他她它的了吗呢吧啊呀哦嗯哈嘛么呗哟是有在与跟就也还很把被给从会能想要请"
    "这哪个再让去到吃找查看对行说着得些里"
)
_TAILS: Final = "的了吗呢吧啊呀哦嗯哈嘛么呗哟是有在和与就还我你您也都那这去等里个"
# A topic stands before these, what is said of it behind.
_JOINTS: Final = "的是有在为"
_SAYING: Final = "是有在为"
# Without these a digest would tell the opposite.
_TURNING: Final = re.compile("[不没无未别]")
_TELLING: Final = frozenset("免费 今天 明天 后天 昨天 上午 下午 中午 晚上 早上 周末".split())  # noqa: SIM905
_NAME_ENDS: Final = (
    "店馆院园街路寺宫楼厅城村镇区山湖塔桥门站坊屋吧铺库场厦司厂港庙海江河岛洞谷堂台号型色码款版元天时分米斤"
)

# A comma or a blank parts clauses, unless it stands inside brackets or before a digit.
_CLAUSE = re.compile(r"(?:[(（][^()（）]*[)）]?|[,\s~-]+(?=\d)|[^，,、；;：\s(（])+")
_NUMBER = re.compile(r"\d")
_UNIT = "(?:元|块|分|小时|天|点|折|%|公里|米|斤|件|个|人|岁|月|年|日|次)"
# A number with a unit is said of what stands before it; one without may belong to an address or a name.
_MEASURE = re.compile(rf"(?:\d[\d.,]*{_UNIT}?\s*[-~至到]\s*)?\d[\d.,]*{_UNIT}(?:以上|以下|以内|之间)?")


def pieces(sentence: str, known: Known) -> Iterator[Piece]:
    """What is between fillers. Read it while `known` learns: what was said before parts what follows."""
    worth, ended = Worth.TOPIC, 0
    for clause in _CLAUSE.finditer(sentence):
        listed = sentence[ended : clause.start()].strip() in {"、", ",", "，"}
        least = min(worth, Worth.SAID) if listed else Worth.TOPIC
        at = clause.start()
        for filler in [*_FILLER.finditer(sentence, *clause.span()), None]:
            end = filler.start() if filler else clause.end()
            for piece in _parted(sentence, at, end, least, known):
                worth = piece.worth
                yield piece
            if filler:
                at = filler.end()
                least = Worth.FACT if filler.group() in _INTRODUCING else Worth.TOPIC
        ended = clause.end()


def _parted(text: str, start: int, end: int, least: Worth, known: Known) -> Iterator[Piece]:
    """The run parted where a topic ends and what is said of it begins, and round names known before."""
    waiting = [(start, end, least)]
    while waiting:
        start, end, least = waiting.pop()
        start, end = _trimmed(text, start, end)
        if start == end:
            continue
        cuts = _cuts(text, start, end, known)
        if not cuts:
            yield Piece(start, end, max(least, _worth(text[start:end])))
            continue
        for begin, stop in reversed(list(zip([start, *cuts], [*cuts, end], strict=True))):
            said = begin > start and text[begin] in _SAYING
            waiting.append((begin, stop, Worth.SAID if said else least if begin == start else Worth.TOPIC))


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start] in _HEADS:
        start += 1
    while start < end and text[end - 1] in _TAILS:
        end -= 1
    return start, end


def _cuts(text: str, start: int, end: int, known: Known) -> list[int]:
    """Where the run is cut next; nowhere when it is one piece."""
    for begin, stop in known.names_in(text[start:end]):
        return [cut for cut in (start + begin, start + stop) if start < cut < end]
    measure = _MEASURE.search(text, start, end)
    if measure and measure.start() == start and measure.end() < end and text[measure.end()] in _HEADS:
        return [measure.end()]
    for cut in range(start + 1, end):
        if text[cut] in "(（":
            break
        if text[cut] in _JOINTS and text[cut - 1] != "没" and (cut - start > 1 or text[cut] == "的"):
            return [cut]
        if text[cut].isdigit():
            told = measure is not None and measure.start() == cut
            if cut - start > 1 and (told or known.composes(text[start:cut], _HEADS)):
                return [cut]
            break
    return []


def _worth(run: str) -> Worth:
    named = len(run) > 2 and run[-1] in _NAME_ENDS
    if named or run in _TELLING or _TURNING.search(run) or _NUMBER.search(run) or "(" in run or "（" in run:
        return Worth.FACT
    return Worth.SAID if len(run) > 2 else Worth.TOPIC
