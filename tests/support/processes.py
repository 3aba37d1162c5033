"""Real processes under test: web, worker, and the whole of `make run`."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from chatsvc.embedded.processes import tied_to
from chatsvc.environment import BASE_DIR
from tests.fakes.transport.listener import hold_port

START_DEADLINE_S = 180.0
END_DEADLINE_S = 60.0
_held: list[socket.socket] = []


def own_port() -> int:
    """A free port for a process to listen on, nobody else's until this process ends."""
    _held.append(hold_port())
    return int(_held[-1].getsockname()[1])


class RunningProcess:
    """A process of ours, in a group of its own, with its output in a file."""

    def __init__(
        self, command: list[str], variables: Mapping[str, str], log: Path, user: int | None = None
    ) -> None:
        self.log = log
        self._user = user
        self._command = command
        self._variables = {**os.environ, **variables}
        self.start()

    def start(self) -> None:
        """Starts it, or starts it again after its end.

        Call it on the main thread: the child is told to die with the thread that forked it.
        """
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                self._command,
                # Another user may not be let into the checkout.
                cwd=BASE_DIR if self._user is None else self.log.parent,
                env=self._variables,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                user=self._user,
                preexec_fn=tied_to(os.getpid()),
            )

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        """kill -9, and waits until it is gone."""
        if self.running:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> int:
        """SIGTERM, and waits for an orderly end; the exit code."""
        self.signal(signal.SIGTERM)
        return self.process.wait(END_DEADLINE_S)

    def wait_until(self, ready: Callable[[], bool]) -> None:
        """Raises `AssertionError` with its output, and kills it, when it ends or the deadline passes first."""
        until_s = time.monotonic() + START_DEADLINE_S
        while not ready():
            late = time.monotonic() > until_s
            if late or not self.running:
                ended = (
                    f"ended with {self.process.returncode}"
                    if not late
                    else f"not ready in {START_DEADLINE_S:g} s"
                )
                self.kill()
                raise AssertionError(f"{self._command[-1]}: {ended}:\n{self.output()}")
            time.sleep(0.05)

    def output(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")


@dataclass(frozen=True, slots=True)
class Deployment:
    """What processes of one installation share: a database, a Redis, a folder."""

    database_url: str
    redis_url: str
    var_dir: Path

    @property
    def variables(self) -> dict[str, str]:
        return {
            "DATABASE_URL": self.database_url,
            "REDIS_URL": self.redis_url,
            "CHATSVC_VAR": str(self.var_dir),
        }


class Web(RunningProcess):
    """`manage.py serve`. `url` for HTTP, `ws` for sockets, `origin` as a browser on our own pages would send it."""

    program: tuple[str, ...] = ("manage.py",)

    def __init__(
        self,
        deployment: Deployment,
        name: str = "web",
        ready: str = "/readyz",
        port: int | None = None,
        **variables: str,
    ) -> None:
        self._ready = ready
        self.port = port or own_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.ws = f"ws://127.0.0.1:{self.port}"
        self.origin = self.url
        command = [
            sys.executable,
            *self.program,
            "serve",
            "--bind",
            f"127.0.0.1:{self.port}",
            "--drain-s",
            "10",
        ]
        super().__init__(command, {**deployment.variables, **variables}, deployment.var_dir / f"{name}.log")
        self.wait_ready()

    def wait_ready(self) -> None:
        self.wait_until(lambda: http_ok(self.port, self._ready))

    def revive(self) -> None:
        """Starts it again on the same port if it has ended."""
        if not self.running:
            self.start()
            self.wait_ready()


class Worker(RunningProcess):
    """A Celery worker that has said it is ready."""

    def __init__(self, deployment: Deployment, **variables: str) -> None:
        options = [
            "--pool",
            "prefork",
            "--concurrency",
            "2",
            "-l",
            "INFO",
            "--without-gossip",
            "--without-mingle",
        ]
        command = [sys.executable, "-m", "celery", "-A", "chatsvc", "worker", *options]
        super().__init__(command, {**deployment.variables, **variables}, deployment.var_dir / "worker.log")
        self._heard = 0
        self.wait_ready()

    def wait_ready(self) -> None:
        self.wait_until(lambda: " ready." in self.output()[self._heard :])
        self._heard = len(self.output())

    def revive(self) -> None:
        if not self.running:
            self.start()
            self.wait_ready()


class Beat(RunningProcess):
    """`celery beat` of one deployment. What it sends first comes after five seconds."""

    def __init__(self, deployment: Deployment, **variables: str) -> None:
        command = [sys.executable, "-m", "celery", "-A", "chatsvc", "beat", "-l", "INFO", "--pidfile="]
        super().__init__(command, {**deployment.variables, **variables}, deployment.var_dir / "beat.log")


@contextmanager
def ended_after(process: RunningProcess) -> Iterator[None]:
    """However the block ends, the process and what it forked are gone."""
    try:
        yield
    finally:
        process.kill()


def wait_for(condition: Callable[[], bool]) -> None:
    """Raises `AssertionError` when the condition does not come true before the deadline."""
    until_s = time.monotonic() + END_DEADLINE_S
    while not condition():
        assert time.monotonic() < until_s, f"not within {END_DEADLINE_S} s"
        time.sleep(0.02)


def http_ok(port: int, path: str) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
