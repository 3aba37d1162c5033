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
class Drafted:
    """What a customer is writing, or has just sent, from whom and where, and the search of it."""

    conversation: str
    asker: Asker
    text: str
    locale: str
    search: StartedRetrieval


async def prompt_of_draft(runtime: Runtime, site: SiteSettings, drafted: Drafted) -> ModelRequest | None:
    """What the turn would ask its model, were the draft sent now; None where it would not, or need not.

    One query, another where the site's money has a cap. Waits for the draft's search.
    """
    if await spent(site) or not await in_database(awaits_customer, drafted.conversation):
        return None
    context = await runtime.contexts.of(drafted.conversation, 0)
    if not context.awaits_customer:
        return None
    return await expected_prompt(runtime, site, drafted, context.with_question(drafted.text), Waterfall())


async def expected_prompt(
    runtime: Runtime, site: SiteSettings, drafted: Drafted, context: Context, trace: Trace
) -> ModelRequest | None:
    """The same for a conversation that waits for its customer, as `context` with the text as its question. No query.

    The stages of making it go into `trace`.
    """
    if not runtime.line.has_model(site.id):
        return None
    with trace.stage("profile"):
        facts = await runtime.facts.facts(drafted.asker, needed=False)
    if facts.state is FactsState.UNAVAILABLE and needs_facts(drafted.text):
        return None
    with trace.stage("retrieval"):
        passages = await drafted.search.passages()
    if runtime.answers.holds(site, drafted.text, drafted.locale, drafted.search, passages):
        return None
    with trace.stage("context"):
        given = turn_input(
            site,
            conversation=drafted.conversation,
            question=drafted.text,
            locale=drafted.locale,
            verified=drafted.asker.verified,
            context=context,
        )
        return expected_request(given, facts, runtime.rules.current(site.id), passages)
