"""What the timings of an arm come to."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from bench.turn.arms import Arm
from bench.turn.clients import Timing


class Spread(msgspec.Struct, frozen=True):
    """Milliseconds."""

    p50: float = 0.0
    p95: float = 0.0
    p99: float = 0.0
    mean: float = 0.0


class Figures(msgspec.Struct, frozen=True, omit_defaults=True):
    path: str
    turns: int
    ttft: Spread  # question sent to first text seen
    whole: Spread  # question sent to last text seen
    before_model: Spread  # question sent to request at the model, its search apart
    retrieval: Spread
    model: Spread  # request at the model to its first token
    after_first_token: Spread  # the model's first token to first text seen
    overhead: Spread  # before_model and after_first_token of the same turn
    asked_the_model: int  # turns
    connections_per_turn: float
    cached_share: float  # of the prompt's tokens, as the model reports
    bytes_per_frame: float
    json_bytes_per_frame: float
    ttft_by_turn: tuple[float, ...]
    # Of the server's processes, between two conversations' ends included; not told beside a crowd.
    cpu_ms_per_answer: float = 0.0


def figures_of(arm: Arm, searches_ms: Mapping[str, float]) -> Figures:
    """`searches_ms` are the product's own records of its searches, by turn."""
    timings = arm.timings
    parts = _parts(arm, searches_ms)
    frames = sum(timing.frames for timing in timings)
    shortest = min(len(turns) for turns in arm.turns)
    return Figures(
        path=arm.name,
        turns=len(timings),
        ttft=spread(timing.first_s - timing.asked_s for timing in timings),
        whole=spread(timing.last_s - timing.asked_s for timing in timings),
        before_model=spread(part[0] for part in parts),
        retrieval=spread(_search_ms(timing, searches_ms) / 1_000 for timing in timings),
        model=spread(part[1] for part in parts),
        after_first_token=spread(part[2] for part in parts),
        overhead=spread(part[0] + part[2] for part in parts),
        asked_the_model=len(arm.seen),
        connections_per_turn=arm.connections / len(timings),
        cached_share=sum(one.cached_tokens for one in arm.seen)
        / max(1, sum(one.prompt_tokens for one in arm.seen)),
        bytes_per_frame=sum(timing.bytes_read for timing in timings) / frames,
        json_bytes_per_frame=sum(timing.as_json for timing in timings) / frames,
        cpu_ms_per_answer=1_000 * arm.cpu_s / len(timings),
        ttft_by_turn=tuple(
            1_000 * statistics.median(turns[n].first_s - turns[n].asked_s for turns in arm.turns)
            for n in range(shortest)
        ),
    )


def spread(seconds: Iterable[float]) -> Spread:
    """Of seconds, in milliseconds; all zero of none."""
    ordered = sorted(1_000 * value for value in seconds)
    if not ordered:
        return Spread()
    return Spread(
        p50=statistics.median(ordered),
        p95=ordered[int(len(ordered) * 0.95)],
        p99=ordered[int(len(ordered) * 0.99)],
        mean=statistics.mean(ordered),
    )


def _parts(arm: Arm, searches_ms: Mapping[str, float]) -> list[tuple[float, float, float]]:
    """Seconds before the model without the search, at the model, and after its first token, of each turn it saw.

    A request belongs to the earliest question that was open when it arrived.
    """
    parts = []
    waiting = sorted(arm.seen, key=lambda one: one.received_s)
    for timing in sorted(arm.timings, key=lambda one: one.asked_s):
        found = next((one for one in waiting if timing.asked_s <= one.received_s <= timing.first_s), None)
        if found is not None:
            waiting.remove(found)
            search_s = _search_ms(timing, searches_ms) / 1_000
            before = max(0.0, found.received_s - timing.asked_s - search_s)
            parts.append(
                (before, found.first_token_s - found.received_s, timing.first_s - found.first_token_s)
            )
    return parts


def _search_ms(timing: Timing, searches_ms: Mapping[str, float]) -> float:
    return searches_ms.get(timing.turn, 0.0) if timing.turn else timing.retrieval_ms


def change(ours: float, theirs: float) -> str:
    """`−90 %`: how much less ours is."""
    return f"{100 * (ours - theirs) / theirs:+.0f} %".replace("-", "−") if theirs else "–"


def window(values: Sequence[float], turn: int, width: int = 5) -> float:
    """The median of a turn, counted from 1, and its neighbours on both sides."""
    near = values[max(0, turn - 1 - width // 2) : turn + width // 2]
    return statistics.median(near) if near else 0.0
