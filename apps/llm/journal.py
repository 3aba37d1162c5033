"""What the line has to write down: health of endpoints and spend, kept here until the database has it.

Bounded by the number of endpoints and sites: a second note of the same thing replaces or adds to the first.
"""

from __future__ import annotations

import logging
import time

from django.db import Error as DatabaseFailure
from django.db import transaction

from apps.engine.types import Usage
from apps.llm import records, spend
from apps.stores.database import in_database

logger = logging.getLogger(__name__)

# That an endpoint works is worth a write a minute; a change from failing to working is written at once.
OK_EVERY_S = 60.0
FAILURE_EVERY_S = 5.0

OK = ""


class Journal:
    """Notes on the loop, written by `write` on the ORM executor."""

    def __init__(self) -> None:
        self._health: dict[str, str] = {}  # endpoint id → failure label, or OK
        self._known: dict[str, tuple[str, float]] = {}  # what was noted last, and when
        self._spent: dict[tuple[str, str], Usage] = {}  # (site, endpoint) → sum

    def health(self, endpoint_id: str, kind: str) -> None:
        """An endpoint answered (`OK`) or failed with `kind`."""
        if not endpoint_id:
            return
        before, when = self._known.get(endpoint_id, ("", 0.0))
        pause_s = OK_EVERY_S if kind == OK else FAILURE_EVERY_S
        if endpoint_id in self._known and before == kind and time.monotonic() - when < pause_s:
            return
        self._known[endpoint_id] = (kind, time.monotonic())
        self._health[endpoint_id] = kind

    def spent(self, site_id: str, endpoint_id: str, usage: Usage) -> None:
        """Tokens of one answer."""
        so_far = self._spent.get((site_id, endpoint_id), Usage(0, 0))
        self._spent[site_id, endpoint_id] = Usage(
            so_far.prompt_tokens + usage.prompt_tokens, so_far.completion_tokens + usage.completion_tokens
        )

    @property
    def empty(self) -> bool:
        return not self._health and not self._spent

    @property
    def pressing(self) -> bool:
        """Whether the health of an endpoint is to be written: an administrator may be waiting to see it."""
        return bool(self._health)

    async def write(self) -> dict[str, bool]:
        """Writes all notes in one transaction. Gives the sites that spent, with whether their cap is reached.

        When the database refuses, the notes stay for the next time.
        """
        health, spent = self._health, self._spent
        if not health and not spent:
            return {}
        self._health, self._spent = {}, {}
        try:
            return await in_database(_write, health, spent)
        except DatabaseFailure:
            logger.exception("could not note health of %d endpoints and spend of %d", len(health), len(spent))
            self._health = {**health, **self._health}
            for (site_id, endpoint_id), usage in spent.items():
                self.spent(site_id, endpoint_id, usage)
            return {}


def _write(health: dict[str, str], spent: dict[tuple[str, str], Usage]) -> dict[str, bool]:
    with transaction.atomic():
        for endpoint_id, kind in health.items():
            if kind == OK:
                records.note_success(endpoint_id)
            else:
                records.note_failure(endpoint_id, kind)
        sites = records.existing_sites({site_id for site_id, _ in spent})
        for (site_id, endpoint_id), usage in spent.items():
            if site_id in sites:
                spend.add_usage(site_id, endpoint_id, usage)
    return {site_id: spend.cap_reached(site_id) for site_id in sites}
