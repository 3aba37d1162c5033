"""The installation under the soak: PostgreSQL, Redis, a shop, a model over TLS, two web processes and a worker."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec

from bench.turn.stack import model_server
from chatsvc.environment import BASE_DIR
from tests.fakes.shop.catalog import lantern
from tests.fakes.shop.handle import Shop
from tests.fakes.upstream.control_http import RemoteUpstream
from tests.fakes.upstream.faults import Plan
from tests.fakes.upstream.profile import Profile
from tests.fakes.upstream.script import Filler
from tests.services import postgres_server, private_folder, redis_server
from tests.support.database import Databases
from tests.support.processes import Deployment, Web, Worker, ended_after

ANSWER_TOKENS = 40
DEFECTS = 10
MODEL = Profile(name="quick", rtt_s=0.01, first_token_s=0.05, tokens_per_s=40.0, jitter=0.2)
_SECRETS = {"SECRET_KEY": "only-for-a-bench-0123456789-0123456789-0123456789"}


class People(msgspec.Struct, frozen=True):
    """Who comes: customers with a token of their shop or of ours, visitors' tokens to come, agents' cookies."""

    identities: tuple[str, ...]
    visitors: tuple[str, ...]
    agents: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Stack:
    """Everything runs and is ready."""

    deployment: Deployment
    webs: tuple[Web, ...]
    worker: Worker
    upstream: RemoteUpstream
    variables: dict[str, str]
    shop: Shop

    def people(self, customers: int, visitors: int, agents: int) -> People:
        """Two new sites with the same articles, rules and shop: one asks its model over HTTP, one over sockets."""
        counts = (str(customers), str(visitors), str(agents))
        command = ["-m", "bench.soak.seed", self.shop.url, self.shop.key, self.upstream.base_url, *counts]
        done = subprocess.run(
            [sys.executable, *command],
            cwd=BASE_DIR,
            env={**os.environ, **self.variables},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(done.stdout + done.stderr)
        return msgspec.json.decode(done.stdout, type=People)


@contextmanager
def running(customers: int, webs: int = 2, model: Profile = MODEL) -> Iterator[Stack]:
    """A fresh installation on this machine, gone at the end."""
    with ExitStack() as parts:
        os.environ.update(_SECRETS)
        folder = parts.enter_context(private_folder("soak-"))
        redis = parts.enter_context(redis_server())
        database = parts.enter_context(Databases(folder, parts.enter_context(postgres_server())).fresh())
        deployment = Deployment(database, redis, folder)
        upstream = model_server(parts, folder / "authority", "instant", None)
        upstream.set_profile(model)
        upstream.always(Plan(script=Filler(tokens=ANSWER_TOKENS)))
        mia = lantern(datetime.now(UTC).date())["mia"]
        known = {f"c{n}": msgspec.structs.replace(mia, id=f"c{n}") for n in range(customers)}
        shop = parts.enter_context(Shop(customers=known))
        variables = {
            **_SECRETS,
            **deployment.variables,
            "CHATSVC_DEMO": "0",
            "LLM_CA_FILE": upstream.ca_file,
            "LLM_BASE_URL": "",
        }
        worker = Worker(deployment, **variables)
        parts.enter_context(ended_after(worker))
        started = []
        for number in range(webs):
            started.append(Web(deployment, f"web-{number}", "/readyz", None, **variables))
            parts.enter_context(ended_after(started[-1]))
        yield Stack(deployment, tuple(started), worker, upstream, variables, shop)


def defects(stack: Stack) -> list[str]:
    """What the processes have logged as an error, with its traceback; the newest last."""
    found = [
        entry[0]
        for process in (*stack.webs, stack.worker)
        for entry in re.finditer(
            r"^\S+ \S+ ERROR .*\n(?:(?!\d{4}-\d\d-\d\d ).*\n)*", process.output(), re.MULTILINE
        )
    ]
    return found[-DEFECTS:]
