"""The tables, the figures behind them, and three pictures."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bench.turn.arms import CROWD, CROWD_TOKENS_PER_S
from bench.turn.figures import Figures, change, window

COLOURS = ("#b45309", "#6b7280", "#2f5bea")
_LATE_TURNS = (2, 50, 100, 200)


class Results(msgspec.Struct, frozen=True):
    """One run on one upstream profile."""

    profile: str
    rtt_ms: float | None
    comparison: tuple[Figures, ...]
    overhead: tuple[Figures, ...] = ()
    ablation: tuple[Figures, ...] = ()
    mix: tuple[Figures, ...] = ()
    long: tuple[Figures, ...] = ()


def write(folder: Path, results: Results) -> None:
    """`turn-<profile>.md`, `.json` and pictures in the folder; the tables go to standard output as well."""
    name = f"turn-{results.profile}" + (f"-{results.rtt_ms:g}ms" if results.rtt_ms is not None else "")
    text = _text(results)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.md").write_text(text, encoding="utf-8")
    (folder / f"{name}.json").write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=1))
    (folder / f"{name}-by-turn.svg").write_text(_lines(results.long or results.comparison), encoding="utf-8")
    (folder / f"{name}-waterfall.svg").write_text(_waterfall(results.comparison), encoding="utf-8")
    if results.ablation:
        (folder / f"{name}-ablation.svg").write_text(_bars(results.ablation), encoding="utf-8")
    sys.stdout.write(text)


def _text(results: Results) -> str:
    parts = [
        f"Profile *{results.profile}*, the paths interleaved in one run.",
        _table(results.comparison),
        _headlines(results.comparison),
    ]
    if results.overhead:
        parts += [
            "Overhead: question sent to request at the model, its search apart, and the model's first token to the "
            "first text seen, with a model server that adds no time of its own, while "
            f"{CROWD} other conversations of the same path are answered by another model server at "
            f"{CROWD_TOKENS_PER_S:.0f} tokens a second each.",
            _overhead(results.overhead),
        ]
    if results.ablation:
        parts += [
            "One mechanism left out at a time, each against the whole product of the same run.",
            _ablation(results.ablation),
        ]
    if results.mix:
        parts += ["The service mix: 30 % of the questions are frequent ones.", _mix(results.mix)]
    if results.long:
        parts += [_late(results.long[0])]
    return "\n\n".join(parts) + "\n"


def _table(figures: Sequence[Figures]) -> str:
    rows = [
        "| path | turns | TTFT P50 / P95 / mean ms | whole answer P50 ms | retrieval P50 ms "
        "| connections a turn | prompt found cached | bytes a frame | CPU ms an answer |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    rows += [
        f"| {f.path} | {f.turns} | {f.ttft.p50:.0f} / {f.ttft.p95:.0f} / {f.ttft.mean:.0f} | {f.whole.p50:.0f} "
        f"| {f.retrieval.p50:.1f} | {f.connections_per_turn:.2f} | {f.cached_share:.0%} "
        f"| {f.bytes_per_frame:.0f} | {f.cpu_ms_per_answer:.1f} |"
        for f in figures
    ]
    return "\n".join(rows)


def _headlines(figures: Sequence[Figures]) -> str:
    by_name = {figure.path[0]: figure for figure in figures}
    ours = by_name["c"]
    lines = []
    for name in ("a", "b"):
        if (other := by_name.get(name)) is not None:
            lines.append(
                f"- against {other.path}: TTFT {change(ours.ttft.p50, other.ttft.p50)}, whole answer "
                f"{change(ours.whole.p50, other.whole.p50)}, "
                f"server CPU {change(ours.cpu_ms_per_answer, other.cpu_ms_per_answer)}"
            )
    lines.append(
        f"- bytes a token frame against compact JSON of the same frame: "
        f"{change(ours.bytes_per_frame, ours.json_bytes_per_frame)}"
    )
    return "\n".join(lines)


def _overhead(figures: Sequence[Figures]) -> str:
    """On the model server that adds no time of its own, so that only ours is left."""
    by_name = {figure.path[0]: figure for figure in figures}
    ours = by_name["c"].overhead
    rows = ["| path | overhead P50 / P95 / P99 ms | c against it |", "|---|---|---|"]
    rows += [
        f"| {f.path} | {f.overhead.p50:.1f} / {f.overhead.p95:.1f} / {f.overhead.p99:.1f} "
        f"| {'' if f.path[0] == 'c' else change(ours.p50, f.overhead.p50)} |"
        for f in figures
    ]
    return "\n".join(rows)


def _ablation(figures: Sequence[Figures]) -> str:
    whole = figures[0]
    rows = ["| arm | TTFT P50 ms | change | overhead P50 ms | prompt found cached |", "|---|---|---|---|---|"]
    rows += [
        f"| {f.path} | {f.ttft.p50:.0f} | {'' if f is whole else change(f.ttft.p50, whole.ttft.p50)} "
        f"| {f.overhead.p50 + f.retrieval.p50:.1f} | {f.cached_share:.0%} |"
        for f in figures
    ]
    return "\n".join(rows)


def _mix(figures: Sequence[Figures]) -> str:
    rows = [
        "| path | questions | asked the model | first text mean / P95 ms | whole answer mean ms |",
        "|---|---|---|---|---|",
    ]
    rows += [
        f"| {f.path} | {f.turns} | {f.asked_the_model} | {f.ttft.mean:.0f} / {f.ttft.p95:.0f} | {f.whole.mean:.0f} |"
        for f in figures
    ]
    return "\n".join(rows)


def _late(figures: Figures) -> str:
    values = figures.ttft_by_turn
    turns = [turn for turn in _LATE_TURNS if turn <= len(values)]
    shown = ", ".join(f"turn {turn}: {window(values, turn):.0f} ms" for turn in turns)
    against = change(window(values, 50), window(values, 2)) if len(values) >= 50 else "–"
    return f"TTFT by turn (medians of five neighbours): {shown}; turn 50 against turn 2: {against}."


def _lines(figures: Sequence[Figures]) -> str:
    """Median time to first token by turn, one line a path."""
    top = 1.1 * max(value for figure in figures for value in figure.ttft_by_turn)
    parts = [_open(640, 300)]
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


def _waterfall(figures: Sequence[Figures]) -> str:
    """Medians of what a turn spends before the model, on its search, at the model, and on the way to the screen."""
    parts_of = [(f.before_model.p50, f.retrieval.p50, f.model.p50, f.after_first_token.p50) for f in figures]
    scale = 440 / max(sum(parts) for parts in parts_of)
    colours = ("#b45309", "#d97706", "#9ca3af", "#2f5bea")
    names = ("before the model", "search", "model's first token", "to the screen")
    drawn = [_open(640, 60 + 44 * len(figures))]
    for row, (figure, parts) in enumerate(zip(figures, parts_of, strict=True)):
        x, y = 120.0, 16 + 44 * row
        drawn.append(f'<text x="4" y="{y + 18}">{figure.path}</text>')
        for width, colour in zip(parts, colours, strict=True):
            drawn.append(
                f'<rect x="{x:.1f}" y="{y}" width="{max(width * scale, 0.5):.1f}" height="26" fill="{colour}"/>'
            )
            x += width * scale
        drawn.append(f'<text x="{x + 6:.0f}" y="{y + 18}">{sum(parts):.0f} ms</text>')
    for index, (name, colour) in enumerate(zip(names, colours, strict=True)):
        drawn.append(
            f'<text x="{4 + 150 * index}" y="{48 + 44 * len(figures)}" fill="{colour}">■ {name}</text>'
        )
    return "\n".join([*drawn, "</svg>"])


def _bars(figures: Sequence[Figures]) -> str:
    """Median time to first token of the whole product, and without each mechanism."""
    scale = 360 / max(figure.ttft.p50 for figure in figures)
    drawn = [_open(640, 20 + 30 * len(figures))]
    for row, figure in enumerate(figures):
        y = 10 + 30 * row
        width = figure.ttft.p50 * scale
        drawn.append(f'<text x="4" y="{y + 15}">{figure.path}</text>')
        drawn.append(
            f'<rect x="210" y="{y}" width="{width:.1f}" height="20" fill="{COLOURS[2 if row == 0 else 1]}"/>'
        )
        drawn.append(f'<text x="{216 + width:.0f}" y="{y + 15}">{figure.ttft.p50:.0f} ms</text>')
    return "\n".join([*drawn, "</svg>"])


def _open(width: int, height: int) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="system-ui" '
        'font-size="12" fill="#374151">'
    )
