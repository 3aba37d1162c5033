"""After every fault of a model server: the same endpoint answers again, and no task, slot or connection is left."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest

from apps.accounts.models import Site
from apps.engine.ports import ModelUnavailable
from apps.llm.deadlines import Deadlines
from apps.llm.line import Line
from apps.llm.models import ModelEndpoint
from apps.llm.pool import standing_here
from apps.stores.database import in_database
from tests.fakes.transport.listener import ConnectionFault
from tests.fakes.upstream.faults import DEBATABLE, FAILING, ODD, Action, Place, Plan, fault, refusal
from tests.fakes.upstream.handle import Upstream
from tests.fakes.upstream.script import Text
from tests.support.model_line import BUILTIN, PATIENT, QUICK, SAID, ask, opened, reloaded

pytestmark = pytest.mark.django_db(transaction=True)

EVERY = {**FAILING, **ODD, **DEBATABLE}
# After these an endpoint is left alone for a while, so that it cannot show at once that its slot is free.
RESTS = {"unauthorized", "forbidden", "rate_limited", "rate_limited_with_retry_after", "overloaded"}
# Only these are ended by a deadline; where none has to pass, a busy machine may take its time.
STALLS = {name for name, plan in EVERY.items() if any(fault.action is Action.STALL for fault in plan.faults)}

BROKEN = ("broken", "connect", "tls")  # by how far the handshake had come


@pytest.fixture
def one(one: ModelEndpoint) -> ModelEndpoint:
    """Answers one question at a time."""
    ModelEndpoint.objects.update(max_concurrent=1)
    return one


@asynccontextmanager
async def leaving_nothing(
    site: Site, upstream: Upstream, one: ModelEndpoint, deadlines: Deadlines = PATIENT
) -> AsyncIterator[Line]:
    """A line; at the end no answer runs, no slot is taken, no task is left, and every connection is closed."""
    before = asyncio.all_tasks()
    async with opened(site, deadlines) as line:
        own = asyncio.all_tasks()
        yield line
        await upstream.until("requests_open", 0, exactly=True)
        here = standing_here(one.pk)
        assert here is not None
        assert here.in_flight == 0
        assert asyncio.all_tasks() <= own
    await upstream.until("connections_open", 0, exactly=True)
    assert asyncio.all_tasks() <= before


async def asked(line: Line, site: Site) -> str:
    """Who answered, "broken" where the answer broke off."""
    try:
        return (await ask(line, site)).done.endpoint
    except ModelUnavailable:
        return "broken"


@pytest.mark.parametrize("http2", [False, True], ids=["http1", "http2"])
async def test_after_every_fault_the_only_slot_is_free_and_nothing_is_left_behind(
    http2: bool, site: Site, upstream: Upstream, one: ModelEndpoint
) -> None:
    await in_database(ModelEndpoint.objects.update, http2=http2)
    for names, deadlines in ((EVERY.keys() - RESTS - STALLS, PATIENT), (STALLS, QUICK)):
        async with leaving_nothing(site, upstream, one, deadlines) as line:
            for name in sorted(names):
                plan = EVERY[name]
                upstream.next(plan if plan.script else msgspec.structs.replace(plan, script=Text(SAID)))
                assert await asked(line, site) in ("first", "broken", "builtin"), name
                assert await asked(line, site) == "first", name
            if http2:
                upstream.release()  # httpx never resets a stream: the server goes on with what nobody reads


@pytest.mark.parametrize("name", sorted(RESTS))
async def test_a_refusal_leaves_nothing_behind(
    name: str, site: Site, upstream: Upstream, one: ModelEndpoint
) -> None:
    upstream.next(EVERY[name])
    async with leaving_nothing(site, upstream, one) as line:
        assert [await asked(line, site) for _ in range(2)] == ["builtin", "builtin"]


@pytest.mark.parametrize("how", list(ConnectionFault))
async def test_a_connection_that_fails_leaves_nothing_behind(
    how: ConnectionFault, site: Site, upstream: Upstream, one: ModelEndpoint
) -> None:
    async with leaving_nothing(
        site, upstream, one, QUICK if how is ConnectionFault.STALL else PATIENT
    ) as line:
        # In this order: what ends is opened again at once.
        upstream.break_connections(*[how] * 6)
        upstream.end_connections()
        assert await asked(line, site) == "builtin"
        upstream.forget()
        assert await asked(line, site) == "first"
    noted = (await reloaded(one)).last_error_kind
    assert noted in {"stall": ("stalled_first_data",), "reset": BROKEN, "close": BROKEN}.get(
        how.value, ("tls",)
    )


async def test_a_goaway_that_refuses_the_request_costs_no_answer(
    site: Site, upstream: Upstream, one: ModelEndpoint
) -> None:
    await in_database(ModelEndpoint.objects.update, http2=True)
    upstream.next(fault(Action.GOAWAY, Place.HEADERS))
    async with leaving_nothing(site, upstream, one) as line:
        assert (await ask(line, site)).text == SAID


async def test_a_slow_first_token_is_waited_for_up_to_its_deadline(
    site: Site, upstream: Upstream, one: ModelEndpoint
) -> None:
    upstream.next(Plan(script=Text(SAID), first_token_s=0.5), Plan(script=Text(SAID), first_token_s=10.0))
    async with leaving_nothing(site, upstream, one, QUICK) as line:
        assert (await ask(line, site)).text == SAID
        assert (await ask(line, site)).text == BUILTIN
    assert (await reloaded(one)).last_error_kind == "stalled_first_data"


@pytest.mark.parametrize(
    "limit",
    [
        refusal(429, "rate_limit_exceeded", retry_after="300"),
        refusal(429, "rate_limit_exceeded"),
        refusal(503, "overloaded", retry_after="300"),
    ],
    ids=["429 with Retry-After", "429 without", "503 with Retry-After"],
)
async def test_an_endpoint_that_asks_for_rest_is_not_asked_meanwhile(
    limit: Plan, site: Site, upstream: Upstream, one: ModelEndpoint
) -> None:
    upstream.next(limit)
    async with leaving_nothing(site, upstream, one) as line:
        assert [await asked(line, site) for _ in range(4)] == ["builtin"] * 4
    assert sum(seen.method == "POST" for seen in upstream.requests()) == 1


async def test_a_storm_of_errors_is_asked_three_times_however_many_questions_come(
    site: Site, upstream: Upstream, one: ModelEndpoint
) -> None:
    upstream.always(refusal(500, "server_error"))
    async with leaving_nothing(site, upstream, one) as line:
        answers = [await ask(line, site) for _ in range(3)]
        answers += await asyncio.gather(*(ask(line, site) for _ in range(30)))
    assert {heard.text for heard in answers} == {BUILTIN}
    assert sum(seen.method == "POST" for seen in upstream.requests()) == 3
