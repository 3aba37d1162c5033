"""Tells what kind of answer an English question wants, and what its kind says already. Pure.

Works on lemmas: "is it possible" reads "be it possible", "charged" reads "charg".
"""

from __future__ import annotations

import re

from apps.engine.paraphrase.meaning import Kind, beyond, known, listed

Found = frozenset[str]

_I = "(?:i|we|one|you|customer|the customer)"
_THE = r"(?:be |be the |be your |the |your )?"
_HOW_LONG = (
    r"(?:for |within |in |after |before )?how "
    r"(?:long|much time|many (?:work |business )?(?:day|week|month|year|hour|minute|season))(?: until| till| before)?"
)
_INVERTED = r"(?:can|do|should|must|may|what|how|be) (?:i|you|we|it|they|there|this|that)(?!\S)"
# The first that is found decides.
_KINDS: tuple[tuple[re.Pattern[str], Kind], ...] = tuple(
    (re.compile(rf"(?<!\S)(?:{pattern})(?!\S)"), kind)
    for pattern, kind in (
        (r"how (?:often|frequently|regularly|many time)", Kind.OFTEN),
        (_HOW_LONG, Kind.SPAN),
        (r"how (?:fast|quick|quickly|soon)", Kind.TAKES),
        (r"(?:until|till|by|up to|before) (?:when|what (?:time|date))", Kind.SPAN),
        (r"how (?:much|expensive)(?= (?:be|do|will|for|to|it))", Kind.COST),
        (r"how (?:much|expensive)$", Kind.COST),
        (r"how much", Kind.COUNT),
        (rf"how many|what {_THE}(?:maximum |max )?number of", Kind.COUNT),
        (rf"^when(?= )(?!.* {_INVERTED})", Kind.WHEN),
        (rf"why|how come|(?:what {_THE}|for what )reason", Kind.WHY),
        (rf"what {_THE}(?:good|best|right|correct|proper|easy|easiest) way (?:to|of)", Kind.HOW),
        (rf"what {_THE}(?:step|procedure|process) (?:to|for|of)", Kind.HOW),
        (rf"what (?:do|should|must|can) {_I} (?:have to |need to |want to )?do to", Kind.HOW),
        (
            rf"what (?:should|can|do|must|shall|may|be) {_I} (?:have to |need to |suppos to )?do"
            r"(?: now| then)?(?: about| with| against)?",
            Kind.REMEDY,
        ),
        (r"what to do(?: about| with| when| if)?|what happen (?:if|when|to|with)|what happen$", Kind.REMEDY),
        (r"what (?:now|next|then|if|help)(?: if| when| against)?", Kind.REMEDY),
        (r"(?:at |by )?what (?:time|point|date)", Kind.WHEN),
        (r"when(?= (?:do|be|will|can|should|may|must|have|exactly))", Kind.WHEN),
        (r"where", Kind.WHERE),
        (r"who|whom|whose", Kind.WHO),
        (r"how(?: do| can| should| must| may| will| be)?", Kind.HOW),
        (r"(?:in |with |for |from )?(?:which|what)(?: kind of| sort of| type of)?", Kind.WHAT),
    )
)
_MUST = re.compile(
    r"(?<!\S)(?:have to|need to|must|be it (?:necessary|requir|need|compulsory|mandatory)(?: to| that| for)?"
    r"|(?:necessary|requir|mandatory)(?= |$))(?!\S)"
)
_POSSIBLE = re.compile(
    r"(?<!\S)be it (?:also |still )?(?:possible|ok|okay|allow|permit|fine|alright)(?: to| if| for| that| when)?(?!\S)"
)
_ASKS = re.compile(
    r"^(?:can|may|will|do|be|have|must|should|shall|need)(?!\S)"
    r"|(?<!\S)(?:can|may|will|do|be|must|should|have) (?:i|we|you|it|they|there|that|this)(?!\S)"
    r"|(?:possible|allow|available|ok|okay|permit)$"
)
_WISH = re.compile(r"(?<!\S)(?:i|we) (?:want|need|will like|will love|wish)(?!\S)")
_TELLS = re.compile(r"(?<!\S)(?:i|my|the|you|it|there|be|say|show|mark|have)(?!\S)")

# How long: what may be waited for takes its time, what is allowed or promised holds for it.
_WAITING = re.compile(r"(?<!\S)(?:take|need|until|before|arriv|get|receiv|will)(?!\S)")
_MAY_WAIT = re.compile(r"how \w+(?: \w+)? (?:do|have|can|may) (?:i|we|you) (?:have|get)?(?!\S)")
_WINDOW = re.compile(
    r"(?<!\S)(?:have (?:i|you|we)? ?(?:get )?(?:to)?|within|can|may|must|up to|latest|(?:until|till) when)(?!\S)"
)
_LASTING = frozenset({"=warranty", "=membership", "=valid", "=keep"})

# What a kind of question says already, by itself or of those who ask or are asked.
_SAID = {
    kind: listed(words)
    for kind, words in {
        Kind.COST: "=cost =charge =pay",
        Kind.SPAN: "=period =deadline time need =need must",
        Kind.TAKES: "take =need need time until =get =receive =arrive must",
        Kind.HOW: "should must need =need =method",
        Kind.REMEDY: "should must need now",
        Kind.MUST: "must need =need =get",
        Kind.OFTEN: "must need =need should",
        Kind.WHAT: "must should =need need",
        Kind.COUNT: "maximum per",
        Kind.WHY: "=reason",
        Kind.YES: "=get available",
        Kind.WHERE: "=find",
    }.items()
}
_SAID_OF_CUSTOMERS = {Kind.WHAT: listed("=order =buy =get choose pick take select")}
_SAID_OF_SHOPS = {Kind.YES: frozenset({"=offer"}), Kind.WHAT: frozenset({"=offer", "available", "=get"})}


def kind_of(text: str) -> tuple[Kind, str]:
    """The kind as its first words tell it, and the text without them."""
    for pattern, kind in _KINDS:
        if found := pattern.search(text):
            return kind, f"{text[: found.start()]}{text[found.end() :]}".strip()
    if found := _MUST.search(text):
        return Kind.MUST, f"{text[: found.start()]}{text[found.end() :]}"
    if _ASKS.search(text):
        return Kind.YES, without_possible(text)
    if _WISH.search(text):
        return Kind.NONE, text
    return (Kind.REMEDY if _TELLS.search(text) else Kind.NONE), text


def without_possible(text: str) -> str:
    """The text without "is it possible to" and the like, whose "it" refers to nothing."""
    return _POSSIBLE.sub("", text)


def settled(kind: Kind, text: str, actor: str, found: Found) -> tuple[Kind, Found]:
    """The kind once the words are known, and the words that it does not say already."""
    kind = _refined(kind, text, found)
    kept = _same_said_otherwise(kind, actor, found)
    said = _SAID.get(kind, frozenset())
    said |= (_SAID_OF_CUSTOMERS if actor == "customer" else _SAID_OF_SHOPS).get(kind, frozenset())
    return kind, beyond(kept, said)


def _refined(kind: Kind, text: str, found: Found) -> Kind:
    if kind is Kind.WHAT and "=cost" in found:
        return Kind.COST
    if kind is Kind.WHAT and found & {"=deadline", "=period", "=valid"}:
        return Kind.SPAN
    if kind is Kind.WHAT and "time" in found:
        return Kind.TAKES
    if kind is Kind.WHEN and "=expire" in found:
        return Kind.SPAN
    if kind is Kind.WHEN and found & {"=get", "=receive", "=arrive"}:
        return Kind.TAKES
    if kind is Kind.SPAN and not _holds(text, found):
        return Kind.TAKES
    return kind


def _holds(text: str, found: Found) -> bool:
    """Whether "how long" asks how long something holds, and not how long it takes."""
    if _WAITING.search(text) and not _MAY_WAIT.search(text):
        return False
    return bool(_WINDOW.search(text) or found & _LASTING)


def _same_said_otherwise(kind: Kind, actor: str, found: Found) -> Found:
    if kind is Kind.SPAN and "=expire" in found:
        found = found - {"=expire"} | {"=valid"}
    if kind is Kind.SPAN and found & {"=warranty", "=membership"}:
        found -= {"=valid"}
    if kind in (Kind.YES, Kind.COST, Kind.TAKES) and not found & {"=order", "before", "after"}:
        # Of goods on their way the two are stages; of a service they are one.
        found = frozenset("=delivery" if word in ("=ship", "=deliver") else word for word in found)
    if kind is Kind.YES and ("=accept" in found or ("take" in found and actor != "customer")):
        rest = found - {"=accept", "take"}
        # What a shop accepts is a way to pay, unless something else is done with it.
        return rest if any(known(word) for word in rest) else rest | {"=pay"}
    if kind is Kind.WHAT and found & {"=pay", "=currency"}:
        found -= {"=accept", "take"}
    return found
