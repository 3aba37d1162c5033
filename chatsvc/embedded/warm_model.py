"""Sends each site's unchanging prompt to the model once, so that the first customer does not wait for it.

A process of its own (`python -m chatsvc.embedded.warm_model`); it asks as a turn does, by the same code, because
a prefix is reused only where every byte is equal.
"""

from __future__ import annotations

import asyncio
import logging
import sys

import django

django.setup()

from apps.accounts.models import Site  # noqa: E402 - models need the setup
from apps.accounts.resident import SiteResident, SiteSettings  # noqa: E402
from apps.engine.context import Context  # noqa: E402
from apps.engine.events import Done, ModelEvent  # noqa: E402
from apps.engine.prompt import facts_message, policy_message  # noqa: E402
from apps.engine.types import Assistant, Facts, FactsState, ModelRequest, Speaker  # noqa: E402
from apps.llm.line import Line  # noqa: E402

GREETING = "Hello"
A_VISITOR = Facts(verified=False, state=FactsState.NONE)

logger = logging.getLogger(__name__)


def main() -> int:
    residents, line = SiteResident(), Line()
    for site_id, version in Site.objects.values_list("pk", "settings_version"):
        residents.refresh(site_id, version)
        line.refresh(site_id, version)
    sites = [
        found
        for site_id in Site.objects.values_list("pk", flat=True)
        if (found := residents.current(site_id))
    ]
    asyncio.run(_warm(line, sites))
    return 0


async def _warm(line: Line, sites: list[SiteSettings]) -> None:
    await line.open()
    try:
        for site in sites:
            await line.stream(site.id, _request(site), _drop)
    finally:
        await line.close()


def _request(site: SiteSettings) -> ModelRequest:
    assistant = Assistant(site.assistant_name, site.name, site.instructions)
    context = Context()
    context.add(1, Speaker.CUSTOMER, GREETING)
    return ModelRequest(
        messages=context.prompt(policy_message(assistant), facts_message(A_VISITOR), (), ()),
        question=GREETING,
        locale="en",
        facts=A_VISITOR,
        passages=(),
        teams=tuple(name for name, _ in site.teams),
        max_output_tokens=1,
    )


async def _drop(event: ModelEvent) -> None:
    if isinstance(event, Done):
        logger.info("warmed: %s", event.usage)


if __name__ == "__main__":
    sys.exit(main())
