"""The supervisor: starts programs, restarts what dies, and ends all of them in order. Knows no program by name."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from chatsvc.embedded.logs import Log
from chatsvc.embedded.problems import SetupError

_LOOK_EVERY_S = 0.2
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 10.0
_STEADY_S = 30.0
_FAILURES_LIMIT = 4
_SILENT_S = 30.0
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


@dataclass(frozen=True, slots=True)
class Program:
    """What to run. Stages end from the highest to the lowest, each within `stop_s`.

    A program with a `sign` touches that file every few seconds, once it is ready; one that stops doing so hangs.
    """

    name: str
    command: tuple[str, ...]
    stage: int
    stop_s: float
    answers: Callable[[], bool] = lambda: True
    sign: Path | None = None
    silent_s: float = _SILENT_S


class Pulse:
    """Whether a sign of life still changes. On the monotonic clock: a laptop that wakes has not been silent."""

    def __init__(self, sign: Path, silent_s: float) -> None:
        self._sign, self._silent_s = sign, silent_s
        self.begin()

    def begin(self) -> None:
        """Of a program that has just been started: nothing is expected before its first sign."""
        self._seen = self._touched()
        self._begun = False
        self._changed_s = self._looked_s = time.monotonic()

    def lost(self) -> bool:
        """Whether the sign has not changed for too long."""
        now_s, touched = time.monotonic(), self._touched()
        # Where nobody has looked for long, all may have slept.
        if touched != self._seen or now_s - self._looked_s > self._silent_s / 2:
            self._begun = self._begun or touched != self._seen
            self._seen, self._changed_s = touched, now_s
        self._looked_s = now_s
        return self._begun and now_s - self._changed_s > self._silent_s

    def _touched(self) -> int:
        try:
            return self._sign.stat().st_mtime_ns
        except FileNotFoundError:
            return 0


class Child:
    """A program and its running process, if any."""

    def __init__(self, program: Program, log: Log, environment: dict[str, str], folder: Path) -> None:
        self.program = program
        self.log = log
        self._environment = environment
        self._folder = folder
        self._failures = 0
        self._due_s = 0.0
        self._pulse = Pulse(program.sign, program.silent_s) if program.sign else None
        self.start()

    def start(self) -> None:
        self._started_s = time.monotonic()
        if self._pulse:
            self._pulse.begin()
        with self.log.path.open("ab") as output:
            self.process = subprocess.Popen(  # noqa: S603 - our own programs
                self.program.command,
                cwd=self._folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a terminal's Ctrl-C reaches only the supervisor, which ends in order
                preexec_fn=tied_to(os.getpid()),
            )

    def ended(self) -> bool:
        return self.process.poll() is not None

    def end_if_hung(self) -> str:
        """Kills a program that gives no sign any more; returns what to tell."""
        if self._pulse is None or self.ended() or not self._pulse.lost():
            return ""
        self.signal_all(signal.SIGKILL)
        self.process.wait()
        return f"{self.program.name} has given no sign for {self.program.silent_s:g} s and was killed"

    def revive(self) -> str:
        """Starts a dead program when its pause is over; returns what to tell. Raises `SetupError` when hopeless."""
        now_s = time.monotonic()
        if self._due_s:
            if now_s >= self._due_s:
                self._due_s = 0.0
                self.start()
            return ""
        if now_s - self._started_s > _STEADY_S:
            self._failures = 0
        self._failures += 1
        ending = f"{self.program.name} ended ({ending_of(self.process.returncode)})"
        if self._failures >= _FAILURES_LIMIT:
            raise SetupError(
                f"{ending} {self._failures} times in a row. The end of {self.log.path}:", self.log.tail()
            )
        pause_s = min(_FIRST_PAUSE_S * 2 ** (self._failures - 1), _LONGEST_PAUSE_S)
        self._due_s = now_s + pause_s
        return f"{ending}; starting it again in {pause_s:g} s"

    def signal_all(self, number: signal.Signals) -> None:
        """To the whole process group: the program and what it has forked."""
        if not self.ended():
            os.killpg(self.process.pid, number)


class Supervisor:
    """Must live in the main thread: a child dies with the thread that forked it."""

    def __init__(
        self, folder: Path, log_dir: Path, environment: dict[str, str], say: Callable[[str], None]
    ) -> None:
        self._folder = folder
        self._log_dir = log_dir
        self._environment = environment
        self._say = say
        self._children: list[Child] = []
        self.hurried = False

    def start(self, program: Program) -> Child:
        log = Log(self._log_dir / f"{program.name}.log")
        child = Child(program, log, self._environment, self._folder)
        self._children.append(child)
        return child

    def wait_for(self, child: Child, deadline_s: float) -> None:
        """Until the child answers. Raises `SetupError` with its log's end when it, or another, cannot start."""
        until_s = time.monotonic() + deadline_s
        while not child.program.answers():
            for other in self._children:
                if other.ended():
                    ending = ending_of(other.process.returncode)
                    raise SetupError(f"{other.program.name} did not start ({ending}):", other.log.tail())
            if time.monotonic() > until_s:
                line = f"{child.program.name} did not answer within {deadline_s:.0f} s. The end of {child.log.path}:"
                raise SetupError(line, child.log.tail())
            time.sleep(0.05)

    def watch(self) -> None:
        """Restarts what dies and shows problems, until an exception (a signal's) ends it."""
        while True:
            for child in self._children:
                for line in child.log.problems():
                    self._say(f"{child.program.name}: {line}")
                if news := child.end_if_hung():
                    self._say(news)
                if child.ended() and (news := child.revive()):
                    self._say(news)
            time.sleep(_LOOK_EVERY_S)

    def stop(self) -> None:
        """Ends all, stage by stage from the highest; what outlives its time is killed."""
        for stage in sorted({child.program.stage for child in self._children}, reverse=True):
            self._stop_stage([child for child in self._children if child.program.stage == stage])
        self._children.clear()

    def hurry(self) -> None:
        """Kills all that still runs: `stop`, which may be under way, waits for nothing. For a signal's handler."""
        self.hurried = True
        for child in self._children:
            with suppress(ProcessLookupError):  # `stop` may have heard of its end in the midst of this
                child.signal_all(signal.SIGKILL)

    def _stop_stage(self, children: Iterable[Child]) -> None:
        for child in children:
            if not child.ended():
                child.process.terminate()
        begun_s = time.monotonic()
        for child in children:
            try:
                child.process.wait(max(0.0, begun_s + child.program.stop_s - time.monotonic()))
            except subprocess.TimeoutExpired:
                self._say(
                    f"{child.program.name} did not end within {child.program.stop_s:g} s and was killed"
                )
                child.signal_all(signal.SIGKILL)
                child.process.wait()


def ending_of(returncode: int) -> str:
    return f"exit code {returncode}" if returncode >= 0 else signal.Signals(-returncode).name


def tied_to(parent: int, number: signal.Signals = signal.SIGKILL) -> Callable[[], None]:
    """For `preexec_fn`: the child gets `number` when the thread that started it ends, however it ends."""

    def tie() -> None:
        if _libc is not None:
            _libc.prctl(_PR_SET_PDEATHSIG, number)
            if os.getppid() != parent:
                os._exit(1)

    return tie
