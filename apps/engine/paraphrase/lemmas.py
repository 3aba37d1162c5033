"""English words without their endings. Wrong lemmas do no harm where both questions have them. Pure."""

from __future__ import annotations

from apps.engine.paraphrase.meaning import listed

_IRREGULAR = {
    form: lemma
    for lemma, forms in {
        "be": "is are was were been being am",
        "have": "has had having",
        "do": "does did done doing",
        "go": "goes went gone going",
        "get": "got gotten getting gets",
        "send": "sent",
        "buy": "bought",
        "pay": "paid",
        "wear": "wore worn wearing",
        "break": "broke broken",
        "come": "came",
        "take": "took taken",
        "give": "gave given",
        "lose": "lost losing",
        "keep": "kept",
        "sell": "sold",
        "hold": "held",
        "find": "found",
        "say": "said says",
        "tell": "told",
        "bring": "brought",
        "think": "thought",
        "choose": "chose chosen choosing",
        "swell": "swollen swelled",
        "speak": "spoke spoken",
        "know": "knew known",
        "make": "made making",
        "foot": "feet",
        "person": "persons",
        "country": "countries",
        "use": "uses using",
        "dry": "dries dried drying",
        "lie": "lay lain lying",
        "fly": "flew flown flies flying",
        "shut": "shutting",
        "write": "wrote written writing",
        "good": "better",
        "cancel": "cancelled canceled cancelling canceling cancels",
        "can": "could",
        "will": "would",
        "may": "might",
    }.items()
    for form in (lemma, *forms.split())
}
_WHOLE = listed(
    "plane goods minute procedure where there here these those before after because since while else "
    "are possible able available please like more none some people time date late maximum minimum "
    "expensive free done once twice customs fee size name make use whole inside outside same wide large "
    "this is us was yes always thus gas bus plus less unless does as its has his across address express "
    "access process business during thing something anything nothing everything string spring evening "
    "morning bring ring need feed speed seed weed used reddish bed red shed only early july reply "
    "supply family apply fly canvas glass class loss pass boss press dress status bonus virus focus "
    "campus news christmas thanksgiving interest besides sometimes perhaps towards upwards series "
    "species wednesday united embed exceed proceed indeed"
)


def lemma(word: str) -> str:
    """The word without plural, -ing, -ed and a final e. Adverbs stay: an actual card is not actually a card."""
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if word in _WHOLE or len(word) <= 3 or not word.isalpha():
        return word
    word = _without_plural(word)
    if word in _WHOLE:
        return word
    for suffix in ("ing", "ed"):
        stem = word.removesuffix(suffix)
        if stem != word and len(stem) >= 3 and any(letter in "aeiouy" for letter in stem):
            word = stem[:-1] if stem[-1] == stem[-2] and stem[-1] not in "lse" else stem
            break
    return word.removesuffix("e") if len(word) > 4 else word


def _without_plural(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zes")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word
