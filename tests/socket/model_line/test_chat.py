"""A line of chat completions over real TLS: connections, rests, spending, and which endpoint answers at all."""

from __future__ import annotations

import asyncio
import dataclasses
from contextlib import suppress
from pathlib import Path

import pytest
from pytest_django import Settings

from apps.accounts.models import Site
from apps.engine.events import HandoffCall, ModelEvent, TextDelta
from apps.llm import records
from apps.llm.line import Line
from apps.llm.models import DailySpend, ModelEndpoint
from apps.stores.database import in_database
from tests.fakes.upstream.faults import Action, Place, Plan, fault, refusal
from tests.fakes.upstream.handle import Upstream
from tests.fakes.upstream.profile import Chunking, Dialect, Profile
from tests.fakes.upstream.script import Filler, Text
from tests.support.metrics import counted_here
from tests.support.model_line import (
    BUILTIN,
    PATIENT,
    QUICK,
    SAID,
    Heard,
    answers,
    ask,
    asking,
    body_of,
    opened,
    reloaded,
    trust,
)

pytestmark = pytest.mark.django_db(transaction=True)


async def test_a_warm_connection_serves_the_first_question_and_the_next(
    site: Site, upstream: Upstream, one: ModelEndpoint
) -> None:
    async with opened(site) as line:
        warmed = upstream.counts()
        await ask(line, site)
        await ask(line, site)
        counts = upstream.counts()
    assert warmed.connections_opened == 1
    assert (counts.connections_opened, counts.tls_handshakes, counts.requests) == (1, 1, 3)


async def test_an_http2_endpoint_multiplexes_over_one_connection(
    site: Site, upstream: Upstream, one: ModelEndpoint
) -> None:
    await in_database(ModelEndpoint.objects.update, http2=True)
    async with opened(site) as line:
        heard = await asyncio.gather(*(ask(line, site) for _ in range(5)))
        counts = upstream.counts()
    assert {each.text for each in heard} == {SAID}
    assert counts.connections_opened == 1
    assert "2" in answers(upstream)[-1].http


async def test_an_http2_endpoint_is_read_as_fast_as_it_speaks(
    site: Site, upstream: Upstream, one: ModelEndpoint
) -> None:
    await in_database(ModelEndpoint.objects.update, http2=True)
    upstream.next(Plan(script=Filler(500)))
    # A pause after each of its frames would take 25 s.
    async with opened(site, dataclasses.replace(PATIENT, turn_s=12.0)) as line:
        heard = await ask(line, site)
    assert "2" in answers(upstream)[-1].http
    assert heard.done.endpoint == one.name


async def test_after_its_first_pieces_an_answer_is_read_together(
    site: Site, upstream: Upstream, one: ModelEndpoint
) -> None:
    upstream.next(Plan(script=Filler(200), tokens_per_s=200.0))
    async with opened(site, dataclasses.replace(PATIENT, turn_s=12.0)) as line:
        heard = await ask(line, site)
    assert heard.done.endpoint == one.name
    assert sum(isinstance(event, TextDelta) for event in heard.events) < 100


async def test_an_answer_that_is_whole_is_kept_although_its_turn_ends_before_all_is_read(
    site: Site, upstream: Upstream, one: ModelEndpoint
) -> None:
    # All in one packet, but for the end of the body.
    upstream.next(Plan(script=Text(SAID), dialect=Dialect(chunking=Chunking.BURST, done=False)))
    deadlines = dataclasses.replace(PATIENT, turn_s=2.0)
    loop = asyncio.get_running_loop()

    class Late(Heard):
        """Takes the text, and goes on when the turn is over."""

        async def __call__(self, event: ModelEvent) -> None:
            await super().__call__(event)
            with suppress(TimeoutError):
                async with asyncio.timeout_at(ends if isinstance(event, TextDelta) else loop.time()):
                    await asyncio.Event().wait()

    async with opened(site, deadlines) as line:
        heard, ends = Late(), loop.time() + deadlines.turn_s
        await line.stream(site.pk, asking(), heard)
    assert (heard.text, heard.done.finish, heard.done.endpoint) == (SAID, "stop", one.name)


async def test_the_request_offers_the_handoff_and_asks_for_usage(
    site: Site, upstream: Upstream, one: ModelEndpoint
) -> None:
    await in_database(ModelEndpoint.objects.update, extra_body={"temperature": 0.3}, dialect="openai")
    async with opened(site) as line:
        await ask(line, site, cache_key="site-7")
    seen = answers(upstream)[-1]
    body = body_of(seen)
    assert body["stream_options"] == {"include_usage": True, "include_obfuscation": False}
    assert body["tools"][0]["function"]["parameters"]["properties"]["team"]["enum"] == ["Support", "Returns"]
    assert (body["max_completion_tokens"], body["prompt_cache_key"], body["temperature"]) == (
        700,
        "site-7",
        0.3,
    )
    assert next(reversed(body)) == "messages"
    assert seen.headers["authorization"] == "Bearer k"


async def test_keep_alive_comments_do_not_hold_a_deadline(
    site: Site, upstream: Upstream, one: ModelEndpoint
) -> None:
    upstream.next(fault(Action.STALL, Place.DATA, keepalive_s=0.01))
    async with opened(site, QUICK) as line:
        heard = await ask(line, site)
        await upstream.until("aborts", 1)
    assert heard.text == BUILTIN
    assert (await reloaded(one)).last_error_kind == "stalled_first_data"


async def test_an_endpoint_that_refuses_connections_is_replaced_and_found_again(
    site: Site, one: ModelEndpoint, upstream: Upstream, second: Upstream
) -> None:
    upstream.refuse()
    async with opened(site) as line:
        assert (await ask(line, site)).done.endpoint == "second"
        upstream.accept()
        assert (await ask(line, site)).done.endpoint == "first"


async def test_a_connection_closed_while_idle_costs_no_answer(
    site: Site, upstream: Upstream, one: ModelEndpoint
) -> None:
    async with opened(site) as line:
        await ask(line, site)
        upstream.end_connections()
        assert (await ask(line, site)).text == SAID


async def test_three_failures_in_a_row_send_an_endpoint_to_rest(
    site: Site, one: ModelEndpoint, upstream: Upstream, second: Upstream
) -> None:
    upstream.always(refusal(500, "server_error"))
    async with opened(site) as line:
        answers = [await ask(line, site) for _ in range(5)]
    assert {heard.done.endpoint for heard in answers} == {"second"}
    assert upstream.counts().requests == 1 + 3  # its warm-up, and no more after the third


async def test_a_wrong_key_of_the_settings_asks_for_an_administrator_too(
    site: Site, upstream: Upstream, settings: Settings, tmp_path: Path
) -> None:
    trust(settings, tmp_path, upstream)
    settings.ENVIRONMENT = dataclasses.replace(
        settings.ENVIRONMENT, llm_base_url=upstream.base_url, llm_model="m", llm_api_key="wrong"
    )
    upstream.set_profile(Profile(api_keys=("right",)))
    async with opened(site) as line:
        answered = await ask(line, site)
    assert answered.done.endpoint == "builtin"
    assert await in_database(records.ailing_default, Site.objects.all()) is not None
    upstream.set_profile(Profile(api_keys=("wrong",)))
    async with opened(site) as line:
        answered = await ask(line, site)
    assert answered.done.endpoint == "default"
    assert await in_database(records.ailing_default, Site.objects.all()) is None


async def test_spend_is_booked_and_at_the_cap_the_builtin_answers(
    site: Site, upstream: Upstream, one: ModelEndpoint
) -> None:
    await in_database(Site.objects.update, daily_spend_cap="0.01")
    async with opened(site) as line:
        heard = await ask(line, site)
        usage = heard.done.usage
    spent = await in_database(DailySpend.objects.get)
    assert usage is not None
    assert (spent.prompt_tokens, spent.completion_tokens) == (usage.prompt_tokens, usage.completion_tokens)
    assert float(spent.cost) == pytest.approx((usage.prompt_tokens + 9 * usage.completion_tokens) / 1e3)
    async with opened(site) as line:
        assert (await ask(line, site)).done.endpoint == "builtin"
        await in_database(Site.objects.update, daily_spend_cap=None)
        await in_database(line.refresh, site.pk, 2)
        assert (await ask(line, site)).done.endpoint == "first"


async def test_the_endpoint_of_the_settings_serves_sites_that_have_none(
    site: Site, plain_upstream: Upstream, settings: Settings
) -> None:
    plain_upstream.always(Plan(script=Text("From the settings.")))
    environment = settings.ENVIRONMENT
    settings.ENVIRONMENT = dataclasses.replace(
        environment, llm_base_url=plain_upstream.base_url, llm_model="m"
    )
    async with opened(site) as line:
        assert (await ask(line, site)).text == "From the settings."


async def test_a_site_with_endpoints_of_its_own_never_uses_that_of_the_settings(
    site: Site, upstream: Upstream, one: ModelEndpoint, plain_upstream: Upstream, settings: Settings
) -> None:
    environment = settings.ENVIRONMENT
    settings.ENVIRONMENT = dataclasses.replace(
        environment, llm_base_url=plain_upstream.base_url, llm_model="m"
    )
    upstream.always(refusal(500, "server_error"))
    async with opened(site) as line:
        assert (await ask(line, site)).done.endpoint == "builtin"
    assert plain_upstream.counts().requests == 0


async def test_a_site_that_was_never_loaded_is_loaded_by_its_first_question(
    site: Site, upstream: Upstream, one: ModelEndpoint
) -> None:
    line = Line(PATIENT)
    await line.open()
    try:
        assert line.loaded_version(site.pk) == 0
        assert (await ask(line, site)).done.endpoint == "first"
    finally:
        await line.close()


async def test_an_edited_endpoint_replaces_the_old_one_and_its_connections(
    site: Site, upstream: Upstream, one: ModelEndpoint, plain_upstream: Upstream
) -> None:
    plain_upstream.always(Plan(script=Text("From the other.")))
    async with opened(site) as line:
        assert (await ask(line, site)).text == SAID
        await in_database(ModelEndpoint.objects.update, base_url=plain_upstream.base_url)
        await in_database(line.refresh, site.pk, 2)
        assert line.loaded_version(site.pk) == 2
        assert (await ask(line, site)).text == "From the other."
        await upstream.until("connections_open", 0, exactly=True)


async def test_the_builtin_can_be_asked_for(site: Site, upstream: Upstream, one: ModelEndpoint) -> None:
    heard = Heard()
    async with opened(site) as line:
        await line.stream(site.pk, asking("talk to a human"), heard, force_builtin=True)
    assert HandoffCall("The customer asked for a person.") in heard.events
    assert upstream.counts().requests == 1  # its warm-up


async def test_an_answer_of_the_builtin_is_counted_by_why_it_spoke(
    site: Site, upstream: Upstream, one: ModelEndpoint
) -> None:
    def counted(reason: str) -> float:
        return counted_here("chatsvc_llm_builtin_answers_total", reason=reason)

    before = {reason: counted(reason) for reason in ("refused", "resting", "no_endpoint", "forced")}
    upstream.next(refusal(404, "model_not_found"), refusal(401, "invalid_api_key"))
    async with opened(site) as line:
        for _ in range(3):
            await ask(line, site)
        await line.stream(site.pk, asking(), Heard(), force_builtin=True)
        await in_database(ModelEndpoint.objects.update, enabled=False)
        await in_database(line.refresh, site.pk, 2)
        await ask(line, site)
    assert {reason: counted(reason) - before[reason] for reason in before} == dict.fromkeys(before, 1.0)
