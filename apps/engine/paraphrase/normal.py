"""The normal form of a question: what is left when writing habits and courtesies are taken away. Pure."""

from __future__ import annotations

import re
import unicodedata

from apps.engine.paraphrase.variants import SIMPLIFIED

MAX_CHARACTERS = 200  # a longer text tells a story; no other tells the same

# Marks that part or close sentences. What may carry meaning stays: $ € % ° + # @ / & and signs before numbers.
_PUNCTUATION = re.compile(r"[!?,;:\"'`´’‘“”()\[\]{}<>«»…·•*_~|\\^、。，；：？！「」『』《》〈〉【】—–]")
_AMERICA = re.compile(r"\bU\.?S\.?(?:A\b\.?)?(?![\w$])")  # small, it would be us
_SPACES = re.compile(r"\s+")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_STOP = re.compile(r"\.(?!\d)|(?<!\d)\.")
_MINUS = re.compile(r"(?<![\w-])[-−](?=\d)")
_HYPHEN = re.compile(r"(?<=\w)[-‐‑](?=\w)")
_BESIDE_CHINESE = re.compile(r"(?<=[\u3400-\u9fff]) | (?=[\u3400-\u9fff])")

_ONE_FORM = SIMPLIFIED | {ord("’"): "'", ord("‘"): "'"}

_CONTRACTIONS = (
    (re.compile(r"\b(can)(?:'|no|)t\b"), r"\1 not"),
    (re.compile(r"\bwon'?t\b"), "will not"),
    (re.compile(r"\bshan't\b"), "shall not"),
    (
        re.compile(r"\b(do|does|did|is|are|was|were|has|have|had|could|would|should|must|need)n(?:'|)t\b"),
        r"\1 not",
    ),
    (
        re.compile(r"\b(what|where|when|who|how|why|that|it|there|here|he|she)'s\b|\b(what|where|how)s\b"),
        r"\1\2 is",
    ),
    (re.compile(r"\bi'?m\b"), "i am"),
    (re.compile(r"\b(i|you|we|they|what)'ve\b|\bive\b"), r"\1 have"),
    (re.compile(r"\b(you|we|they|what)'re\b"), r"\1 are"),
    (re.compile(r"\b(i|you|we|they|it|what|that)'ll\b"), r"\1 will"),
    (re.compile(r"\b(i|you|we|they)'d\b"), r"\1 would"),
    (re.compile(r"'s\b"), ""),
    (re.compile(r"\bu\b"), "you"),
    (re.compile(r"\bpls\b|\bplz\b"), "please"),
    (re.compile(r"\be[-‐‑ ]mail"), "email"),
)

_ENGLISH_LEAD = re.compile(
    r"(?:(?:(?:hi|hello|hey|hiya)(?: there| guys| team| everyone| all)?|good (?:morning|afternoon|evening|day)"
    r"|dear (?:team|support|sir or madam|all)|excuse me|sorry(?: to bother you)?|help"
    r"|(?:quick |a |one |just a )?question"
    r"|ok|okay|well|um|please|kindly|(?:may|can) i ask(?: you)?|just wondering|any idea"
    r"|(?:can|could|would|will) (?:you|someone|anyone) (?:please |kindly )?"
    r"(?:tell|explain(?: to)?|let|inform|advise|help)(?: (?:me|us))?(?: know)?"
    r"(?= (?:what|which|how|where|when|why|who|if|whether|your|the|i) )"
    r"|(?:tell|let|explain(?: to)?) (?:me|us)(?: know)?|explain(?= how)"
    r"|(?:i|we) (?:would like|want|need|wanted|would love) to (?:know|ask|find out|understand)"
    r"|(?:i|we) (?:am|are|was|were) (?:just )?(?:wondering|curious)"
    r"|(?:do|would) you (?:happen to )?know|i have a (?:quick )?question(?: about)?)(?: (?:if|whether))? )+"
)
_ENGLISH_TAIL = re.compile(
    r"(?: (?:please|thanks|thank you|thx|cheers|many thanks|thanks in advance|thank you very much|guys|mate))+$"
)
_CHINESE_LEAD = re.compile(
    r"(?:你好|您好|嗨|哈[喽啰]|亲+|在吗|在么|(?:请问|请教|咨询|想问|问|打听|打扰|麻烦问)(?:一?下)?(?:您|你|了)?|不好意思|麻烦(?:您|你)"
    r"|我?想(?:问|知道|了解|咨询)(?:一?下)?|(?:能不能|可不可以|能|可以|请|麻烦)?告诉我(?:一?下)?"
    r"|那个|那么|哎|嗯|喂| )+"
)
_CHINESE_TAIL = re.compile(r"(?:谢谢(?:你|您|啦|了|大家)?|多谢|感谢|拜托了?|呀|啊|呢|哦|噢|啦|哈|哟| )+$")
_CHINESE_ASKS = re.compile(r"(?<![什怎这那多要])么$|不$|(?<!干)嘛$")


_TWICE = re.compile(
    r"[^?？.!。！]{8,}[?？].*[^?？]{8,}[?？]"
    r"|\band (?:also |then )?(?:how|what|when|where|why|who|which|do|does|can|could|is|are|will|should|if so)\b"
    r"|[^，,。]{4,}(?:还有|另外|以及|并且|而且|同时|如果可以|如果能)"
    r"|[\u3400-\u9fff]{4,}[?？].*[\u3400-\u9fff]{4,}[?？]",
    re.IGNORECASE,
)


def asks_twice(text: str) -> bool:
    """Whether the text asks more than one thing: an answer to the one would leave the other open."""
    return _TWICE.search(text) is not None


def normal(text: str, language: str) -> str:
    """Equal for texts that differ in case, width, variants, punctuation, spacing, contractions and courtesies.

    About 30 µs. Two texts with one normal form are the same question word for word.
    """
    wide = unicodedata.normalize("NFKC", text)
    plain = (wide if wide.isupper() else _AMERICA.sub("usa", wide)).casefold().translate(_ONE_FORM)
    plain = _MINUS.sub("minus ", _THOUSANDS.sub("", plain))
    if language == "en":
        for pattern, words in _CONTRACTIONS:
            plain = pattern.sub(words, plain)
        plain = _HYPHEN.sub(" ", plain)
    plain = _SPACES.sub(" ", _STOP.sub(" ", _PUNCTUATION.sub(" ", plain))).strip()
    return _without_courtesies(plain, language) or plain


def _without_courtesies(plain: str, language: str) -> str:
    if language == "zh":
        core = _between(_CHINESE_LEAD, _BESIDE_CHINESE.sub("", plain), _CHINESE_TAIL)
        return _CHINESE_ASKS.sub("吗", core)
    return _between(_ENGLISH_LEAD, plain, _ENGLISH_TAIL)


def _between(lead: re.Pattern[str], plain: str, tail: re.Pattern[str]) -> str:
    found = lead.match(plain)
    return tail.sub("", plain[found.end() :] if found else plain)
