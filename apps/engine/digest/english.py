"""English, and any language that parts its words: capitals, digits and a list of fillers tell what is worth keeping."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from apps.engine.digest.worth import Piece, Worth

# Words that say how something is told and not what.
_FILLERS: Final = frozenset(
    """
    a able about actually additional again ahead all already alright also always am amazing an and another any
    anyone anything anyway appreciate appreciated are around as ask asked asking assist assistance at available
    awesome be because been before being best better both bunch but by bye call called can care certainly
    chance check come confirm confirming cool correct could couldn't course criteria currently detail details
    did didn't different do does doesn't doing don't done each either else enjoy enough even ever every
    everything excellent fantastic few find finding fine first following for found from fun further get getting
    give given giving glad go goes going gonna good goodbye got great guess had happy has have haven't having
    he hello help helped helpful helping her here hey hi him his hold hope how however i if in including inform
    information instead interested interesting into is it its just keep kind kindly know let like liked located
    look looking looks lot lots lovely made make makes making many may maybe me mean might mind moment more
    most much my need needed needs nice now of off oh ok okay on once one only options or other others our out
    over particular perfect perhaps place pleasant please pleasure possible possibly prefer preferably
    preference preferred probably problem provide quite rather really recommend regarding require results right
    said same say see seems shall she shortly should show so some someone something somewhere soon sorry sound
    sounds specific specifically still such suggest suitable super sure take tell than thank thanks that the
    their them then there these they thing things think this those though thought through to too try trying
    understand unfortunately until up us use verify very want wanted was wasn't way we welcome well were what
    whatever when where whether which while who whose why will wish with within won't wonderful would wouldn't
    yeah yep you your yours yourself yup
    """.split()  # noqa: SIM905 - 350 quotes would not read better
)
# Numbers and times in words.
_TELLING: Final = frozenset(
    """
    afternoon april august december dozen eight eighteen eighty eleven evening february fifteen fifty first
    five forty four fourteen friday half hundred january july june last march may midnight monday month morning
    next night nine nineteen ninety noon november o'clock october one quarter saturday second september seven
    seventeen seventy six sixteen sixty sunday ten third thirteen thirty thousand three thursday today tomorrow
    tonight tuesday twelve twenty two wednesday week weekend year yesterday
    """.split()  # noqa: SIM905 - as above
)
# Without these a digest would tell the opposite.
_TURNING: Final = frozenset(
    """aren't can't canceled cancel cancelled cannot couldn't didn't doesn't don't except failed isn't never no none
    nope not nothing unable unavailable unless unsuccessful wasn't without won't wouldn't yes""".split()  # noqa: SIM905
)
# Between two facts these belong to them: "Museum of Art", "half past 11 in the morning".
_CONNECTORS: Final = frozenset("a an and at by de in la of on or past the this to & # -".split())  # noqa: SIM905
_HALVES_OF_DAY: Final = frozenset({"am", "pm", "a.m", "p.m"})
_POINTING: Final = frozenset({"this", "next", "last", "every", "early", "later", "late"})
# What follows is a name, whatever its letters.
_NAMING: Final = frozenset({"called", "named", "titled", "labeled", "labelled", "name"})
_NAMED_WORDS = 3

_WORD = re.compile(r"[^\s,;:()\"]+(?:(?<=\d)[:,](?=\d)[^\s,;:()\"]+)*")


def pieces(sentence: str) -> Iterator[Piece]:
    """Runs of facts, and single words that are no fillers."""
    words = list(_WORD.finditer(sentence))
    spoken = [word.group() for word in words]
    facts = _facts(spoken)
    at = 0
    while at < len(words):
        last = at
        if facts[at]:
            while last + 1 < len(words) and facts[last + 1]:
                last += 1
            yield Piece(words[at].start(), words[last].end(), Worth.FACT)
        elif not _is_filler(spoken[at]):
            worth = Worth.SAID if at == 0 and spoken[at][0].isupper() else Worth.TOPIC
            yield Piece(words[at].start(), words[at].end(), worth)
        at = last + 1


def _facts(words: Sequence[str]) -> list[bool]:
    """Which words are numbers, names or times or turn a statement round, with what stands between two of them."""
    lower = [word.lower() for word in words]
    facts = [_tells(word) or (at > 0 and _is_name(word)) for at, word in enumerate(words)]
    for at, word in enumerate(lower):
        if word in _NAMING:
            facts[at + 1 : at + 1 + _NAMED_WORDS] = [True] * len(facts[at + 1 : at + 1 + _NAMED_WORDS])
        elif word in _HALVES_OF_DAY:
            facts[at] = at > 0 and facts[at - 1]
        elif word in _POINTING:
            facts[at] = at + 1 < len(words) and lower[at + 1] in _TELLING
        elif at > 1 and _is_name(words[at - 1]) and (word == "up" or not _is_filler(word)):
            facts[at] = True  # "Union station"
    _bridge(words, lower, facts)
    return facts


def _bridge(words: Sequence[str], lower: Sequence[str], facts: list[bool]) -> None:
    """A capital at the beginning counts as a name only where a fact follows it."""
    if words and _is_name(words[0]) and not _is_filler(words[0]):
        facts[0] = any(_bridged(lower, facts, 0, other) for other in range(1, min(4, len(words)))) or facts[0]
    for at in range(len(words)):
        for other in range(at + 2, min(at + 4, len(words))):
            if facts[at] and _bridged(lower, facts, at, other):
                facts[at:other] = [True] * (other - at)


def _bridged(lower: Sequence[str], facts: Sequence[bool], at: int, other: int) -> bool:
    return facts[other] and all(word in _CONNECTORS for word in lower[at + 1 : other])


def _tells(word: str) -> bool:
    lower = word.lower()
    return "@" in word or lower in _TELLING or lower in _TURNING or any(c.isdigit() for c in word)


def _is_name(word: str) -> bool:
    return word[0].isupper() and word != "I" and not word.startswith(("I'", "I’"))


def _is_filler(word: str) -> bool:
    lower = word.lower().replace("’", "'").strip("'-")
    return lower in _FILLERS or ("'" in lower and lower.partition("'")[0] in _FILLERS)
