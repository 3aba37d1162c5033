"""Where it happens: PostgreSQL, Redis, a model, two web processes each behind a network of its own, and a worker."""

from __future__ import annotations

import asyncio
import json
import mmap
import os
import shutil
import signal
import struct
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from chatsvc.environment import BASE_DIR
from tests.chaos.links import Link
from tests.fakes.upstream.control_http import RemoteUpstream
from tests.fakes.upstream.faults import Plan
from tests.fakes.upstream.profile import Profile
from tests.fakes.upstream.script import Filler
from tests.services import private_folder
from tests.support.breaking import Postgres, Redis
from tests.support.database import Databases
from tests.support.processes import Deployment, RunningProcess, Web, Worker, ended_after, http_ok

WEBS = 2
# A quick model: an answer takes about half a second. Each is another chatter, so that none passes for another.
ANSWER_TOKENS = 25
MODEL = Profile(name="quick", first_token_s=0.05, tokens_per_s=50.0, jitter=0.2)
_READY_S = 60.0


class Clock:
    """The wall clock that one process is told."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.write_bytes(struct.pack("d", 0.0))
        with path.open("r+b") as file:
            self._page = mmap.mmap(file.fileno(), 8)

    def shift(self, seconds: float) -> None:
        self._page[:] = struct.pack("d", seconds)


@dataclass(eq=False)
class Town:
    """The processes, and everything that can be broken about them."""

    postgres: Postgres
    redis: Redis
    model_url: str
    deployment: Deployment
    webs: list[Web]
    worker: Worker
    links: list[Link]
    clocks: list[Clock]
    down_until_s: dict[RunningProcess, float] = field(default_factory=dict)
    _mending: dict[str, asyncio.Lock] = field(default_factory=dict)

    def people(self, customers: int, agents: int) -> tuple[list[str], list[str]]:
        """New customers' tokens and new agents' cookies, of a workspace of their own."""
        command = [sys.executable, "-m", "tests.chaos.seed", self.model_url, str(customers), str(agents)]
        done = subprocess.run(
            command,
            cwd=BASE_DIR,
            env={**os.environ, **self.deployment.variables},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        made = json.loads(done.stdout)
        return made["tokens"], made["cookies"]

    def address(self, path: str, number: int) -> str:
        return f"ws://127.0.0.1:{self.links[number].port}/ws/{path}"

    async def whole(self) -> None:
        """Heals everything and waits until every process is ready."""
        for link in self.links:
            link.heal()
        for clock in self.clocks:
            clock.shift(0.0)
        self.down_until_s.clear()
        for web in self.webs:
            web.signal(signal.SIGCONT)
        self._revive()
        async with asyncio.timeout(_READY_S):
            for web in self.webs:
                while not await asyncio.to_thread(http_ok, web.port, "/readyz"):
                    assert web.running, web.output()[-3000:]
                    await asyncio.sleep(0.1)

    async def keep(self) -> None:
        """Starts again what has died, as a supervisor does. Until cancelled."""
        while True:
            self._revive()
            await asyncio.sleep(0.1)

    def _revive(self) -> None:
        now_s = asyncio.get_running_loop().time()
        for process in (*self.webs, self.worker):
            if not process.running and self.down_until_s.get(process, 0.0) <= now_s:
                process.start()

    def down(self, process: RunningProcess, seconds: float) -> None:
        """Once it has died, it stays down for so long."""
        self.down_until_s[process] = asyncio.get_running_loop().time() + seconds

    def mending(self, service: str) -> asyncio.Lock:
        """Held by whoever stops and starts a service."""
        return self._mending.setdefault(service, asyncio.Lock())


@asynccontextmanager
async def running_town(program: tuple[str, ...] = ("manage.py",)) -> AsyncIterator[Town]:
    """Everything on this machine, from nothing; gone at the end. `program` is what the web processes run."""
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(private_folder("chaos-"))
        cluster = stack.enter_context(private_folder("chaos-pg-"))
        postgres = Postgres(cluster)
        stack.callback(postgres.kill)
        redis = Redis(folder)
        stack.callback(redis.kill)
        databases = Databases(folder, postgres.url)
        database = stack.enter_context(databases.fresh())
        deployment = Deployment(database, redis.url, folder)
        model_url = _model(stack)
        shim = _shim(folder)
        clocks = [Clock(folder / f"clock-{n}") for n in range(WEBS)]
        webs = []
        web_process = type("ChaosWeb", (Web,), {"program": program})
        for number, clock in enumerate(clocks):
            skew = {"LD_PRELOAD": str(shim), "CLOCK_SHIFT_FILE": str(clock.path)}
            webs.append(web_process(deployment, f"web-{number}", port=None, **skew))
            stack.enter_context(ended_after(webs[-1]))
        worker = Worker(deployment)
        stack.enter_context(ended_after(worker))
        links = [await stack.enter_async_context(Link(web.port)) for web in webs]
        town = Town(postgres, redis, model_url, deployment, webs, worker, links, clocks)
        yield town


def _model(stack: AsyncExitStack) -> str:
    """A process of its own, so that the judge's work does not slow it."""
    profile = msgspec.json.encode(MODEL).decode()
    command = [sys.executable, "-m", "tests.fakes.upstream", "--port", "0", "--profile", profile]
    process = subprocess.Popen(command, cwd=BASE_DIR, stdout=subprocess.PIPE, text=True)
    stack.callback(process.wait)
    stack.callback(process.kill)
    assert process.stdout
    ready = json.loads(process.stdout.readline())
    upstream = RemoteUpstream(ready["url"], ready["control"], ready["ca"])
    upstream.always(Plan(script=Filler(tokens=ANSWER_TOKENS)))
    return upstream.base_url


def _shim(folder: Path) -> Path:
    """The library that shifts clocks. Raises `RuntimeError` where there is no C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise RuntimeError("No C compiler here: install gcc, which the shifted clocks are made with.")
    library = folder / "clock.so"
    source = Path(__file__).with_name("clock.c")
    command = [compiler, "-shared", "-fPIC", "-O2", "-o", str(library), str(source), "-ldl"]
    subprocess.run(command, check=True, timeout=60)
    return library
