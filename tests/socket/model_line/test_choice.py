"""Which of several model servers answers: the fastest, a second one when the first is late, none beyond the budget."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import pytest
from pytest_django import Settings

from apps.accounts.models import Site
from apps.engine.ports import ModelUnavailable
from apps.llm.deadlines import Deadlines
from apps.llm.line import Line
from apps.llm.models import DailySpend
from apps.llm.tactics import Tactics
from apps.stores.database import in_database
from tests.fakes.upstream.faults import Action, Place, Plan, fault, refusal
from tests.fakes.upstream.handle import Upstream
from tests.fakes.upstream.profile import Profile
from tests.fakes.upstream.script import Text
from tests.support.metrics import counted_here
from tests.support.model_line import (
    BUILTIN,
    PATIENT,
    QUICK,
    SAID,
    Heard,
    ask,
    asking,
    endpoint,
    opened,
    trust,
)

pytestmark = pytest.mark.django_db(transaction=True)

NAMES = ("a", "b", "c")
AT_ONCE, SLOW = Profile(), Profile(first_token_s=0.2)
HEDGING = Tactics(hedges=True, explores=False)
STALL = Plan(script=Text(SAID), faults=fault(Action.STALL, Place.DATA).faults)


@pytest.fixture
def servers(settings: Settings, tmp_path: Path) -> Iterator[dict[str, Upstream]]:
    """Three that answer at once."""
    with ExitStack() as stack:
        made = {name: stack.enter_context(Upstream()) for name in NAMES}
        for server in made.values():
            server.always(Plan(script=Text(SAID)))
        trust(settings, tmp_path, *made.values())
        yield made


@pytest.fixture
def three(site: Site, servers: dict[str, Upstream]) -> None:
    for name, server in servers.items():
        endpoint(site, server, name, 10)


@pytest.fixture
def pair(site: Site, servers: dict[str, Upstream]) -> None:
    """`a`, which answers at once, and `b`, which does not."""
    servers["b"].set_profile(SLOW)
    for name in "ab":
        endpoint(site, servers[name], name, 10)


@asynccontextmanager
async def opened_to_silence(
    site: Site, servers: dict[str, Upstream], deadlines: Deadlines = PATIENT
) -> AsyncIterator[Line]:
    """A line that hedges and knows how soon `a` answers; the next question stalls at both."""
    async with opened(site, deadlines, HEDGING) as line:
        await answered(line, site, 30)
        servers["a"].next(STALL)
        servers["b"].next(STALL)
        yield line


def hedges(end: str) -> float:
    return counted_here("chatsvc_llm_hedges_total", end=end)


async def answered(line: Line, site: Site, turns: int) -> Counter[str]:
    """How many answers came from where."""
    return Counter([(await ask(line, site)).done.endpoint for _ in range(turns)])


async def all_closed(*servers: Upstream) -> None:
    for server in servers:
        await server.until("requests_open", 0, exactly=True)


async def test_the_fast_one_answers_most_questions_and_another_when_it_has_become_slow(
    site: Site, servers: dict[str, Upstream], three: None
) -> None:
    good = Plan(script=Text(SAID))
    servers["a"].set_profile(SLOW)
    servers["c"].next(*[good, refusal(500, "server_error"), good, good, good] * 40)
    async with opened(site) as line:
        first = await answered(line, site, 60)
        servers["a"].set_profile(AT_ONCE)
        servers["b"].set_profile(SLOW)
        await answered(line, site, 20)
        then = await answered(line, site, 40)
        await all_closed(*servers.values())
    assert first["b"] >= 45
    assert then["b"] <= 8
    assert first["builtin"] == then["builtin"] == 0


async def test_an_answer_that_broke_off_is_begun_anew_by_another_endpoint(
    site: Site, servers: dict[str, Upstream]
) -> None:
    await in_database(endpoint, site, servers["a"], "a", 1)
    await in_database(endpoint, site, servers["b"], "b", 2)
    broken = fault(Action.RESET)
    servers["a"].next(Plan(script=Text(SAID), faults=broken.faults, tokens_per_s=50.0))
    async with opened(site) as line:
        heard = Heard()
        with pytest.raises(ModelUnavailable) as caught:
            await line.stream(site.pk, asking(cache_key="k"), heard)
        again = await ask(line, site, cache_key="k")
        other = await ask(line, site, cache_key="other")
    assert caught.value.said
    assert (again.text, again.done.endpoint) == (SAID, "b")
    assert other.done.endpoint == "a"


async def test_when_the_first_is_late_the_second_is_heard_and_the_first_is_stopped(
    site: Site, servers: dict[str, Upstream], pair: None
) -> None:
    async with opened(site, tactics=HEDGING) as line:
        await answered(line, site, 30)
        await in_database(DailySpend.objects.all().delete)
        before = hedges("won")
        servers["a"].next(STALL)
        heard = await ask(line, site)
        await servers["a"].until("aborts", 1)
        await all_closed(*servers.values())
    assert (heard.text, heard.done.endpoint) == (SAID, "b")
    assert hedges("won") == before + 1
    spent = await in_database(DailySpend.objects.get)
    assert heard.done.usage is not None
    assert spent.prompt_tokens > heard.done.usage.prompt_tokens  # that of the first is paid for as well
    assert spent.completion_tokens >= heard.done.usage.completion_tokens


async def test_a_late_first_that_is_sooner_than_the_second_is_heard_and_the_second_is_stopped(
    site: Site, servers: dict[str, Upstream], pair: None
) -> None:
    async with opened_to_silence(site, servers) as line:
        before = hedges("lost")
        turn = asyncio.create_task(ask(line, site))
        await servers["b"].until("stalled", 1)
        servers["a"].release()
        heard = await turn
        await servers["b"].until("aborts", 1)
        await all_closed(*servers.values())
    assert (heard.text, heard.done.endpoint) == (SAID, "a")
    assert hedges("lost") == before + 1


async def test_when_both_of_a_hedge_fail_the_builtin_answers(
    site: Site, servers: dict[str, Upstream], pair: None
) -> None:
    async with opened_to_silence(site, servers, QUICK) as line:
        heard = await ask(line, site)
        await all_closed(*servers.values())
    assert (heard.text, heard.done.endpoint) == (BUILTIN, "builtin")


async def test_stopping_a_turn_stops_both_of_its_requests(
    site: Site, servers: dict[str, Upstream], pair: None
) -> None:
    async with opened_to_silence(site, servers) as line:
        turn = asyncio.create_task(ask(line, site))
        await servers["b"].until("stalled", 1)
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        await all_closed(*servers.values())
        assert (await ask(line, site)).text == SAID


async def test_the_prompt_of_a_question_that_was_stopped_before_an_answer_began_is_paid_for(
    site: Site, servers: dict[str, Upstream]
) -> None:
    await in_database(endpoint, site, servers["a"], "a", 1)
    servers["a"].next(STALL)
    async with opened(site) as line:
        turn = asyncio.create_task(ask(line, site))
        await servers["a"].until("stalled", 1)
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        await all_closed(servers["a"])
    spent = await in_database(DailySpend.objects.get)
    assert spent.prompt_tokens == asking().prompt_tokens
    assert spent.completion_tokens == 0


async def test_without_budget_a_failure_is_answered_by_the_builtin_and_nobody_else_is_asked(
    site: Site, servers: dict[str, Upstream]
) -> None:
    await in_database(endpoint, site, servers["a"], "a", 1)
    await in_database(endpoint, site, servers["b"], "b", 2)
    servers["a"].next(refusal(404, "model_not_found", times=4))
    frugal = Tactics(extra_share=0.25, extra_at_once=1.0, extra_per_s=0.0)
    async with opened(site, tactics=frugal) as line:
        answers = [(await ask(line, site)).done.endpoint for _ in range(6)]
    assert answers == ["b", "builtin", "builtin", "builtin", "a", "a"]


async def test_a_hedge_is_not_asked_beyond_its_share(
    site: Site, servers: dict[str, Upstream], pair: None
) -> None:
    tight = Tactics(hedges=True, explores=False, hedged_share=0.0, extra_share=0.0, extra_at_once=0.5)
    async with opened(site, QUICK, tight) as line:
        await answered(line, site, 30)
        asked = servers["b"].counts().requests
        servers["a"].next(STALL)
        turn = asyncio.create_task(ask(line, site))
        await servers["a"].until("stalled", 1)
        heard = await turn  # late, and then too late
        assert heard.done.endpoint == "builtin"
        assert servers["b"].counts().requests == asked
