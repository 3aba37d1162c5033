"""What choosing among endpoints brings: `python -m bench.endpoints`.

Three fake servers over TLS, conversations of five turns: one slow, one fast that lets 3 of 100 answers wait for a
second, one as fast that refuses a fifth of them. A Markdown table on standard output, in about a minute.
"""

from __future__ import annotations

import asyncio
import os
import random
import statistics
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

_FOLDER = tempfile.TemporaryDirectory(prefix="chatsvc-bench-")
_AUTHORITIES = Path(_FOLDER.name) / "authorities.pem"
os.environ.update(
    DATABASE_URL=f"sqlite:///{_FOLDER.name}/bench.sqlite3",
    CHATSVC_VAR=_FOLDER.name,
    SECRET_KEY="only-for-the-bench" * 3,
    DJANGO_SETTINGS_MODULE="chatsvc.settings",
    LLM_CA_FILE=str(_AUTHORITIES),
)

import django  # noqa: E402 - its settings first

django.setup()

from django.core.management import call_command  # noqa: E402

from apps.accounts.models import Site, Workspace  # noqa: E402
from apps.engine.events import Done, ModelEvent, TextDelta  # noqa: E402
from apps.engine.types import ChatMessage, Facts, FactsState, ModelRequest  # noqa: E402
from apps.llm.line import Line  # noqa: E402
from apps.llm.models import ModelEndpoint  # noqa: E402
from apps.llm.tactics import Tactics  # noqa: E402
from apps.stores.database import in_database  # noqa: E402
from tests.fakes.upstream.faults import Plan, refusal  # noqa: E402
from tests.fakes.upstream.handle import Upstream  # noqa: E402
from tests.fakes.upstream.profile import Profile  # noqa: E402
from tests.fakes.upstream.script import Filler  # noqa: E402

TURNS, TURNS_OF_A_CONVERSATION, AT_ONCE = 300, 5, 4
TOKENS = 8
SLOW_S, FAST_S, TAIL_S = 0.4, 0.08, 1.0
LATE = 0.03  # of the fast one's answers

OFF = Tactics(scored=False, sticky=False, explores=False)
SCORED = Tactics()
ARMS = {
    "by name": OFF,
    "scored": SCORED,
    "scored, not sticky": replace(SCORED, sticky=False),
    "scored, no tries": replace(SCORED, explores=False),
    "scored and hedged": replace(SCORED, hedges=True),
}


def main() -> None:
    call_command("migrate", verbosity=0)
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores; {TURNS} turns, {AT_ONCE} at a time\n")
    print("| arm | first text P50, ms | P95 | P99 | mean | fast | requests a turn | builtin |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    with ExitStack() as stack:
        servers = [stack.enter_context(Upstream(_profile(first_s))) for first_s in (SLOW_S, FAST_S, FAST_S)]
        _AUTHORITIES.write_text("\n".join(Path(server.ca_file).read_text() for server in servers))
        for name, tactics in ARMS.items():
            _plan(servers)
            _measure(name, tactics, servers)


def _measure(name: str, tactics: Tactics, servers: list[Upstream]) -> None:
    times, answered = asyncio.run(_arm(_site(servers).pk, tactics))
    posts = sum(seen.method == "POST" for server in servers for seen in server.requests())
    cuts = statistics.quantiles(times, n=100)
    figures = [f"{1000 * value:.0f}" for value in (cuts[49], cuts[94], cuts[98], statistics.fmean(times))]
    cells = (name, *figures, f"{answered['fast'] / TURNS:.0%}", f"{posts / TURNS:.3f}", answered["builtin"])
    print(f"| {' | '.join(str(cell) for cell in cells)} |", flush=True)


def _profile(first_s: float) -> Profile:
    return Profile(first_token_low_s=0.7 * first_s, first_token_s=first_s, first_token_high_s=1.3 * first_s)


def _plan(servers: list[Upstream]) -> None:
    """The same faults for every arm, whoever meets them."""
    dice = random.Random(3)
    _, fast, failing = servers
    answer = Plan(script=Filler(TOKENS))
    late = Plan(script=Filler(TOKENS), first_token_s=TAIL_S)
    refused = refusal(500, "server_error")
    for server in servers:
        server.forget()
        server.always(answer)
    fast.next(*(late if dice.random() < LATE else answer for _ in range(2 * TURNS)))
    failing.next(*(refused if dice.random() < 0.2 else answer for _ in range(2 * TURNS)))


def _site(servers: list[Upstream]) -> Site:
    site = Site.objects.create(workspace=Workspace.objects.create(name="Bench"), name="Bench")
    for name, server in zip(("a slow one", "fast", "refusing"), servers, strict=True):
        ModelEndpoint.objects.create(site=site, name=name, base_url=server.base_url, model="m", api_key="k")
    return site


async def _arm(site: str, tactics: Tactics) -> tuple[list[float], Counter[str]]:
    """Seconds to the first text of each turn, and whose it was."""
    line = Line(tactics=tactics)
    await in_database(line.refresh, site, 1)
    await line.open()
    times: list[float] = []
    answered: Counter[str] = Counter()
    left = iter(range(TURNS // TURNS_OF_A_CONVERSATION))

    async def talk() -> None:
        for conversation in left:
            endpoint = ""
            for _ in range(TURNS_OF_A_CONVERSATION):
                endpoint = await _turn(line, site, f"c{conversation}", endpoint, times)
                answered[endpoint] += 1

    await asyncio.gather(*(talk() for _ in range(AT_ONCE)))
    await line.close()
    return times, answered


async def _turn(line: Line, site: str, key: str, endpoint: str, times: list[float]) -> str:
    begun, heard = time.perf_counter(), list[ModelEvent]()

    async def hear(event: ModelEvent) -> None:
        if isinstance(event, TextDelta) and not heard:
            times.append(time.perf_counter() - begun)
        heard.append(event)

    message = ChatMessage("user", "Do lamps dream?")
    request = ModelRequest(
        (message,), message.content, "en", Facts(False, FactsState.NONE), (), cache_key=key, endpoint=endpoint
    )
    await line.stream(site, request, hear)
    last = heard[-1]
    return last.endpoint if isinstance(last, Done) else ""


if __name__ == "__main__":
    main()
