"""Reads an English question: its kind, its words, its numbers, what it denies. Pure."""

from __future__ import annotations

import re

from apps.engine.paraphrase.english_kinds import kind_of, settled, without_possible
from apps.engine.paraphrase.english_words import CONCEPTS, DEALINGS, IDLE
from apps.engine.paraphrase.lemmas import lemma
from apps.engine.paraphrase.meaning import Meaning, listed, ordered

_TOKEN = re.compile(r"[ap]\.m|[a-z]+|\d+(?:\.\d+)?|[$€£¥%°#@+&/]|[^\x00-\x7f\s]+")

# Between such words "one" is a pronoun, elsewhere a number.
_NO_PRONOUN = r"(?<!which )(?<!this )(?<!that )(?<!the )(?<!other )(?<!another )(?<!er )"
_AFTER_PRONOUN = r"(?:should|do|does|can|could|i|to|of|is|may|that|which|would|must|will|for|in|on)\b"
# Before lemmas: what inflection tells, and phrases that other words part.
_SPELLED = tuple(
    (re.compile(pattern), written)
    for pattern, written in (
        (r"\b(\d+(?:\.\d+)?) ?([ap]) ?m\b", r"\1 \2.m"),
        (r"\b(be|been|being|is|are|was|were|get) used\b(?! to\b)", r"\1 use"),
        (r"\bstores\b|(?<=\bthe )store\b|(?<=\byour )store\b|(?<=\b[ia]n )store\b|(?<=\ba )store\b", "shop"),
        (r"\bwhat (?:do |does |would |will |should )?(i|we|you) need\b", r"what \1 requirement"),
        (r"^(how (?:do|does) )(?!i\b|we\b|you\b)(.*) work$", r"\1\2"),
        (r"\b(in|on|until|till|since|by|from|of|before|after|during|next|last|this) may\b", r"\1 maymonth"),
        (rf"{_NO_PRONOUN}\bone\b(?= (?!{_AFTER_PRONOUN}))", "1"),
        (r"\bonce\b(?! (?:i|you|we|it|the|a|an|my)\b)", "1 time"),
        (r"\btwice\b", "2 time"),
        (r"\bno longer\b|\bnot any ?more\b|\bany ?more\b", "no longer"),
        (
            r"\b(send|sent|give|gave|take|took|bring|brought|ship|shipped|mail|post|get|got|hand)"
            r"((?: \w+){1,4}?) back\b",
            r"\1 back\2",
        ),
        (r"\b(throw|threw|thrown)((?: \w+){1,3}?) away\b", r"\1 away\2"),
        (r"\b(pick|picked|picking)((?: (?!up\b)\w+){1,3}?) up\b", r"\1 up\2"),
        (r"\b(try|tried|trying)((?: (?!on\b)\w+){1,2}?) on\b", r"\1 on\2"),
        (r"\b(take|remove|cut)((?: \w+){1,3}?) (out|off)\b", r"\1 \3\2"),
    )
)

_SMALL = (
    "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
)
_NUMBERS = {
    word: str(value) for value, word in enumerate(f"{_SMALL} eighteen nineteen twenty".split(), start=2)
}
_NUMBERS |= {"thirty": "30", "forty": "40", "fifty": "50", "sixty": "60", "ninety": "90"}
_NUMBERS |= {"hundred": "100", "thousand": "1000"}
_CURRENCIES = frozenset("$€£¥")
_UNITS = {
    unit: name
    for name, units in {
        "day": "day", "week": "week wk", "month": "month", "year": "year yr", "hour": "hour hr",
        "minute": "minute min", "second": "second sec", "$": "$ dollar usd buck", "€": "€ euro eur",
        "£": "£ pound gbp", "¥": "¥ yuan rmb cny", "%": "% percent", "°": "° degre degree", "am": "a.m", "pm": "p.m",
        "x": "time",
    }.items()
    for unit in units.split()
}  # fmt: skip
_UNITS |= {unit: unit for unit in listed("cm mm km m g kg v w wh mah l ml inch lb oz uk usa eu")}

_NEGATIONS = frozenset({"not", "no", "never", "without", "nothing", "none", "neither", "nor", "nobody"})
_SAID_ALOUD = frozenset({"without"})  # a denial that is a word of the question too
# What may stand between a denial and what it denies.
_BETWEEN = listed("a an the any my your our this that i you we it be have to do can will yet also even")

_ACTOR = re.compile(r"(?<!\S)(can|may|will|do|be|have|must|should|shall|need) (?:not )?(\S+)")
_NOBODY = frozenset({"it", "there", "be", "this", "that", "to", "have", "get"})
# What a shop does for its customers is what customers may do: it takes back what they return.
_FOR_CUSTOMERS = listed(
    "=accept =offer =delivery =ship =deliver =return =repair =refund =exchange let take have"
)
_REFERS = re.compile(
    r"(?<!\S)(?:it|they|them|this|that|these|those|there|same|one|its|their|he|she|him|her|previous|such)(?!\S)"
    r"|^(?:and|but|or|so|then|also|what about|how about|no|yes|ok)(?!\S)"
    r"|(?<!\S)(?:instead|else|then|again|too|above)$"
)
_PASSING = re.compile(
    r"(?<!\S)(?:today|tonight|tomorrow|yesterday|currently|recently|right now|at the moment|open now|so far"
    r"|(?:this|next|last|coming) (?:week|month|year|weekend|time|\S+day))(?!\S)"
)
_OWN = re.compile(
    r"(?<!\S)(?:my|our|mine)(?: \S+)? "
    r"(?:order|parcel|package|shipment|delivery|refund|purchas|payment|return|deliver)(?!\S)"
)
_STATE = re.compile(
    r"(?<!\S)(?:where|status|track|arriv|receiv) (?:be |of )?(?:the |an |a )?"
    r"(?:order|parcel|package|shipment|delivery)(?!\S)"
    r"|(?:order|parcel|package|tracking) (?:number |no )?\d{3,}|#\d{2,}|(?<!\S)\d{5,}|@"
    r"|(?<!\S)(?:my name|i be call)(?!\S)"
)
_DID = re.compile(
    r"\bi(?: have| just| already)* "
    r"(?:ordered|bought|purchased|paid|sent|returned|cancelled|canceled|received)\b"
)


def read(plain: str) -> Meaning:
    """The meaning of a question in its normal form. About 0.2 ms."""
    did = _DID.search(plain) is not None
    for pattern, written in _SPELLED:
        plain = pattern.sub(written, plain)
    text = " ".join(lemma(token) for token in _TOKEN.findall(plain))
    kind, rest = kind_of(text)
    words = _Words(rest)
    actor = _actor(text, words.found)
    kind, kept = settled(kind, text, actor, frozenset(words.found))
    return Meaning(
        language="en",
        kind=kind,
        words=kept,
        numbers=tuple(sorted(words.numbers)),
        negated=tuple(sorted(words.negated)),
        order=ordered(words.sequence, kept, _ACTS),
        actor=actor,
        personal=did or bool(_OWN.search(text) or _STATE.search(text)),
        refers=bool(_REFERS.search(without_possible(text))),
        passing=bool(_PASSING.search(text)),
    )


class _Words:
    """The words of a question as concepts, in order; idle ones left out; numbers and denials apart."""

    def __init__(self, rest: str) -> None:
        self.found: set[str] = set()
        self.sequence: list[str] = []
        self.numbers: list[str] = []
        self.negated: list[str] = []
        self._denies = False
        tokens = _CONCEPT.sub(lambda match: _BY_PHRASE[match.group()], rest).split()
        at = 0
        while at < len(tokens):
            at += self._number(tokens, at) or self._word(tokens[at])
        if self._denies:
            self.negated.append("")

    def _number(self, tokens: list[str], at: int) -> int:
        """How many tokens from `at` are a number with its unit; 0 for none."""
        if tokens[at] in _CURRENCIES and at + 1 < len(tokens):
            self.numbers.append(f"{tokens[at + 1]} {tokens[at]}")
            return 2
        value = _NUMBERS.get(tokens[at], tokens[at])
        if not value[0].isdigit():
            return 0
        if tokens[at + 1 : at + 3] in (["work", "day"], ["business", "day"]):
            self.numbers.append(f"{value} working day")
            return 3
        unit = _UNITS.get(tokens[at + 1], "") if at + 1 < len(tokens) else ""
        self.numbers.append(f"{value} {unit}".strip())
        return 2 if unit else 1

    def _word(self, token: str) -> int:
        if token in _NEGATIONS:
            self._denies = True
        elif self._denies and token not in _BETWEEN:
            self.negated.append(token)
            self._denies = False
        if token not in _IDLE and (token not in _NEGATIONS or token in _SAID_ALOUD):
            self.found.add(token)
            self.sequence.append(token)
        return 1


def _actor(text: str, found: set[str]) -> str:
    """Who acts: the lamp that charges is not the customer who charges it."""
    for auxiliary, subject in _ACTOR.findall(text):
        if subject in ("i", "we", "one"):
            return "customer"
        if subject == "you":
            return "" if found & _FOR_CUSTOMERS or "have" in text.split() else "shop"
        if auxiliary != "be" and subject not in _NOBODY and " be " not in text:
            return "thing"
    return ""


def _phrases() -> dict[str, str]:
    phrases = {}
    for line in CONCEPTS.splitlines():
        name, _, written = line.partition(": ")
        for phrase in written.split(", "):
            phrases[" ".join(lemma(word) for word in phrase.split())] = f"={name}"
    return phrases


_BY_PHRASE = _phrases()
_CONCEPT = re.compile(
    r"(?<!\S)(?:"
    + "|".join(re.escape(phrase) for phrase in sorted(_BY_PHRASE, key=len, reverse=True))
    + r")(?!\S)"
)
_IDLE = frozenset(lemma(word) for word in IDLE) | frozenset(IDLE)
_ACTS = frozenset(f"={name}" for name in DEALINGS)
