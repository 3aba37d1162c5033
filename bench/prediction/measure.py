"""Hits of the predictor and of n-grams on the same messages: all of the customer's but the first of a dialogue."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from apps.engine.dialogue import History, steps
from apps.engine.prediction import Look, Predictor
from apps.engine.prediction_views import Views, views
from apps.engine.preparing import Record
from bench.prediction.dialogues import Dialogue
from bench.prediction.ngrams import FORMS, USUAL, Form, Label, NGrams, Reading, whole
from bench.prediction.report import Point, Replay, Row, Variant

CURVE = (25, 50, 100, 200, 400, 800)
TOP = 3
RESAMPLES = 2_000

# For each message: labels, likeliest first, and what came.
Guesser = Callable[[Dialogue], Iterator[tuple[Sequence[Label], Label]]]
Hits = list[tuple[int, int, int]]  # by dialogue: messages, right at rank 1, right in the top 3


def best_form(reading: Reading, learned: Sequence[Dialogue], tried: Sequence[Dialogue]) -> Form:
    """The n-gram with the most hits in the top 3."""

    def top_3(form: Form) -> float:
        return _shares(_hits(NGrams(form, reading, learned).ranked, tried))[1]

    return max(FORMS, key=top_3)


def learned_from(dialogues: Iterable[Dialogue], look: Look = views, *, adaptive: bool = True) -> Predictor:
    """One pass, conversation by conversation, as the product learns."""
    predictor = Predictor(look, adaptive=adaptive)
    for dialogue in dialogues:
        predictor.learn(dialogue)
    return predictor


def compared(
    label: str,
    best: Form,
    reading: Reading,
    predictor: Predictor,
    learned: Sequence[Dialogue],
    tried: Sequence[Dialogue],
) -> list[Row]:
    """Beside the usual trigram and the best n-gram, on the same messages, with the 95 % interval over dialogues."""
    ours = _hits(_guesser(predictor, reading), tried)
    rows = []
    for form in dict.fromkeys((USUAL, best)):
        base = _hits(NGrams(form, reading, learned).ranked, tried)
        rows.append(
            Row(
                reading=label,
                form=str(form),
                messages=sum(hit[0] for hit in base),
                base=_shares(base),
                ours=_shares(ours),
                interval=_interval(base, ours),
            )
        )
    return rows


def variants(learned: Sequence[Dialogue], tried: Sequence[Dialogue]) -> list[Variant]:
    """What each kind of evidence brings: the same predictor without it."""
    looks: dict[str, tuple[Look, bool]] = {
        "all of it": (views, True),
        "every voter keeps its first weight": (views, False),
        "no relative views": (_without_relative, True),
        "no details and no named topics": (_without_details, True),
        "last acts only": (_acts_only, True),
    }
    return [
        Variant(label, _shares(_hits(_guesser(learned_from(learned, look, adaptive=adaptive), whole), tried)))
        for label, (look, adaptive) in looks.items()
    ]


def curve(form: Form, learned: Sequence[Dialogue], tried: Sequence[Dialogue]) -> list[Point]:
    """Top 3 by the number of dialogues learned from; the last point is all there are."""
    points, predictor, done = [], Predictor(), 0
    for count in [*(size for size in CURVE if size < len(learned)), len(learned)]:
        for dialogue in learned[done:count]:
            predictor.learn(dialogue)
        done = count
        base = _shares(_hits(NGrams(form, whole, learned[:count]).ranked, tried))[1]
        points.append(Point(count, base, _shares(_hits(_guesser(predictor, whole), tried))[1]))
    return points


def promised(predictor: Predictor, tried: Iterable[Dialogue]) -> float:
    """The share of hits in the top 3 that its own probabilities promise: how honest they are."""
    sums = [
        sum(prediction.probability for prediction in predictor.predict(history, TOP))
        for dialogue in tried
        for history, _ in steps(dialogue)
    ]
    return sum(sums) / len(sums)


def replayed(predictor: Predictor, tried: Iterable[Dialogue]) -> Replay:
    """Everything likely enough is prepared for, as if the customer were always quiet for long."""
    record, messages, prepared, useful = Record(), 0, 0, 0
    for dialogue in tried:
        for history, request in steps(dialogue):
            likely = {guess.request: guess.probability for guess in predictor.predict(history, TOP)}
            chosen = record.chosen(likely)
            prepared += len(chosen)
            useful += record.settle(chosen, {request})
            messages += 1
    return Replay(messages, prepared, useful)


def _guesser(predictor: Predictor, reading: Reading) -> Guesser:
    def guesses(dialogue: Dialogue) -> Iterator[tuple[list[Label], Label]]:
        for history, request in steps(dialogue):
            likely: dict[Label, float] = defaultdict(float)
            for prediction in predictor.predict(history, limit=1_000):
                likely[reading(prediction.request)] += prediction.probability
            yield sorted(likely, key=lambda label: -likely[label]), reading(request)

    return guesses


def _hits(guesser: Guesser, tried: Iterable[Dialogue]) -> Hits:
    counted = []
    for dialogue in tried:
        results = [(ranked[0] == right, right in ranked[:TOP]) for ranked, right in guesser(dialogue)]
        counted.append((len(results), sum(first for first, _ in results), sum(top for _, top in results)))
    return counted


def _shares(hits: Hits) -> tuple[float, float]:
    messages = sum(hit[0] for hit in hits)
    return sum(hit[1] for hit in hits) / messages, sum(hit[2] for hit in hits) / messages


def _interval(base: Hits, ours: Hits) -> tuple[float, float]:
    """Bootstrap by dialogue of the difference in the top 3."""
    draws = random.Random(1)
    pairs = [(mine[0], mine[2] - theirs[2]) for theirs, mine in zip(base, ours, strict=True)]
    differences = []
    for _ in range(RESAMPLES):
        drawn = draws.choices(pairs, k=len(pairs))
        differences.append(sum(gained for _, gained in drawn) / sum(messages for messages, _ in drawn))
    differences.sort()
    return differences[RESAMPLES // 40], differences[-RESAMPLES // 40]


def _without_relative(history: History) -> Views:
    return replace(views(history), relative=())


def _without_details(history: History) -> Views:
    seen = views(history)
    return Views(
        exact=tuple(view for view in seen.exact if view[0] not in DETAILED),
        relative=tuple(view for view in seen.relative if view[0] not in DETAILED),
        signs=tuple(group for group in seen.signs if group[0] == "#times"),
    )


def _acts_only(history: History) -> Views:
    return Views(tuple(view for view in views(history).exact if view[0] in ACTS_ONLY), (), ())


ACTS_ONLY = frozenset({"reply", "asked", "asked 3", "moves 3"})
DETAILED = frozenset(
    {"reply details", "details", "on topic", "told", "named", "just named", "named, new"}
    | {"~told", "~on topic", "~named", "~named, told"}
)
