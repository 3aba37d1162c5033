"""Whether a real model server and the product's line understand each other: `python -m bench.turn.protocol URL MODEL`.

One line of JSON a check: streamed in pieces, told its usage, found its prefix again, was freed by a cancel.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from dataclasses import dataclass

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatsvc.settings")

import django

django.setup()

import httpx  # noqa: E402 - the line needs the setup

from apps.engine.events import Done, ModelEvent, TextDelta  # noqa: E402
from apps.engine.types import ChatMessage, Facts, FactsState, ModelRequest, Usage  # noqa: E402
from apps.llm.deadlines import Deadlines  # noqa: E402
from apps.llm.endpoint import Endpoint  # noqa: E402
from apps.llm.spec import Api, EndpointSpec  # noqa: E402

PATIENT = Deadlines(first_data_s=120.0, between_data_s=60.0)
ENDS_S = 180.0
FREED_S = 10.0
LONG = 400  # tokens
POLICY = "You are the kind assistant of a shop for lamps. " * 20


@dataclass(frozen=True, slots=True)
class Check:
    """One thing the server must do over one API; `told` says in words what it did."""

    api: str
    name: str
    passed: bool
    told: str


def main() -> int:
    base_url, model = sys.argv[1:]
    checks = asyncio.run(_checks(base_url, model))
    for check in checks:
        sys.stdout.write(
            json.dumps({"api": check.api, "check": check.name, "passed": check.passed, "told": check.told})
            + "\n"
        )
    return 0 if all(check.passed for check in checks) else 1


async def _checks(base_url: str, model: str) -> list[Check]:
    found: list[Check] = []
    for api in (Api.CHAT_COMPLETIONS, Api.RESPONSES):
        spec = EndpointSpec(
            "real", base_url, model, api=api, dialect="llamacpp", max_output_tokens=LONG, prepare_prompts=True
        )
        endpoint = Endpoint(spec, PATIENT)
        try:
            found += [*await _streams(endpoint, api.value), await _frees(endpoint, api.value, base_url)]
        finally:
            await endpoint.close()
    return found


class _Heard:
    """What a turn hears, and when it heard the first of it."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.usage: Usage | None = None
        self.first = asyncio.Event()

    async def __call__(self, event: ModelEvent) -> None:
        if isinstance(event, TextDelta):
            self.pieces.append(event.text)
            self.first.set()
        elif isinstance(event, Done):
            self.usage = event.usage


async def _streams(endpoint: Endpoint, api: str) -> list[Check]:
    first, second = _Heard(), _Heard()
    await endpoint.stream(_request("Say hello in one sentence.", 24), first, _ends())
    ahead = await endpoint.prepare(_request("", 24))
    await endpoint.stream(_request("Say goodbye in one sentence.", 24), second, _ends())
    usage, again = first.usage or Usage(0, 0), second.usage or Usage(0, 0)
    share = again.cached_tokens / again.prompt_tokens if again.prompt_tokens else 0.0
    return [
        Check(api, "streams", len(first.pieces) > 2, f"{len(first.pieces)} pieces"),
        Check(
            api, "tells its usage", usage.prompt_tokens > 100 and usage.completion_tokens > 0,
            f"{usage.prompt_tokens} + {usage.completion_tokens} tokens",
        ),
        Check(api, "reads ahead", ahead is not None, f"{ahead.prompt_tokens if ahead else 0} tokens"),
        Check(api, "finds its prefix", share > 0.9, f"{share:.1%} of {again.prompt_tokens} tokens"),
    ]  # fmt: skip


async def _frees(endpoint: Endpoint, api: str, base_url: str) -> Check:
    """A cancelled answer must not go on: its slot is idle long before so many tokens could have been written."""
    heard = _Heard()
    asked = asyncio.create_task(endpoint.stream(_request("Count to five hundred.", LONG), heard, _ends()))
    async with asyncio.timeout(ENDS_S):
        await heard.first.wait()
    busy = await _busy(base_url)
    asked.cancel()
    began = time.monotonic()
    await asyncio.wait([asked])
    while (left := await _busy(base_url)) and time.monotonic() - began < FREED_S:  # noqa: ASYNC110 - a server tells nobody
        await asyncio.sleep(0.02)
    took_ms = (time.monotonic() - began) * 1_000
    return Check(
        api, "is freed by a cancel", busy == 1 and left == 0, f"{busy} busy, {left} after {took_ms:.0f} ms"
    )


async def _busy(base_url: str) -> int:
    async with httpx.AsyncClient(timeout=10) as client:
        slots = (await client.get(f"{base_url.removesuffix('/v1')}/slots")).json()
    return sum(bool(slot["is_processing"]) for slot in slots)


def _request(question: str, tokens: int) -> ModelRequest:
    asked = (ChatMessage("user", question),) if question else ()
    return ModelRequest(
        (ChatMessage("system", POLICY), *asked), question, "en", Facts(False, FactsState.NONE), (),
        max_output_tokens=tokens,
    )  # fmt: skip


def _ends() -> float:
    return asyncio.get_running_loop().time() + ENDS_S


if __name__ == "__main__":
    sys.exit(main())
