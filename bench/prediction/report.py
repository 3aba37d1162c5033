"""The tables, the figures behind them, and the learning curve as a picture."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

BASE, OURS = "#6b7280", "#2f5bea"

Shares = tuple[float, float]  # right at rank 1, right in the top 3


class Row(msgspec.Struct, frozen=True):
    reading: str
    form: str
    messages: int
    base: Shares
    ours: Shares
    interval: tuple[float, float]  # of the difference in the top 3, 95 %


class Variant(msgspec.Struct, frozen=True):
    without: str
    shares: Shares


class Point(msgspec.Struct, frozen=True):
    dialogues: int
    base: float  # top 3
    ours: float


class Replay(msgspec.Struct, frozen=True):
    """What acting on the predictions would have prepared, and how much of it came."""

    messages: int
    prepared: int
    useful: int


class Cost(msgspec.Struct, frozen=True):
    requests: int  # different ones
    tables: int
    predict_us: float
    learn_us: float  # a message
    resident_bytes: int
    stored_bytes: int


class Figures(msgspec.Struct, frozen=True):
    corpus: str
    dialogues: tuple[int, int]  # learned, tried
    rows: list[Row]
    variants: list[Variant]
    curve: list[Point]
    promised: float  # share of hits in the top 3 by the predictor's own probabilities
    replay: Replay
    cost: Cost


def write(folder: Path, figures: Sequence[Figures]) -> None:
    """`prediction.md`, `.json` and `.svg`; the tables go to standard output as well."""
    text = "\n".join([_rows(figures), *(_corpus(one) for one in figures)])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "prediction.md").write_text(text, encoding="utf-8")
    (folder / "prediction.json").write_bytes(msgspec.json.format(msgspec.json.encode(figures), indent=1))
    (folder / "prediction.svg").write_text(_picture(figures), encoding="utf-8")
    sys.stdout.write(text)


def _rows(figures: Sequence[Figures]) -> str:
    head = (
        "Held-out dialogues. Top 1 / top 3 in per cent; the gain is in points of the top 3, with its 95 % interval "
        "by dialogue. The usual n-gram comes first, then the best of sixteen.\n\n"
        "| | what must be right | messages | n-gram | its hits | ours | gain |\n|---|---|---|---|---|---|---|"
    )
    rows = [
        f"| {one.corpus} | {row.reading} | {row.messages} | {row.form} | {_both(row.base)} | {_both(row.ours)} "
        f"| {_points(row.ours[1] - row.base[1])} ({_points(row.interval[0])} … {_points(row.interval[1])}) |"
        for one in figures
        for row in one.rows
    ]
    return "\n".join([head, *rows]) + "\n"


def _corpus(figures: Figures) -> str:
    (learned, tried), cost, replay = figures.dialogues, figures.cost, figures.replay
    lines = [
        f"\n**{figures.corpus}**: learned from {learned} dialogues, tried on {tried}. Its own probabilities promise "
        f"{figures.promised:.1%} in the top 3. A prediction takes {cost.predict_us:.0f} µs among {cost.requests} "
        f"requests, a message learned {cost.learn_us:.0f} µs; {cost.tables:,} tables, "
        f"{cost.resident_bytes / 1e6:.1f} MB resident, {cost.stored_bytes / 1e6:.1f} MB stored. "
        f"Acting on it prepares {replay.prepared / replay.messages:.2f} things a message, of which "
        f"{replay.useful / replay.prepared:.0%} come; {replay.useful / replay.messages:.0%} of the messages find "
        "theirs prepared.",
        *("", "| all acts with their domain | top 1 / top 3 |", "|---|---|"),
        *(f"| {variant.without} | {_both(variant.shares)} |" for variant in figures.variants),
        *("", "| dialogues learned | best n-gram, top 3 | ours, top 3 | gain |", "|---|---|---|---|"),
        *(
            f"| {p.dialogues} | {p.base:.1%} | {p.ours:.1%} | {_points(p.ours - p.base)} |"
            for p in figures.curve
        ),
    ]
    return "\n".join(lines) + "\n"


def _both(shares: Shares) -> str:
    return f"{100 * shares[0]:.1f} / {100 * shares[1]:.1f}"


def _points(share: float) -> str:
    return f"{100 * share:+.1f}"


def _picture(figures: Sequence[Figures]) -> str:
    """Top 3 by dialogues learned from (a logarithmic axis by its points), one panel a corpus."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {360 * len(figures)} 300" '
        'font-family="system-ui" font-size="12"><rect width="100%" height="100%" fill="#fff"/>'
    ]
    for number, one in enumerate(figures):
        parts += _panel(one, left=360 * number)
    return "\n".join([*parts, "</svg>"])


def _panel(figures: Figures, left: int) -> list[str]:
    lowest, step = 0.3, 290 / (len(figures.curve) - 1)

    def height(share: float) -> float:
        return 250 - 210 * (share - lowest) / (1 - lowest)

    parts = [f'<text x="{left + 50}" y="20" font-weight="600">{figures.corpus}: right in the top 3</text>']
    for percent in (40, 60, 80, 100):
        y = height(percent / 100)
        parts.append(f'<path d="M{left + 45} {y:.0f}H{left + 350}" stroke="#e5e7eb"/>')
        parts.append(f'<text x="{left + 4}" y="{y + 4:.0f}">{percent} %</text>')
    for n, point in enumerate(figures.curve):
        parts.append(
            f'<text x="{left + 50 + n * step:.0f}" y="268" text-anchor="middle">{point.dialogues}</text>'
        )
    lines = (
        ("n-gram", BASE, [p.base for p in figures.curve]),
        ("ours", OURS, [p.ours for p in figures.curve]),
    )
    for index, (label, colour, shares) in enumerate(lines):
        points = " ".join(f"{left + 50 + n * step:.1f},{height(share):.1f}" for n, share in enumerate(shares))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<text x="{left + 50 + 80 * index}" y="290" fill="{colour}">{label}</text>')
    parts.append(f'<text x="{left + 220}" y="290">dialogues learned from</text>')
    return parts
