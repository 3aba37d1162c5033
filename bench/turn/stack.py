"""Everything a run needs, started here and ended with it: database, Redis, shop, model, the product and its rivals."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from redis import Redis as SyncRedis

from bench.turn.wanted import Model, Wanted
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
class Server:
    """A process under measurement, and the others whose work is its own: its worker, its Redis."""

    host: str
    pids: tuple[int, ...]

    def cpu_s(self) -> float:
        """Seconds of processor time so far, of all of them."""
        return sum(_cpu_s(pid) for pid in self.pids)


class Stack:
    """The parts of a running stack. A product process is started when it is first asked for."""

    def __init__(
        self,
        parts: ExitStack,
        variables: dict[str, str],
        folder: Path,
        upstream: RemoteUpstream,
        instant: RemoteUpstream,
        shop: Shop,
        model: Model,
    ) -> None:
        self.model = model
        self._parts = parts
        self._variables = variables
        self._folder = folder
        self.upstream = upstream
        self._instant = instant
        self.shop = shop
        self._products: dict[str, Server] = {}
        self.redis_pid = 0
        self.worker_pid = 0
        self.rivals: Server

    def product(self, lacking: str = "") -> Server:
        """The product, or the product without one of its mechanisms."""
        if lacking not in self._products:
            port = free_port()
            program = ["-m", "bench.turn.lacking", lacking] if lacking else ["manage.py"]
            command = [*program, "serve", "--bind", f"127.0.0.1:{port}", "--drain-s", "1"]
            log = self._folder / f"product-{lacking.replace(' ', '-') or 'whole'}.log"
            ready = partial(http_ok, port, "/readyz")
            pid = _start(self._parts, command, self._variables, log, ready)
            self._products[lacking] = Server(f"127.0.0.1:{port}", (pid, self.worker_pid, self.redis_pid))
        return self._products[lacking]

    def renew_model(self, answer_tokens: int) -> None:
        """Empties the model's books and its prefix cache, so that each batch begins like the first."""
        self.upstream.forget()
        self.upstream.always(Plan(script=Filler(tokens=answer_tokens)))

    @contextmanager
    def instant_model(self) -> Iterator[None]:
        """Sites made meanwhile have a model server that answers at once, over a network without delay.

        It is a server of its own: a connection once opened keeps the delay of its network.
        """
        distant, model = self.upstream, self.model
        self.upstream, self.model = self._instant, Model(base_url=self._instant.base_url)
        try:
            yield
        finally:
            self.upstream, self.model = distant, model

    def stages(self) -> list[dict[str, Any]]:
        """Every turn that the products have recorded: its marks, and milliseconds by stage."""
        return list(json.loads(_run(["-m", "bench.turn.stages"], self._variables)))

    def people(
        self, customers: int, *, answer_cache: str, articles: bool = True, speculation_tokens: int = 0
    ) -> Site:
        """A new site with so many verified customers and as many visitors."""
        wanted = Wanted(
            shop_url=self.shop.url,
            shop_key=self.shop.key,
            model=self.model,
            customers=customers,
            answer_cache=answer_cache,
            articles=articles,
            speculation_tokens=speculation_tokens,
        )
        made = _run(["-m", "bench.turn.seed", msgspec.json.encode(wanted).decode()], self._variables)
        return msgspec.json.decode(made, type=Site)


class Site(msgspec.Struct, frozen=True):
    """Tokens of a site's people."""

    identities: tuple[str, ...]
    visitors: tuple[str, ...]


@contextmanager
def running(profile: str, rtt_ms: float | None, customers: int, real: Model | None = None) -> Iterator[Stack]:
    """A fresh stack on this machine; its model is a fake with that profile, or the `real` one.

    Raises `RuntimeError` with the log of a process that does not start.
    """
    with ExitStack() as parts:
        folder = parts.enter_context(private_folder("bench-"))
        redis = parts.enter_context(running_redis(folder))
        authority = folder / "authority"
        upstream = model_server(parts, authority, profile, rtt_ms)
        instant = model_server(parts, authority, "instant", None)
        mia = lantern(datetime.now(UTC).date())["mia"]
        people = {f"c{n}": msgspec.structs.replace(mia, id=f"c{n}") for n in range(customers)}
        shop = parts.enter_context(Shop(customers=people))
        variables = _variables(folder, redis, "" if real else upstream.ca_file)
        _run(["-m", "chatsvc.embedded.prepare"], variables)
        model = real or Model(base_url=upstream.base_url)
        stack = Stack(parts, variables, folder, upstream, instant, shop, model)
        stack.redis_pid = _listener(redis)
        worker = ["-m", "celery", "-A", "chatsvc", "worker", "--pool", "threads", "-c", "2"]
        stack.worker_pid = _start(parts, worker, variables, folder / "worker.log", lambda: True)
        port = free_port()
        daphne = ["-m", "daphne", "-p", str(port), "bench.turn.rivals:application"]
        pid = _start(parts, daphne, variables, folder / "rivals.log", lambda: _listens(port))
        stack.rivals = Server(f"127.0.0.1:{port}", (pid,))
        yield stack


def _listener(redis_url: str) -> int:
    with SyncRedis.from_url(redis_url) as redis:
        return int(redis.info("server")["process_id"])


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _variables(folder: Path, redis_url: str, ca_file: str) -> dict[str, str]:
    return {
        **os.environ,
        "SECRET_KEY": "only-for-a-bench-0123456789-0123456789-0123456789",
        "CHATSVC_VAR": str(folder),
        "CHATSVC_DEMO": "0",
        "DATABASE_URL": os.environ.get("DATABASE_URL") or f"sqlite:///{folder / 'bench.sqlite3'}",
        "REDIS_URL": redis_url,
        "LLM_CA_FILE": ca_file or os.environ.get("LLM_CA_FILE", ""),
        "LLM_BASE_URL": "",
    }


def model_server(stack: ExitStack, authority: Path, profile: str, rtt_ms: float | None) -> RemoteUpstream:
    """A model server over TLS in a process of its own, ended with the stack. `authority` is a folder."""
    command = [
        sys.executable,
        "-m",
        "tests.fakes.upstream",
        "--port",
        "0",
        "--tls",
        str(authority),
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
) -> int:
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
    return process.pid


def _end(process: subprocess.Popen[str] | subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
