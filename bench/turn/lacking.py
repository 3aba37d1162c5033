"""The product without one of its mechanisms: `python -m bench.turn.lacking MECHANISM serve …`.

Each is taken out where it works, in this process only, and put back to what a turn would do without it. The product
itself carries no switch for them.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable
from enum import StrEnum
from functools import partial
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatsvc.settings")


class Mechanism(StrEnum):
    """What can be left out, and which of the mechanisms' names it has in the documentation."""

    WARM_LINE = "warm line"  # U1: a new connection for every request
    PRELOAD = "preload"  # P1: facts are fetched in the turn that needs them, each time
    RESIDENT_RULES = "resident rules"  # P2: compiled in each turn
    RESIDENT_CONTEXT = "resident context"  # C2: the whole history is read in each turn
    STABLE_PREFIX = "stable prefix"  # C3: articles and facts stand before the history
    EARLY_SEARCH = "early search"  # the search starts when the turn asks for it, not with the question
    EARLY_REQUEST = "early request"  # the model is asked when the question is stored
    FIRST_TOKENS_AT_ONCE = "first tokens at once"  # L7: every token waits for a tick of 50 ms


def without_warm_line() -> None:
    import aiohttp  # noqa: PLC0415 - as below: Django must be set up first

    from apps.llm import endpoint  # noqa: PLC0415

    async def not_warmed(self: Any) -> None:
        self.warm_due = asyncio.get_running_loop().time() + 3_600

    endpoint.Endpoint.warm = not_warmed  # type: ignore[method-assign]
    connector = aiohttp.TCPConnector

    def closing_connector(**options: Any) -> Any:
        return connector(
            **{
                **options,
                "keepalive_timeout": aiohttp.helpers.sentinel,
                "force_close": True,
                "use_dns_cache": False,
            }
        )

    aiohttp.TCPConnector = closing_connector  # type: ignore[misc,assignment]


def without_preload() -> None:
    from apps.customers import copies  # noqa: PLC0415
    from apps.turns.ahead import preload  # noqa: PLC0415

    async def no_copy(*_: Any, **__: Any) -> None:
        return None

    copies.read = no_copy
    preload.Preloader.conversation_opened = lambda *_: None  # type: ignore[method-assign]


def without_resident_rules() -> None:
    from apps.rulebook import resident  # noqa: PLC0415

    def compiled_now(self: Any, site_id: str) -> Any:
        with _synchronous():
            return self.load(site_id)

    resident.RuleResident.current = compiled_now  # type: ignore[method-assign]


def without_resident_context() -> None:
    from apps.turns.kept import contexts  # noqa: PLC0415

    read = contexts.Contexts.of

    async def read_anew(self: Any, conversation: str, upto: int) -> Any:
        self._drop(conversation)
        return await read(self, conversation, upto)

    contexts.Contexts.of = read_anew  # type: ignore[method-assign]


def without_stable_prefix() -> None:
    from apps.engine import context, prompt  # noqa: PLC0415

    def volatile_first(self: Any, policy: Any, facts: Any, passages: Any, instructions: Any) -> Any:
        volatile = prompt.volatile_message(passages, instructions)
        head = (policy, facts) if volatile is None else (policy, volatile, facts)
        return (*head, *(said.message for said in self.said))

    context.Context.prompt = volatile_first  # type: ignore[method-assign]


def without_early_search() -> None:
    from apps.turns import retrieval, supervisor  # noqa: PLC0415

    class Late(retrieval.StartedRetrieval):
        def __init__(self, spawn: Any, knowledge: Any, **question: Any) -> None:
            self._begin = partial(super().__init__, spawn, knowledge, **question)
            self._found = None

        async def passages(self) -> Any:
            self._begin()
            return await super().passages()

        def cancel(self) -> None:
            if hasattr(self, "_task"):
                super().cancel()

    def search(self: Any, asked: Any) -> Any:
        on = self._runtime
        return Late(on.spawn, on.knowledge, site=asked.site, text=asked.text, locale=asked.locale)

    supervisor.Supervisor._search = search  # type: ignore[method-assign]


def without_early_request() -> None:
    from apps.turns.ahead import early  # noqa: PLC0415

    early.EarlyAnswers.ask = lambda *_: None  # type: ignore[method-assign]


def without_first_tokens_at_once() -> None:
    from apps.turns import fanout  # noqa: PLC0415
    from apps.wire.protocol import DELTA_INTERVAL_S  # noqa: PLC0415

    def until_the_tick(self: Any) -> float:
        return DELTA_INTERVAL_S - time.monotonic() % DELTA_INTERVAL_S

    vars(fanout).update(PROMPT_PIECES=0, EARLY_S=-1.0)  # nothing leaves but with the tick
    fanout.Fanout._due_s = until_the_tick  # type: ignore[method-assign]


class _synchronous:
    """Lets this thread ask the database although a loop runs in it, as code that compiles in its turn would."""

    def __enter__(self) -> None:
        os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"

    def __exit__(self, *_: object) -> None:
        del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


LEAVE_OUT: dict[Mechanism, Callable[[], None]] = {
    Mechanism.WARM_LINE: without_warm_line,
    Mechanism.PRELOAD: without_preload,
    Mechanism.RESIDENT_RULES: without_resident_rules,
    Mechanism.RESIDENT_CONTEXT: without_resident_context,
    Mechanism.STABLE_PREFIX: without_stable_prefix,
    Mechanism.EARLY_SEARCH: without_early_search,
    Mechanism.EARLY_REQUEST: without_early_request,
    Mechanism.FIRST_TOKENS_AT_ONCE: without_first_tokens_at_once,
}


if __name__ == "__main__":
    import django

    django.setup()

    from django.core.management import execute_from_command_line

    LEAVE_OUT[Mechanism(sys.argv[1])]()
    execute_from_command_line(["manage.py", *sys.argv[2:]])
