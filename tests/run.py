"""`make test`: every stage from nothing, all failures shown, a summary at the end.

First the stages of one process each, two at a time, each one's output when it has ended. Then those that keep the
machine busy by themselves, with workers of pytest-xdist where `workers` says so; a test file stays in one worker.
`python -m tests.run [STAGE …]` runs a part. Stages that need PostgreSQL get a throw-away one.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field

from chatsvc.environment import BASE_DIR
from tests.browser.chromium import ensure_chromium
from tests.services import postgres_server

BIN = BASE_DIR / ".venv" / "bin"
_PYTEST_SUMMARY = re.compile(r"^=*\s*((?:\d+ \w+(?:, )?)+) in [\d.]+s")
_PYTEST_COUNT = re.compile(r"(\d+) (passed|failed|errors?|skipped)\b")
_NODE_SUMMARY = re.compile(r"^# (pass|fail|skipped) (\d+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Stage:
    """One line of the summary. Its commands run in order, all of them; `check` is one passed or failed test."""

    name: str
    commands: tuple[tuple[str, ...], ...]
    alone: bool = False
    postgres: bool = False
    before: Callable[[], None] | None = None


@dataclass(slots=True)
class Outcome:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)


def python(*words: str) -> tuple[str, ...]:
    return (sys.executable, "-m", *words)


def pytest(folder: str, *, workers: int = 0) -> tuple[str, ...]:
    spread = ("-n", str(workers), "--dist", "loadfile", "--no-loadscope-reorder") if workers else ()
    quiet = ("-q", "--tb=short", "--show-capture=log", "--durations=5", "-p", "no:cacheprovider")
    return python("pytest", folder, *spread, *quiet)


# Twenty in about five minutes; `python -m tests.chaos` alone has three times as many people and twice the faults.
SHORT_SCHEDULES = ("--schedules", "20", "--customers", "60", "--agents", "4", "--faults", "3", "--floor", "2")

STAGES = (
    Stage("lint", (python("ruff", "check", "."), python("ruff", "format", "--check", "."))),
    Stage("templates", (python("djlint", "templates", "--lint", "--quiet"),)),
    Stage("imports", ((str(BIN / "lint-imports"),),)),
    Stage("types", (python("mypy"),)),
    Stage(
        "js",
        (
            ("npm", "ci", "--no-audit", "--no-fund"),
            ("npm", "run", "--silent", "types"),
            ("npm", "run", "--silent", "styles"),
            ("npm", "test", "--silent"),
        ),
    ),
    Stage("db-postgres", (pytest("tests/db"),), postgres=True),
    Stage("db", (pytest("tests/db"),)),
    Stage("pure", (pytest("tests/pure"),)),
    Stage("socket", (pytest("tests/socket", workers=3),), alone=True, postgres=True),
    Stage("chaos", (python("tests.chaos", *SHORT_SCHEDULES, "--broken"),), alone=True),
    Stage("browser", (pytest("tests/browser", workers=3),), alone=True, before=ensure_chromium),
)
SIDE_BY_SIDE = 2


def main(names: list[str]) -> int:
    unknown = set(names) - {stage.name for stage in STAGES}
    if unknown:
        say(
            f"No stage is called {', '.join(sorted(unknown))}. There are {', '.join(s.name for s in STAGES)}."
        )
        return 2
    chosen = [stage for stage in STAGES if not names or stage.name in names]
    outcomes = dict(_run_all(chosen))
    say(summary(outcomes))
    total = [
        sum(getattr(outcome, kind) for outcome in outcomes.values())
        for kind in ("passed", "failed", "skipped")
    ]
    say(f"{total[0]} passed, {total[1]} failed" + (f", {total[2]} skipped" if total[2] else ""))
    return 1 if total[1] else 0


def _run_all(stages: list[Stage]) -> Iterator[tuple[str, Outcome]]:
    """Each stage's name and outcome."""
    small = [stage for stage in stages if not stage.alone]
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        for stage, (outcome, output) in zip(small, pool.map(_run_aside, small), strict=True):
            _show(output)
            yield stage.name, outcome
    for stage in stages:
        if stage.alone:
            yield stage.name, run_stage(stage, _show)


def _run_aside(stage: Stage) -> tuple[Outcome, str]:
    output: list[str] = []
    outcome = run_stage(stage, output.append)
    return outcome, "".join(output)


def run_stage(stage: Stage, show: Callable[[str], None]) -> Outcome:
    """Runs all commands of a stage, also after one has failed. `show` is given its output as it comes."""
    show(f"\n──── {stage.name}\n")
    outcome = Outcome()
    begun_s = time.monotonic()
    try:
        with ExitStack() as services:
            environment = _environment(stage, services)
            if stage.before:
                stage.before()
            for command in stage.commands:
                _run(command, environment, outcome, show)
    except (RuntimeError, OSError) as error:
        show(f"{error}\n")
        outcome.failed += 1
        outcome.problems.append(str(error).splitlines()[0])
    outcome.seconds = time.monotonic() - begun_s
    return outcome


def summary(outcomes: Mapping[str, Outcome]) -> str:
    lines = ["", f"{'stage':<12} {'passed':>7} {'failed':>7} {'skipped':>8} {'seconds':>8}"]
    for name, outcome in outcomes.items():
        figures = f"{outcome.passed:>7} {outcome.failed:>7} {outcome.skipped:>8} {outcome.seconds:>8.1f}"
        lines.append(f"{name:<12} {figures}  {'; '.join(outcome.problems)}".rstrip())
    return "\n".join(lines) + "\n"


def _environment(stage: Stage, services: ExitStack) -> dict[str, str]:
    # A developer's own settings reach no test, and a command outside pytest needs some secret to load settings.
    ours = ("DATABASE_URL", "REDIS_URL", "CHATSVC_VAR", "CHATSVC_DEMO", "CHATSVC_BIND", "SECRET_KEY")
    environment = {name: value for name, value in os.environ.items() if name not in ours}
    environment["SECRET_KEY"] = "only-for-checks-0123456789-0123456789-0123456789"
    if stage.postgres:
        environment["DATABASE_URL"] = services.enter_context(postgres_server())
    return environment


def _run(
    command: tuple[str, ...], environment: Mapping[str, str], outcome: Outcome, show: Callable[[str], None]
) -> None:
    if shutil.which(command[0]) is None:
        raise RuntimeError(f"{command[0]} is missing: install Node.js 20.19 or later, with npm.")
    process = subprocess.Popen(
        command, cwd=BASE_DIR, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    output = "".join(_shown(process, show))
    returncode = process.wait()
    counted = _count(output, outcome)
    named = " ".join(word.rpartition("/")[2] for word in command if word not in ("-m", "--silent", "--quiet"))
    if returncode and not (counted and outcome.failed):
        outcome.failed += 1
        outcome.problems.append(f"{named}: exit code {returncode}")
    elif not counted:
        outcome.passed += 1


def _shown(process: subprocess.Popen[str], show: Callable[[str], None]) -> Iterator[str]:
    assert process.stdout
    for line in process.stdout:
        show(line)
        yield line


def _count(output: str, outcome: Outcome) -> bool:
    """Adds the tests that pytest or node counted; False when the command is no test runner."""
    counts = [(kind, int(number)) for kind, number in _NODE_SUMMARY.findall(output)]
    if last := _PYTEST_SUMMARY.match(output.rstrip().rpartition("\n")[2]):
        counts += [(kind, int(number)) for number, kind in _PYTEST_COUNT.findall(last[1])]
    for kind, number in counts:
        if kind.startswith("pass"):
            outcome.passed += number
        elif kind.startswith("skip"):
            outcome.skipped += number
        else:
            outcome.failed += number
    return bool(counts)


def say(text: str) -> None:
    _show(f"{text}\n")


def _show(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
