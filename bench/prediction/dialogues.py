"""CrossWOZ (Chinese) and SGD (English) as moves. They are read where they lie and never copied."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apps.engine.dialogue import Act, Move

Dialogue = Sequence[Move]

# The most important first: what a message with several acts is about.
CROSSWOZ_ACTS = ("Request", "Select", "Inform", "General", "none")
SGD_ACTS = (
    *("REQUEST", "INFORM_INTENT", "REQUEST_ALTS", "AFFIRM_INTENT", "SELECT", "NEGATE", "AFFIRM"),
    *("NEGATE_INTENT", "INFORM", "GOODBYE", "THANK_YOU"),
)
CROSSWOZ_TOPICS = ("餐馆", "酒店", "景点", "地铁", "出租")
# SGD names an intent only; all of these have one service, but films are found to watch out or at home.
FILMS = "FindMovies"

SEED = 20
HELD_OUT = 0.2
LEARNED = 0.7  # of the rest


@dataclass(frozen=True, slots=True)
class Corpus:
    """Dialogues of one source, split by dialogue. `held_out` is looked at once, when nothing changes any more."""

    name: str
    learned: tuple[Dialogue, ...]
    tried: tuple[Dialogue, ...]
    held_out: tuple[Dialogue, ...]
    importance: tuple[str, ...]

    def principal(self, request: Sequence[Act]) -> Act:
        """The one act a message is about."""
        return min(request, key=lambda act: (self._rank(act[0]), act))

    def _rank(self, kind: str) -> int:
        return self.importance.index(kind) if kind in self.importance else len(self.importance)


def corpora(folder: Path) -> Iterator[Corpus]:
    """Both. Raises `FileNotFoundError` with the place where one was looked for."""
    crosswoz = [_crosswoz(one) for one in _lines(folder / "crosswoz" / "val.jsonl.gz")]
    yield _split("CrossWOZ", crosswoz, CROSSWOZ_ACTS)
    stored = list(_lines(folder / "sgd" / "dev.jsonl.gz"))
    services = _services(stored)
    yield _split("SGD", [_sgd(one, services) for one in stored], SGD_ACTS)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def _split(name: str, dialogues: list[Dialogue], importance: tuple[str, ...]) -> Corpus:
    random.Random(SEED).shuffle(dialogues)
    first = int(len(dialogues) * HELD_OUT)
    second = first + int((len(dialogues) - first) * LEARNED)
    learned, tried = dialogues[first:second], dialogues[second:]
    return Corpus(name, tuple(learned), tuple(tried), tuple(dialogues[:first]), importance)


def _crosswoz(stored: dict[str, Any]) -> Dialogue:
    return [_crosswoz_move(role == "usr", triples) for role, _, triples in stored["turns"]]


def _crosswoz_move(by_customer: bool, triples: list[tuple[str, str, str]]) -> Move:
    acts = {(kind, "" if kind == "General" else domain) for kind, domain, _ in triples} or {("none", "")}
    return Move(
        by_customer=by_customer,
        acts=tuple(sorted(acts, key=lambda act: (CROSSWOZ_ACTS.index(act[0]) if by_customer else 0, act))),
        details=frozenset(f"{kind} {slot}" for kind, _, slot in triples if kind != "General"),
        named=frozenset(topic for topic in CROSSWOZ_TOPICS for _, _, slot in triples if topic in slot),
    )


def _services(stored: list[dict[str, Any]]) -> dict[str, set[str]]:
    """By intent: the services of all dialogues in which it is active, as far as they agree."""
    found: dict[str, set[str]] = {}
    for dialogue in stored:
        families = _families(dialogue)
        for _, _, intents, _ in dialogue["turns"]:
            for intent in intents:
                found[intent] = found.get(intent, families) & families
    return {**found, FILMS: {"Movies", "Media"}}


def _families(dialogue: dict[str, Any]) -> set[str]:
    return {service.rpartition("_")[0] for service in dialogue["services"]}


def _sgd(stored: dict[str, Any], services: dict[str, set[str]]) -> Dialogue:
    moves, before = [], []
    families = _families(stored)
    for role, _, intents, kinds in stored["turns"]:
        if role == "S":
            moves.append(Move(by_customer=False, acts=tuple((kind, "") for kind in kinds)))
            continue
        # With two active intents the message is about the one that has just become active.
        active = next((intent for intent in intents if intent not in before), intents[0])
        topic = "" if active == "NONE" else min(services[active] & families)
        ordered = sorted(kinds, key=SGD_ACTS.index)
        moves.append(Move(True, tuple((kind, topic) for kind in ordered), details=frozenset(intents)))
        before = intents
    return moves
