"""What a digest keeps of real service dialogues: `python -m bench.compression --data DIR [--values DIR]`.

DIR of `--data` holds `sgd/dev.jsonl.gz` and `crosswoz/val.jsonl.gz`, DIR of `--values` the same dialogues as published,
with the values of their slots: `sgd/dialogues_*.json` and `crosswoz/val.json.zip`. Without the values, rare words stand
in for them, of Chinese those in digits or Latin letters. Half of the dialogues set the word lists of
`apps/engine/digest`; the other half only graded them.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import random
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apps.engine.context import Context, Marks
from apps.engine.digest.lines import Line, digest, rendered, utf8_size
from apps.engine.languages import has_han
from apps.engine.types import Speaker

SHORTER_BY = 0.60
RARE_IN = 0.01  # of the dialogues: a word in no more of them stands in for a value
NO_WORDS = {"true", "false", "dontcare", "none", "是", "否", "无", ""}


@dataclass(frozen=True, slots=True)
class Dialogue:
    """Lines, and the values said in each."""

    id: str
    lines: tuple[Line, ...]
    values: tuple[frozenset[str], ...]

    @property
    def held_out(self) -> bool:
        return hashlib.sha256(self.id.encode()).digest()[0] % 2 == 1


@dataclass(frozen=True, slots=True)
class Shortened:
    """A context before and after: the text of both, how many lines were said, and how many no longer stand so."""

    before_bytes: int
    text: str
    said: int
    gone: int


def main() -> None:
    options = _options()
    print("| dialogues | | half | n | bytes | after | shorter | values | found | newest N |")
    print("|---|---|---|--:|--:|--:|--:|--:|--:|--:|")
    for name, dialogues in (
        ("SGD, English", list(_sgd(options.data, options.values))),
        ("CrossWOZ, Chinese", list(_crosswoz(options.data, options.values))),
    ):
        if options.values is None:
            dialogues = _with_rare_words(dialogues)
        for held_out in (False, True):
            half = [dialogue for dialogue in dialogues if dialogue.held_out is held_out]
            label = "held out" if held_out else "tuned on"
            _row(name, "each alone", label, half, alone)
            if options.values is None:
                continue
            _row(name, "joined to 5 kB", label, _joined(half, 5_000), alone)
            _row(name, "joined to the high mark", label, _joined(half, 44_000), by_marks)


def alone(dialogue: Dialogue) -> Shortened:
    """To 40 % of its bytes; a tenth of those for the newest lines as they were said."""
    before = utf8_size(dialogue.lines)
    room = int(before * (1 - SHORTER_BY))
    stays = max(1, _newest(dialogue.lines, room // 10))
    old, recent = dialogue.lines[:-stays], dialogue.lines[-stays:]
    kept = digest(old, max(0, room - utf8_size(recent) - 1))
    return Shortened(before, rendered([*kept, *recent]), len(dialogue.lines), len(old))


def by_marks(dialogue: Dialogue) -> Shortened:
    """As the product does it: `Marks`, as soon as the high one is passed."""
    context, marks = Context(), Marks()
    outgrown, said = None, 0
    while outgrown is None:
        line = dialogue.lines[said]
        context.add(line.place, line.speaker, line.text)
        outgrown, said = context.outgrown(marks), said + 1
    before = utf8_size(dialogue.lines[:said])
    context.shorten(outgrown, outgrown.shortened())
    recent = [Line(one.place, one.speaker, one.text) for one in context.said]
    return Shortened(before, rendered([*context.earlier, *recent]), said, said - len(recent))


def _row(
    name: str, arm: str, label: str, dialogues: Sequence[Dialogue], shorten: Callable[[Dialogue], Shortened]
) -> None:
    before = after = values = found = newest_found = 0
    for dialogue in dialogues:
        shortened = shorten(dialogue)
        size = len(shortened.text.encode())
        before, after = before + shortened.before_bytes, after + size
        told = frozenset[str]().union(*dialogue.values[: shortened.gone])
        lines = dialogue.lines[: shortened.said]
        newest = rendered(lines[-max(1, _newest(lines, size)) :])
        values += len(told)
        found += _count(told, shortened.text)
        newest_found += _count(told, newest)
    print(
        f"| {name} | {arm} | {label} | {len(dialogues)} | {before:,} | {after:,} | {1 - after / before:.1%} "
        f"| {values:,} | {found / values:.2%} | {newest_found / values:.2%} |",
        flush=True,
    )


def _newest(lines: Sequence[Line], room_bytes: int) -> int:
    """How many of the newest lines fit."""
    for count in range(len(lines)):
        if utf8_size(lines[-count - 1 :]) > room_bytes:
            return count
    return len(lines)


def _joined(dialogues: Sequence[Dialogue], at_least_bytes: int) -> list[Dialogue]:
    """Conversations of several dialogues each, longer than that. The last, too short, is left out."""
    shuffled = sorted(dialogues, key=lambda dialogue: dialogue.id)
    random.Random(7).shuffle(shuffled)
    made: list[Dialogue] = []
    texts: list[Line] = []
    values: list[frozenset[str]] = []
    for dialogue in shuffled:
        texts += [Line(len(texts) + at, line.speaker, line.text) for at, line in enumerate(dialogue.lines)]
        values += dialogue.values
        if utf8_size(texts) > at_least_bytes:
            made.append(Dialogue(dialogue.id, tuple(texts), tuple(values)))
            texts, values = [], []
    return made


def _plain(text: str) -> str:
    """Without case, punctuation between words, and a leading article."""
    return re.sub(r"^(the|an?) ", "", re.sub(r'[\s,;:()"]+', " ", text.lower()).strip(" .,!?"))


def _count(values: frozenset[str], text: str) -> int:
    plain = _plain(text)
    return sum(_found(value, plain) for value in values)


def _found(value: str, plain: str) -> bool:
    """Word for word: "2" is not found in "12"."""
    before = r"(?<![a-z0-9])" if value[0].isascii() and value[0].isalnum() else ""
    behind = r"(?![a-z0-9])" if value[-1].isascii() and value[-1].isalnum() else ""
    return re.search(before + re.escape(value) + behind, plain) is not None


def _said(values: Iterator[str], text: str) -> frozenset[str]:
    """The values that are said in the text in so many words; others (`True`) cannot be looked for."""
    plain, told = _plain(text), {_plain(value) for value in values if value.lower() not in NO_WORDS}
    return frozenset(value for value in told if value and _found(value, plain))


def _with_rare_words(dialogues: Sequence[Dialogue]) -> list[Dialogue]:
    words = [[_words(line.text) for line in dialogue.lines] for dialogue in dialogues]
    seen = Counter(word for lines in words for word in frozenset[str]().union(*lines))
    rare = {word for word, count in seen.items() if count <= RARE_IN * len(dialogues)}
    return [
        Dialogue(dialogue.id, dialogue.lines, tuple(frozenset(line & rare) for line in lines))
        for dialogue, lines in zip(dialogues, words, strict=True)
    ]


def _words(text: str) -> frozenset[str]:
    plain = _plain(text)
    return frozenset(re.findall(r"[a-z0-9][a-z0-9.-]*" if has_han(plain) else r"[\w'#$-]+", plain))


def _sgd(data: Path, published: Path | None) -> Iterator[Dialogue]:
    annotated: dict[str, Any] = {}
    for file in sorted(published.glob("sgd/dialogues_*.json")) if published else ():
        annotated |= {row["dialogue_id"]: row for row in json.loads(file.read_text(encoding="utf-8"))}
    for row in _rows(data / "sgd/dev.jsonl.gz"):
        texts = [turn[1] for turn in row["turns"]]
        if published:
            turns = annotated[row["id"]]["turns"]
            values = [_said(_slot_values(turn), text) for turn, text in zip(turns, texts, strict=True)]
        else:
            values = [frozenset() for _ in texts]
        yield Dialogue(row["id"], _lines(row["turns"]), tuple(values))


def _slot_values(turn: Any) -> Iterator[str]:
    for frame in turn["frames"]:
        for slot in frame["slots"]:
            if "start" in slot:
                yield turn["utterance"][slot["start"] : slot["exclusive_end"]]
        for action in frame["actions"]:
            if action["slot"] not in {"intent", ""}:
                yield from action["values"]


def _crosswoz(data: Path, published: Path | None) -> Iterator[Dialogue]:
    annotated: dict[str, Any] = {}
    if published:
        with zipfile.ZipFile(published / "crosswoz/val.json.zip") as archive:
            annotated = json.loads(archive.read(archive.namelist()[0]))
    for row in _rows(data / "crosswoz/val.jsonl.gz"):
        texts = [turn[1] for turn in row["turns"]]
        acts = [message["dialog_act"] for message in annotated[row["id"]]["messages"]] if published else []
        values = [
            _said((act[3] for act in told if act[0] not in {"General", "Request"}), text)
            for told, text in zip(acts, texts, strict=bool(published))
        ]
        yield Dialogue(row["id"], _lines(row["turns"]), tuple(values or (frozenset() for _ in texts)))


def _lines(turns: Sequence[Any]) -> tuple[Line, ...]:
    asked = {"U", "usr"}
    return tuple(
        Line(at, Speaker.CUSTOMER if turn[0] in asked else Speaker.ASSISTANT, turn[1])
        for at, turn in enumerate(turns)
    )


def _rows(file: Path) -> Iterator[Any]:
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.compression", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the dialogues")
    parser.add_argument("--values", type=Path, help="folder of the dialogues as published, with their values")
    return parser.parse_args()


if __name__ == "__main__":
    main()
