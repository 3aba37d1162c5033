"""What the predictor costs: time for each prediction and each message learned, memory and stored bytes."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Sequence

from apps.engine.dialogue import steps
from apps.engine.prediction import Predictor
from bench.prediction.dialogues import Dialogue
from bench.prediction.report import Cost


def cost_of(predictor: Predictor, learned: Sequence[Dialogue], tried: Sequence[Dialogue]) -> Cost:
    """`predictor` has learned from `learned`; times are means over all of the customer's messages."""
    stored = predictor.dump()
    return Cost(
        requests=predictor.requests,
        tables=predictor.size,
        predict_us=_predict_us(predictor, tried),
        learn_us=_learn_us(learned),
        resident_bytes=_resident_bytes(stored),
        stored_bytes=len(stored),
    )


def _predict_us(predictor: Predictor, tried: Sequence[Dialogue]) -> float:
    spent, messages = 0.0, 0
    for dialogue in tried:
        for history, _ in steps(dialogue):
            begun = time.perf_counter()
            predictor.predict(history)
            spent += time.perf_counter() - begun
            messages += 1
    return 1e6 * spent / messages


def _learn_us(learned: Sequence[Dialogue]) -> float:
    predictor = Predictor()
    begun = time.perf_counter()
    for dialogue in learned:
        predictor.learn(dialogue)
    messages = sum(sum(move.by_customer for move in dialogue) - 1 for dialogue in learned)
    return 1e6 * (time.perf_counter() - begun) / messages


def _resident_bytes(stored: bytes) -> int:
    """Of a predictor as a process loads it."""
    tracemalloc.start()
    try:
        loaded = Predictor.load(stored)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return held if loaded.size else 0
