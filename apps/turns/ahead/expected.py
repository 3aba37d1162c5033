"""The prompt of a turn whose question is still being written, or stored."""

from __future__ import annotations

from dataclasses import dataclass

from apps.accounts.resident import SiteSettings
from apps.customers.facts import Asker
from apps.engine.context import Context
from apps.engine.needs import needs_facts
from apps.engine.ports import Trace
from apps.engine.turn import expected_request
from apps.engine.types import FactsState, ModelRequest
from apps.stores.database import in_database
from apps.telemetry.waterfall import Waterfall
from apps.turns.job import turn_input
from apps.turns.questions import awaits_customer
from apps.turns.records import spent
from apps.turns.retrieval import StartedRetrieval
from apps.turns.runtime import Runtime


@dataclass(frozen=True, slots=True)
class Asking:
    """What a customer asks, or writes and has not sent yet: who, where, and the search of it."""

    conversation: str
    asker: Asker
    text: str
    locale: str
    search: StartedRetrieval


async def prompt_of_draft(runtime: Runtime, site: SiteSettings, asking: Asking) -> ModelRequest | None:
    """What the turn would ask its model, were the draft sent now; None where it would not, or need not.

    One query, another where the site's money has a cap. Waits for the draft's search.
    """
    if await spent(site) or not await in_database(awaits_customer, asking.conversation):
        return None
    context = await runtime.contexts.of(asking.conversation, 0)
    if not context.awaits_customer:
        return None
    return await expected_prompt(runtime, site, asking, context.with_question(asking.text), Waterfall())


async def expected_prompt(
    runtime: Runtime, site: SiteSettings, asking: Asking, context: Context, trace: Trace
) -> ModelRequest | None:
    """The same for a conversation that waits for its customer, as `context` with the text as its question. No query.

    The stages of making it go into `trace`.
    """
    if not runtime.line.has_model(site.id):
        return None
    with trace.stage("profile"):
        facts = await runtime.facts.facts(asking.asker, needed=False)
    if facts.state is FactsState.UNAVAILABLE and needs_facts(asking.text):
        return None
    with trace.stage("retrieval"):
        passages = await asking.search.passages()
    if runtime.answers.holds(site, asking.text, asking.locale, asking.search, passages):
        return None
    with trace.stage("context"):
        given = turn_input(
            site,
            conversation=asking.conversation,
            question=asking.text,
            locale=asking.locale,
            verified=asking.asker.verified,
            context=context,
        )
        return expected_request(given, facts, runtime.rules.current(site.id), passages)
