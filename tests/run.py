"""`make test`: every stage from nothing, one after the other, all failures shown, a summary at the end.

`python -m tests.run [STAGE …]` runs a part. Stages that need Redis or PostgreSQL get throw-away ones.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field

from chatsvc.environment import BASE_DIR
from tests.browser.chromium import ensure_chromium
from tests.services import postgres_server, redis_server

BIN = BASE_DIR / ".venv" / "bin"
_PYTEST_SUMMARY = re.compile(r"^=*\s*((?:\d+ \w+(?:, )?)+) in [\d.]+s")
_PYTEST_COUNT = re.compile(r"(\d+) (passed|failed|errors?|skipped)\b")
_NODE_SUMMARY = re.compile(r"^# (pass|fail|skipped) (\d+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Stage:
    """One line of the summary. Its commands run in order, all of them; `check` is one passed or failed test."""

    name: str
    commands: tuple[tuple[str, ...], ...]
    postgres: bool = False
    redis: bool = False
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


def pytest(folder: str) -> tuple[str, ...]:
    return python("pytest", folder, "-q", "--tb=short", "--show-capture=log", "--durations=5")


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
    Stage("pure", (pytest("tests/pure"),)),
    Stage("db", (pytest("tests/db"),), redis=True),
    Stage("db-postgres", (pytest("tests/db"),), postgres=True, redis=True),
    Stage("socket", (pytest("tests/socket"),), postgres=True),
    Stage("browser", (pytest("tests/browser"),), before=ensure_chromium),
)


def main(names: list[str]) -> int:
    unknown = set(names) - {stage.name for stage in STAGES}
    if unknown:
        say(
            f"No stage is called {', '.join(sorted(unknown))}. There are {', '.join(s.name for s in STAGES)}."
        )
        return 2
    chosen = [stage for stage in STAGES if not names or stage.name in names]
    outcomes = {stage.name: run_stage(stage) for stage in chosen}
    say(summary(outcomes))
    total = [
        sum(getattr(outcome, kind) for outcome in outcomes.values())
        for kind in ("passed", "failed", "skipped")
    ]
    say(f"{total[0]} passed, {total[1]} failed" + (f", {total[2]} skipped" if total[2] else ""))
    return 1 if total[1] else 0


def run_stage(stage: Stage) -> Outcome:
    """Runs all commands of a stage, also after one has failed."""
    say(f"\n──── {stage.name}")
    outcome = Outcome()
    begun_s = time.monotonic()
    try:
        with ExitStack() as services:
            environment = _environment(stage, services)
            if stage.before:
                stage.before()
            for command in stage.commands:
                _run(command, environment, outcome)
    except (RuntimeError, OSError) as error:
        say(str(error))
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
    if stage.redis:
        environment["REDIS_URL"] = services.enter_context(redis_server())
    if stage.postgres:
        environment["DATABASE_URL"] = services.enter_context(postgres_server())
    return environment


def _run(command: tuple[str, ...], environment: Mapping[str, str], outcome: Outcome) -> None:
    if shutil.which(command[0]) is None:
        raise RuntimeError(f"{command[0]} is missing: install Node.js 20.19 or later, with npm.")
    process = subprocess.Popen(
        command, cwd=BASE_DIR, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    output = "".join(_echoed(process))
    returncode = process.wait()
    counted = _count(output, outcome)
    named = " ".join(word.rpartition("/")[2] for word in command if word not in ("-m", "--silent", "--quiet"))
    if returncode and not (counted and outcome.failed):
        outcome.failed += 1
        outcome.problems.append(f"{named}: exit code {returncode}")
    elif not counted:
        outcome.passed += 1


def _echoed(process: subprocess.Popen[str]) -> Iterator[str]:
    assert process.stdout
    for line in process.stdout:
        sys.stdout.write(line)
        sys.stdout.flush()
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
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
