"""`soak.md` and `soak.json`."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from bench.soak.verdict import Verdict


class Soak(msgspec.Struct, frozen=True):
    """One run. `rest` holds (minutes, figures) of every look with nobody there."""

    minutes: float
    at_once: int
    seed: int
    visits: Mapping[str, int]
    failed: Mapping[str, int]
    verdicts: Sequence[Verdict]
    rest: Sequence[tuple[float, Mapping[str, float]]]
    errors: Sequence[str]  # of the processes' logs, the newest


def write(folder: Path, soak: Soak) -> None:
    """Both files in the folder; the table goes to standard output as well."""
    text = _text(soak)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "soak.md").write_text(text, encoding="utf-8")
    (folder / "soak.json").write_bytes(msgspec.json.format(msgspec.json.encode(soak), indent=1))
    sys.stdout.write(text)


def _text(soak: Soak) -> str:
    leaks = [verdict.figure for verdict in soak.verdicts if verdict.leaks]
    return "\n".join(
        [
            f"{soak.minutes:g} minutes, {soak.at_once} clients side by side, seed {soak.seed}: "
            f"{sum(soak.visits.values())} visits, {sum(soak.failed.values())} of them not as planned.",
            "",
            "| figure | base line | most under load | end | slope a minute | verdict |",
            "|---|---:|---:|---:|---:|---|",
            *(_row(verdict) for verdict in soak.verdicts),
            "",
            f"Leaks: {', '.join(leaks) or 'none'}.",
            "",
            "Visits by way and end:",
            "",
            *(f"- {name}: {count}" for name, count in sorted(soak.visits.items())),
            "",
            "Not as planned:",
            "",
            *(f"- {name}: {count}" for name, count in sorted(soak.failed.items())),
            "",
            "Errors in the logs of the processes:",
            "",
            *(f"```\n{error}```" for error in soak.errors),
            "",
        ]
    )


def _row(verdict: Verdict) -> str:
    said = "**leaks**" if verdict.leaks else "ok"
    numbers = " | ".join(
        f"{value:.10g}" if value == int(value) else f"{value:.1f}" for value in _numbers(verdict)
    )
    return f"| {verdict.figure} | {numbers} | {verdict.slope_per_min:+.3f} | {said} ({verdict.why}) |"


def _numbers(verdict: Verdict) -> tuple[float, float, float]:
    return verdict.base, verdict.most, verdict.end
