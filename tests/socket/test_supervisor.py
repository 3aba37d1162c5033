"""The supervisor, with small programs and with the whole of `make run`."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from apps.turns.supervisor import ABANDON_S
from chatsvc.embedded import up
from chatsvc.embedded.problems import SetupError
from chatsvc.embedded.processes import Program, Supervisor
from chatsvc.environment import BASE_DIR
from chatsvc.owner import CANCEL_FOR_S
from chatsvc.server import FAREWELL_S
from tests.services import private_folder
from tests.support.demo import Demo
from tests.support.processes import ended_after, wait_for


class Heard:
    """What the supervisor said; watching ends, as by a signal, once `until` is among it."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.until: str | None = None

    def __call__(self, line: str) -> None:
        self.lines.append(line)
        if self.until and self.until in line:
            raise up.Stopped


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def supervisor(tmp_path: Path, heard: Heard) -> Iterator[Supervisor]:
    supervisor = Supervisor(BASE_DIR, tmp_path, dict(os.environ), heard)
    yield supervisor
    heard.until = None
    supervisor.stop()


def program(name: str, code: str, *, stage: int = 0, answers: Callable[[], bool] = lambda: True) -> Program:
    return Program(name, (sys.executable, "-c", code), stage, stop_s=1.0, answers=answers)


def test_a_program_that_cannot_start_is_named_with_the_end_of_its_log(supervisor: Supervisor) -> None:
    child = supervisor.start(program("web", "import sys; sys.exit('no such table')", answers=lambda: False))
    with pytest.raises(SetupError, match=r"web did not start \(exit code 1\)") as raised:
        supervisor.wait_for(child, 20)
    assert raised.value.tail == "no such table"


def test_a_program_that_keeps_ending_ends_the_watch(supervisor: Supervisor, heard: Heard) -> None:
    supervisor.start(program("worker", "raise SystemExit(3)"))
    with pytest.raises(SetupError, match=r"worker ended \(exit code 3\) 4 times in a row"):
        supervisor.watch()
    assert heard.lines[0] == "worker ended (exit code 3); starting it again in 0.5 s"
    assert len(heard.lines) == 3


def test_problems_in_a_log_are_shown(supervisor: Supervisor, heard: Heard) -> None:
    line = "2026-01-02 03:04:05,678 ERROR apps.llm no route"
    supervisor.start(program("web", f"print({line!r}, flush=True); import time; time.sleep(60)"))
    heard.until = "no route"
    with pytest.raises(up.Stopped):
        supervisor.watch()
    assert heard.lines == [f"web: {line}"]


def test_a_program_that_gives_no_sign_any_more_is_killed_and_started_again(
    supervisor: Supervisor, heard: Heard, tmp_path: Path
) -> None:
    sign = tmp_path / "sign"
    code = f"import pathlib, time\nwhile True: pathlib.Path({str(sign)!r}).touch(); time.sleep(0.1)"
    hanging = Program("worker", (sys.executable, "-c", code), 0, 1.0, sign=sign, silent_s=1.0)
    child = supervisor.start(hanging)
    wait_for(sign.exists)
    os.kill(child.process.pid, signal.SIGSTOP)
    heard.until = "starting it again"
    with pytest.raises(up.Stopped):
        supervisor.watch()
    assert heard.lines[0] == "worker has given no sign for 1 s and was killed"
    assert child.ended()


def test_stages_end_from_the_highest_and_a_deaf_program_is_killed(
    supervisor: Supervisor, heard: Heard, tmp_path: Path
) -> None:
    trace = tmp_path / "trace"
    polite = "import signal, sys; print('up', flush=True); signal.sigwait([15]); open(%r, 'a').write(%r)"
    blocked = "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, [15]); "
    children = [
        supervisor.start(program("redis", blocked + polite % (str(trace), "redis"), stage=0)),
        supervisor.start(
            program("deaf", blocked + "print('up', flush=True); import time; time.sleep(60)", stage=1)
        ),
        supervisor.start(program("web", blocked + polite % (str(trace), "web "), stage=2)),
    ]
    wait_for(lambda: all("up" in child.log.tail() for child in children))
    supervisor.stop()
    assert trace.read_text() == "web redis"
    assert heard.lines == ["deaf did not end within 1 s and was killed"]
    assert all(child.ended() for child in children)


def test_who_does_not_want_to_wait_ends_all_at_once(supervisor: Supervisor, heard: Heard) -> None:
    impatient = (
        f"import os; print('up', flush=True); signal.sigwait([15]); os.kill({os.getpid()}, signal.SIGUSR1); "
    )
    deaf = "import signal, time; signal.pthread_sigmask(signal.SIG_BLOCK, [15]); "
    slow = dataclasses.replace(program("web", f"{deaf}{impatient}time.sleep(600)", stage=1), stop_s=600.0)
    below = dataclasses.replace(
        program("redis", f"{deaf}print('up', flush=True); time.sleep(600)"), stop_s=600.0
    )
    children = [supervisor.start(slow), supervisor.start(below)]
    wait_for(lambda: all("up" in child.log.tail() for child in children))
    before = signal.signal(signal.SIGUSR1, lambda *_: supervisor.hurry())
    try:
        supervisor.stop()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert supervisor.hurried
    assert [child.process.returncode for child in children] == [-signal.SIGKILL] * 2
    assert heard.lines == []


def test_the_web_process_is_given_the_time_that_its_drain_may_take() -> None:
    assert up.DRAIN_S + ABANDON_S + CANCEL_FOR_S + FAREWELL_S < up.WORKING_STOP_S


@pytest.fixture(scope="module")
def _demo() -> Iterator[Demo]:
    with private_folder("chatsvc-run-") as folder:
        demo = Demo(folder)
        with ended_after(demo):
            yield demo


@pytest.fixture
def run(_demo: Demo) -> Demo:
    """Running, also when the test before has ended it."""
    if not _demo.running:
        _demo.start_again()
    return _demo


def processes_of(folder: Path) -> list[int]:
    """Live processes of this run, the supervisor too: the folder is in their environment or command line."""
    mark = bytes(folder)
    entries = [entry for entry in Path("/proc").iterdir() if entry.name.isdecimal()]
    return [
        int(entry.name) for entry in entries if mark in _read(entry / "environ") + _read(entry / "cmdline")
    ]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""  # it has just ended


def web_of(demo: Demo) -> int:
    """The process of `manage.py serve`, by its command line."""
    [found] = [
        pid for pid in processes_of(demo.var_dir) if b"manage.py" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]
    return found


def start_again(demo: Demo) -> str:
    again = subprocess.run(
        [sys.executable, "-m", "chatsvc.embedded.up"],
        env={**os.environ, "CHATSVC_VAR": str(demo.var_dir), "CHATSVC_BIND": f"127.0.0.1:{demo.port}"},
        cwd=BASE_DIR,
        capture_output=True,
        text=True,
        check=False,
    )
    assert again.returncode == 1
    return again.stdout


def test_a_run_refuses_a_second_one_revives_a_dead_child_and_ends_whole(run: Demo) -> None:
    assert set(run.logins) == {"kim", "ana", "admin"}
    assert httpx.get(f"{run.url}/readyz").status_code == 200
    assert start_again(run).startswith(f"chatsvc is already running here (process {run.process.pid})")

    os.kill(web_of(run), signal.SIGKILL)
    wait_for(lambda: "web ended (SIGKILL); starting it again" in run.output())
    run.wait_until(lambda: answers(run))

    run.signal(signal.SIGINT)
    assert run.process.wait(20) == 0
    said = run.output()
    assert said.rstrip().endswith("Ended.")
    assert "Ending. " in said
    assert "was killed" not in said
    assert "/readyz" not in said
    assert processes_of(run.var_dir) == []

    logins = run.logins
    run.start_again()
    assert run.logins == logins


def test_a_second_ctrl_c_ends_at_once(run: Demo) -> None:
    os.kill(web_of(run), signal.SIGSTOP)  # it would be waited for
    run.signal(signal.SIGINT)
    run.wait_until(lambda: "Ctrl-C cuts them off" in run.output().rpartition("chatsvc is ready")[2])
    run.signal(signal.SIGINT)
    assert run.process.wait(20) == 0
    assert run.output().rstrip().endswith("Ended at once: what was being answered was cut off.\nEnded.")
    assert "was killed" not in run.output()
    assert processes_of(run.var_dir) == []


def test_kill_9_of_the_supervisor_leaves_no_orphan(run: Demo) -> None:
    assert len(processes_of(run.var_dir)) >= len(("up", "redis", "shop", "worker", "beat", "web"))
    os.kill(run.process.pid, signal.SIGKILL)
    run.process.wait()
    wait_for(lambda: processes_of(run.var_dir) == [])


def answers(run: Demo) -> bool:
    try:
        return httpx.get(f"{run.url}/readyz").status_code == 200
    except httpx.TransportError:
        return False
