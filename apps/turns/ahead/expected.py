"""The prompt of a turn whose question is still being written."""

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
from apps.turns.job import turn_input
from apps.turns.questions import awaits_customer
from apps.turns.records import spent
from apps.turns.retrieval import StartedRetrieval
from apps.turns.runtime import Runtime


@dataclass(frozen=True, slots=True)
class Drafted:
    """What a customer is writing, from whom and where, and the search of it."""

    conversation: str
    asker: Asker
    text: str
    locale: str
    search: StartedRetrieval


async def context_of_draft(runtime: Runtime, site: SiteSettings, drafted: Drafted) -> Context | None:
    """The conversation with the draft as its question; None where that would not be the assistant's, or its model's.

    One query, another where the site's money has a cap.
    """
    if await spent(site) or not await in_database(awaits_customer, drafted.conversation):
        return None
    context = await runtime.contexts.of(drafted.conversation, 0)
    return context.with_question(drafted.text) if context.awaits_customer else None


async def expected_prompt(
    runtime: Runtime, site: SiteSettings, drafted: Drafted, context: Context, trace: Trace
) -> ModelRequest | None:
    """What the turn would ask its model, were the draft sent now; None where it would not, or need not.

    `context` is the conversation with the draft as its question. Waits for the draft's search; no query.
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
