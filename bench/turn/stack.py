"""Everything a run needs, started here and ended with it: database, Redis, shop, model, the product and its rivals."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from chatsvc.embedded.ports import free_port
from chatsvc.embedded.processes import tied_to
from chatsvc.environment import BASE_DIR
from tests.fakes.shop.catalog import lantern
from tests.fakes.shop.handle import Shop
from tests.fakes.upstream.control_http import RemoteUpstream
from tests.fakes.upstream.faults import Plan
from tests.fakes.upstream.script import Filler
from tests.services import private_folder, running_redis
from tests.support.processes import http_ok

START_DEADLINE_S = 60.0


@dataclass(frozen=True, slots=True)
class Stack:
    """The addresses of a running stack. `identities` are the tokens of its customers."""

    product: str
    rivals: str
    upstream: RemoteUpstream
    answer_tokens: int
    identities: tuple[str, ...]

    def renew_model(self) -> None:
        """Empties the model's books and its prefix cache, so that each batch begins like the first."""
        self.upstream.forget()
        self.upstream.always(Plan(script=Filler(tokens=self.answer_tokens)))


@contextmanager
def running(profile: str, rtt_ms: float | None, customers: int, answer_tokens: int) -> Iterator[Stack]:
    """A fresh stack on this machine. Raises `RuntimeError` with the log of a process that does not start."""
    with ExitStack() as stack:
        folder = stack.enter_context(private_folder("bench-"))
        redis = stack.enter_context(running_redis(folder))
        upstream = _upstream(stack, profile, rtt_ms)
        mia = lantern(datetime.now(UTC).date())["mia"]
        people = {f"c{n}": msgspec.structs.replace(mia, id=f"c{n}") for n in range(customers)}
        shop = stack.enter_context(Shop(customers=people))
        variables = _variables(folder, redis, upstream.ca_file)
        _run(["-m", "chatsvc.embedded.prepare"], variables)
        identities = json.loads(
            _run(["-m", "bench.turn.seed", shop.url, shop.key, upstream.base_url, str(customers)], variables)
        )
        product, rivals = free_port(), free_port()
        serve = ["manage.py", "serve", "--bind", f"127.0.0.1:{product}", "--drain-s", "1"]
        _start(stack, serve, variables, folder / "product.log", lambda: http_ok(product, "/readyz"))
        daphne = ["-m", "daphne", "-p", str(rivals), "bench.turn.rivals:application"]
        _start(stack, daphne, variables, folder / "rivals.log", lambda: _listens(rivals))
        worker = ["-m", "celery", "-A", "chatsvc", "worker", "--pool", "threads", "-c", "2"]
        _start(stack, worker, variables, folder / "worker.log", lambda: True)
        yield Stack(f"127.0.0.1:{product}", f"127.0.0.1:{rivals}", upstream, answer_tokens, tuple(identities))


def _variables(folder: Path, redis_url: str, ca_file: str) -> dict[str, str]:
    return {
        **os.environ,
        "SECRET_KEY": "only-for-a-bench-0123456789-0123456789-0123456789",
        "CHATSVC_VAR": str(folder),
        "CHATSVC_DEMO": "0",
        "DATABASE_URL": os.environ.get("DATABASE_URL") or f"sqlite:///{folder / 'bench.sqlite3'}",
        "REDIS_URL": redis_url,
        "LLM_CA_FILE": ca_file,
        "LLM_BASE_URL": "",
    }


def _upstream(stack: ExitStack, profile: str, rtt_ms: float | None) -> RemoteUpstream:
    authority = stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-ca-"))
    command = [
        sys.executable,
        "-m",
        "tests.fakes.upstream",
        "--port",
        "0",
        "--tls",
        authority,
        "--profile",
        profile,
    ]
    if rtt_ms is not None:
        command += ["--rtt-ms", str(rtt_ms)]
    process = subprocess.Popen(
        command, cwd=BASE_DIR, stdout=subprocess.PIPE, text=True, preexec_fn=tied_to(os.getpid())
    )
    stack.callback(_end, process)
    assert process.stdout is not None  # noqa: S101 - a pipe was asked for
    ready = json.loads(process.stdout.readline())
    return RemoteUpstream(ready["url"], ready["control"], ready["ca"])


def _run(arguments: list[str], variables: dict[str, str]) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], cwd=BASE_DIR, env=variables, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stdout + done.stderr)
    return done.stdout


def _start(
    stack: ExitStack, arguments: list[str], variables: dict[str, str], log: Path, ready: Callable[[], bool]
) -> None:
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=BASE_DIR,
            env=variables,
            stdout=output,
            stderr=subprocess.STDOUT,
            preexec_fn=tied_to(os.getpid()),
        )
    stack.callback(_end, process)
    until = time.monotonic() + START_DEADLINE_S
    while not ready():
        if process.poll() is not None or time.monotonic() > until:
            raise RuntimeError(log.read_text(encoding="utf-8", errors="replace"))
        time.sleep(0.05)


def _end(process: subprocess.Popen[str] | subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
