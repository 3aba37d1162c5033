"""Where it happens: PostgreSQL, Redis, a model, two web processes each behind a network of its own, and a worker."""

from __future__ import annotations

import asyncio
import http.client
import json
import mmap
import os
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import msgspec

from chatsvc.environment import BASE_DIR
from tests.chaos.hosts import Host, namespaces
from tests.chaos.links import Link, Way
from tests.chaos.mails import Mailbox
from tests.fakes.transport.tls import Authority
from tests.fakes.upstream.faults import Plan
from tests.fakes.upstream.profile import Profile
from tests.fakes.upstream.script import Filler
from tests.services import private_folder
from tests.support.breaking import Postgres, Redis
from tests.support.database import Databases
from tests.support.processes import Deployment, RunningProcess, Worker, ended_after, own_port

WEBS = 2
# A quick model: an answer takes about half a second, and half of that is silence. Each is another chatter, so that none
# passes for another.
PLAN = Plan(script=Filler(tokens=25))
PROGRAM = ("manage.py",)
MODEL = Profile(name="quick", first_token_s=0.3, tokens_per_s=80.0, jitter=0.2)
_READY_S = 60.0
_CROWDS = 5


class Clock:
    """The wall clock that one process is told."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.write_bytes(struct.pack("d", 0.0))
        with path.open("r+b") as file:
            self._page = mmap.mmap(file.fileno(), 8)

    def told(self, shim: Path) -> dict[str, str]:
        """What makes a program read this clock."""
        return {"LD_PRELOAD": str(shim), "CLOCK_SHIFT_FILE": str(self.path)}

    def shift(self, seconds: float) -> None:
        self._page[:] = struct.pack("d", seconds)


class Web(RunningProcess):
    """A web process, perhaps in a namespace of its own, that can become another build of the product."""

    def __init__(self, deployment: Deployment, name: str, host: Host | None, clock: dict[str, str]) -> None:
        self.address = host.address if host else "127.0.0.1"
        self.port = own_port()
        self._enter = host.enter if host else ()
        command = self._as(PROGRAM)
        super().__init__(command, {**deployment.variables, **clock}, deployment.var_dir / f"{name}.log")

    def become(self, program: tuple[str, ...]) -> None:
        self.kill()
        self._command = self._as(program)
        self.start()

    def _as(self, program: tuple[str, ...]) -> list[str]:
        options = ("serve", "--bind", f"{self.address}:{self.port}", "--drain-s", "10")
        return [*self._enter, sys.executable, *program, *options]

    def ready(self) -> bool:
        return self.readiness()[0] == 200

    def readiness(self) -> tuple[int, str]:
        """The status of `/readyz` and what it says; 0 and the error where it does not answer."""
        connection = http.client.HTTPConnection(self.address, self.port, timeout=5)
        try:
            connection.request("GET", "/readyz", headers={"Host": "localhost"})
            response = connection.getresponse()
            return response.status, response.read().decode()
        except (OSError, http.client.HTTPException) as error:
            return 0, repr(error)
        finally:
            connection.close()


class Lossy(Protocol):
    """A network that can lose what is sent over it."""

    def lose(self, *ways: Way) -> None: ...

    def heal(self) -> None: ...


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
    networks: Sequence[Lossy]  # the links themselves where there are no namespaces
    clocks: list[Clock]
    worker_clock: Clock
    mailbox: Mailbox
    down_until_s: dict[RunningProcess, float] = field(default_factory=dict)
    _mending: dict[str, asyncio.Lock] = field(default_factory=dict)
    _people: dict[tuple[int, int], list[tuple[list[str], list[str]]]] = field(default_factory=dict)

    def people(self, customers: int, agents: int) -> tuple[list[str], list[str]]:
        """New customers' tokens and new agents' cookies, of a workspace of their own."""
        stock = self._people.setdefault((customers, agents), [])
        if not stock:
            stock += self._seeded(customers, agents)
        return stock.pop()

    def _seeded(self, customers: int, agents: int) -> list[tuple[list[str], list[str]]]:
        """Some crowds at once, because starting the program takes longer than filling the database."""
        sizes = (_CROWDS, customers, agents)
        command = [sys.executable, "-m", "tests.chaos.seed", self.model_url, *map(str, sizes)]
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
        made = map(json.loads, done.stdout.splitlines())
        return [(crowd["tokens"], crowd["cookies"]) for crowd in made]

    def host(self, number: int) -> str:
        """Where a web process is reached, over its network."""
        return f"127.0.0.1:{self.links[number].port}"

    async def rebuild(self, program: tuple[str, ...]) -> None:
        """The web processes run this from now on."""
        for web in self.webs:
            web.become(program)
        await self.whole()

    async def whole(self) -> None:
        """Heals everything and waits until every process is ready."""
        for link, network in zip(self.links, self.networks, strict=True):
            link.heal()
            network.heal()
        for clock in self.clocks:
            clock.shift(0.0)
        self.down_until_s.clear()
        for web in self.webs:
            web.signal(signal.SIGCONT)
        self._revive()
        until_s = time.monotonic() + _READY_S
        for web in self.webs:
            while not await asyncio.to_thread(web.ready):
                self._revive()  # what was told to end may take until now
                assert time.monotonic() < until_s, f"{web.readiness()}\n{web.output()[-3000:]}"
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
async def running_town() -> AsyncIterator[Town]:
    """Everything on this machine, from nothing; gone at the end."""
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
        hosts = stack.enter_context(namespaces(WEBS))
        model_url = _models(stack, [host.enter for host in hosts] or [()])
        shim = _shim(folder)
        clocks = [Clock(folder / f"clock-{n}") for n in range(WEBS)]
        webs = []
        for number, clock in enumerate(clocks):
            host = hosts[number] if hosts else None
            webs.append(Web(deployment, f"web-{number}", host, clock.told(shim)))
            stack.enter_context(ended_after(webs[-1]))
        authority = Authority(folder / "mail", alpn=())
        mailbox = await stack.enter_async_context(Mailbox(authority))
        worker_clock = Clock(folder / "clock-worker")
        mail = {
            "MAIL_HOST": "127.0.0.1",
            "MAIL_PORT": str(mailbox.port),
            "SSL_CERT_FILE": str(authority.ca_file),
        }
        worker = Worker(deployment, **worker_clock.told(shim), **mail)
        stack.enter_context(ended_after(worker))
        links = [await stack.enter_async_context(Link(web.port, web.address)) for web in webs]
        yield Town(
            postgres, redis, model_url, deployment, webs, worker, links, hosts or links, clocks,
            worker_clock, mailbox,
        )  # fmt: skip


def _models(stack: AsyncExitStack, places: Sequence[tuple[str, ...]]) -> str:
    """A model in each place, under the same address there. Processes of their own, so that the judge's work does not
    slow them.
    """
    profile, plan = (msgspec.json.encode(part).decode() for part in (MODEL, PLAN))
    port = own_port()
    for enter in places:
        options = ("--port", str(port), "--profile", profile, "--plan", plan)
        command = [*enter, sys.executable, "-m", "tests.fakes.upstream", *options]
        process = subprocess.Popen(command, cwd=BASE_DIR, stdout=subprocess.PIPE, text=True)
        stack.callback(process.wait)
        stack.callback(process.kill)
        assert process.stdout
        url = json.loads(process.stdout.readline())["url"]
    return f"{url}/v1"


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
