"""What a run of many schedules comes to, for people (Markdown) and for programs (JSON)."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.chaos.judge import Verdict
from tests.chaos.schedule import Fault, Schedule


@dataclass(slots=True)
class Report:
    """What one schedule did and what came of it. `recovery_s` is of each client, from the last fault's end to a whole
    state."""

    schedule: Schedule
    verdict: Verdict
    recovery_s: list[float] = field(default_factory=list)
    customers: int = 0
    agents: int = 0
    connections: Counter[str] = field(default_factory=Counter)  # by way
    messages: int = 0
    acknowledged: int = 0
    answers: int = 0
    served: int = 0
    closes: Counter[int] = field(default_factory=Counter)
    owed: list[tuple[str, str]] = field(default_factory=list)  # mails: to whom, and the text
    seconds: float = 0.0

    def __str__(self) -> str:
        ways = ", ".join(f"{count} {way}" for way, count in sorted(self.connections.items()))
        closes = ", ".join(f"{int(code)} × {count}" for code, count in sorted(self.closes.items()))
        lines = [
            str(self.schedule),
            f"{self.messages} said, {self.acknowledged} acknowledged, {self.answers} answers, "
            f"{self.served} taken by agents; lines: {ways}; closes: {closes or 'none'}",
            f"recovery: median {_median(self.recovery_s):.2f} s, worst {max(self.recovery_s, default=0.0):.2f} s; "
            f"{self.seconds:.1f} s in all",
            *(case[:600] for case in self.verdict.cases[:12]),
        ]
        if not self.verdict.good:
            lines.append(f"once more: {self.schedule.again}")
        return "\n".join(lines)


@dataclass(slots=True)
class Post:
    """The mails owed at the end of a run, delivered by a worker that is killed between start and end of its tasks."""

    owed: int = 0
    killed_at_work: int = 0
    repeats: int = 0  # the same Message-ID once more: the receiver drops them
    verdict: Verdict = field(default_factory=Verdict)


@dataclass(slots=True)
class Run:
    reports: list[Report]
    post: Post

    @property
    def failed(self) -> list[int]:
        """The seeds."""
        return [report.schedule.seed for report in self.reports if not report.verdict.good]

    @property
    def good(self) -> bool:
        return not self.failed and self.post.verdict.good

    def injected(self, kinds: Sequence[Fault] = tuple(Fault)) -> dict[str, int]:
        """How often each kind of fault was done, also those that were not."""
        done = Counter(one.fault for report in self.reports for one in report.schedule.injections)
        return {fault.value: done[fault] for fault in kinds} | {
            "kill the worker inside a task": self.post.killed_at_work
        }

    def figures(self) -> dict[str, Any]:
        clients = [seconds for report in self.reports for seconds in report.recovery_s]
        everybody = [max(report.recovery_s, default=0.0) for report in self.reports]
        verdicts = [report.verdict for report in self.reports] + [self.post.verdict]
        lines: Counter[str] = Counter()
        for report in self.reports:
            lines += report.connections
        return {
            "seeds": [report.schedule.seed for report in self.reports],
            "failed": self.failed,
            "injected": self.injected(),
            "customers": sum(report.customers for report in self.reports),
            "agents": sum(report.agents for report in self.reports),
            "lines": dict(lines),
            "messages said": sum(report.messages for report in self.reports),
            "messages acknowledged": sum(report.acknowledged for report in self.reports),
            "answers": sum(report.answers for report in self.reports),
            "mails owed": self.post.owed,
            "mails repeated under the same id": self.post.repeats,
            "lost": sum(len(verdict.lost) for verdict in verdicts),
            "doubled": sum(len(verdict.doubled) for verdict in verdicts),
            "screens that differ or are out of order": sum(len(verdict.disagreeing) for verdict in verdicts),
            "never answered": sum(len(verdict.unanswered) for verdict in verdicts),
            "strange": sum(len(verdict.strange) for verdict in verdicts),
            "recovery of a client, median s": round(_median(clients), 2),
            "recovery of a client, worst s": round(max(clients, default=0.0), 2),
            "recovery of everybody, median s": round(_median(everybody), 2),
            "recovery of everybody, worst s": round(max(everybody, default=0.0), 2),
            "seconds": round(sum(report.seconds for report in self.reports), 1),
        }

    def json(self) -> str:
        return json.dumps(self.figures(), indent=2)

    def markdown(self) -> str:
        figures = self.figures()
        injected = figures.pop("injected")
        seeds = figures.pop("seeds")
        rows = [(name, _shown(value)) for name, value in figures.items()]
        return "\n".join(
            [
                f"Seeds: {', '.join(map(str, seeds))}",
                "",
                *_table(("fault", "injected"), [(name, str(count)) for name, count in injected.items()]),
                "",
                *_table(("figure", "value"), rows),
            ]
        )


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{count} {name}" for name, count in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return str(value)


def _table(head: tuple[str, str], rows: list[tuple[str, str]]) -> list[str]:
    width = max(len(name) for name, _ in (head, *rows))
    return [
        f"| {head[0]:<{width}} | {head[1]} |",
        f"|{'-' * (width + 2)}|---|",
        *(f"| {name:<{width}} | {value} |" for name, value in rows),
    ]


def _median(values: list[float]) -> float:
    return statistics.median(values) if values else 0.0
