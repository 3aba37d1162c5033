"""The table, the figures behind it, and time to first token by turn as a picture."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from bench.turn.clients import Timing
from tests.fakes.upstream.ledger import Seen

COLOURS = ("#b45309", "#6b7280", "#2f5bea")


@dataclass(slots=True)
class Arm:
    """What one path did. `turns` holds, for each conversation, its timings in order."""

    name: str
    turns: list[list[Timing]] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    connections: int = 0


class Spread(msgspec.Struct, frozen=True):
    """Milliseconds."""

    p50: float = 0.0
    p95: float = 0.0
    p99: float = 0.0
    mean: float = 0.0


class Figures(msgspec.Struct, frozen=True):
    path: str
    turns: int
    ttft: Spread  # question sent to first text seen
    whole: Spread  # question sent to last text seen
    before_model: Spread  # question sent to request at the model
    after_first_token: Spread  # the model's first token to first text seen
    connections_per_turn: float
    cached_share: float  # of the prompt's tokens, as the model reports
    bytes_per_answer: int
    ttft_by_turn: tuple[float, ...]


def write(folder: Path, profile: str, arms: Sequence[Arm]) -> None:
    """`turn-<profile>.md`, `.json` and `.svg` in the folder; the table goes to standard output as well."""
    figures = [_figures(arm) for arm in arms]
    table = _table(profile, figures)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"turn-{profile}.md").write_text(table, encoding="utf-8")
    (folder / f"turn-{profile}.json").write_bytes(msgspec.json.format(msgspec.json.encode(figures), indent=1))
    (folder / f"turn-{profile}.svg").write_text(_picture(figures), encoding="utf-8")
    sys.stdout.write(table)


def _figures(arm: Arm) -> Figures:
    timings = [timing for turns in arm.turns for timing in turns]
    before, after = _overhead(arm)
    return Figures(
        path=arm.name,
        turns=len(timings),
        ttft=_spread([timing.first_s - timing.asked_s for timing in timings]),
        whole=_spread([timing.last_s - timing.asked_s for timing in timings]),
        before_model=_spread(before),
        after_first_token=_spread(after),
        connections_per_turn=arm.connections / len(timings),
        cached_share=sum(one.cached_tokens for one in arm.seen)
        / max(1, sum(one.prompt_tokens for one in arm.seen)),
        bytes_per_answer=round(statistics.mean(timing.bytes_read for timing in timings)),
        ttft_by_turn=tuple(
            1_000 * statistics.median(turns[n].first_s - turns[n].asked_s for turns in arm.turns)
            for n in range(len(arm.turns[0]))
        ),
    )


def _overhead(arm: Arm) -> tuple[list[float], list[float]]:
    """Seconds from a question's sending to its request at the model, and from the model's first token to its text.

    A request belongs to the earliest question that was open when it arrived.
    """
    before, after = [], []
    waiting = sorted(arm.seen, key=lambda one: one.received_s)
    for timing in sorted((t for turns in arm.turns for t in turns), key=lambda t: t.asked_s):
        found = next((one for one in waiting if timing.asked_s <= one.received_s <= timing.first_s), None)
        if found is not None:
            waiting.remove(found)
            before.append(found.received_s - timing.asked_s)
            after.append(timing.first_s - found.first_token_s)
    return before, after


def _spread(seconds: Sequence[float]) -> Spread:
    if not seconds:
        return Spread()
    ordered = sorted(1_000 * value for value in seconds)
    return Spread(
        p50=statistics.median(ordered),
        p95=ordered[int(len(ordered) * 0.95)],
        p99=ordered[int(len(ordered) * 0.99)],
        mean=statistics.mean(ordered),
    )


def _table(profile: str, figures: Sequence[Figures]) -> str:
    head = (
        "| path | turns | TTFT P50 / P95 / mean ms | whole answer P50 ms | before the model P50 / P99 ms | "
        "after its first token P50 ms | connections a turn | prompt found cached | bytes an answer |\n"
        "|---|---|---|---|---|---|---|---|---|"
    )
    rows = [
        f"| {f.path} | {f.turns} | {f.ttft.p50:.0f} / {f.ttft.p95:.0f} / {f.ttft.mean:.0f} | {f.whole.p50:.0f} "
        f"| {f.before_model.p50:.1f} / {f.before_model.p99:.1f} | {f.after_first_token.p50:.1f} "
        f"| {f.connections_per_turn:.2f} | {f.cached_share:.0%} | {f.bytes_per_answer} |"
        for f in figures
    ]
    return f"Profile *{profile}*, the paths interleaved in one run.\n\n" + "\n".join([head, *rows]) + "\n"


def _picture(figures: Sequence[Figures]) -> str:
    """Median time to first token by turn, one line a path."""
    top = 1.1 * max(value for figure in figures for value in figure.ttft_by_turn)
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 300" font-family="system-ui" font-size="12">'
    ]
    for share in (0.25, 0.5, 0.75, 1.0):
        y = 260 - 230 * share
        parts.append(f'<path d="M60 {y:.0f}H620" stroke="#e5e7eb"/>')
        parts.append(f'<text x="4" y="{y + 4:.0f}">{top * share:.0f} ms</text>')
    for index, figure in enumerate(figures):
        step = 560 / max(len(figure.ttft_by_turn) - 1, 1)
        points = " ".join(
            f"{60 + n * step:.1f},{260 - 230 * value / top:.1f}"
            for n, value in enumerate(figure.ttft_by_turn)
        )
        colour = COLOURS[index % len(COLOURS)]
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<text x="{60 + 180 * index}" y="288" fill="{colour}">{figure.path}</text>')
    return "\n".join([*parts, "</svg>"])
