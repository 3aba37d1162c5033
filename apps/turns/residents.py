"""Keeps what is resident in this process current: site settings, endpoints, rules, knowledge, what was learned.

An announcement hurries a refresh; a poll of the version counters finds what an announcement lost.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

from django.db import DatabaseError

from apps.accounts.models import Site
from apps.stores.database import in_database

logger = logging.getLogger(__name__)

POLL_INTERVAL_S = 0.5

Counters = tuple[int, int, int, int]  # settings, rules, knowledge, learned
Versions = dict[str, Counters]  # by site


class Resident(Protocol):
    """Something of a site that this process keeps in memory, with the version it was loaded at."""

    def refresh(self, site_id: str, version: int) -> None: ...
    def loaded_version(self, site_id: str) -> int: ...
    def forget(self, site_id: str) -> None: ...


class Residents:
    """`settings`, `rules`, `knowledge` and `learned` name what each version counter loads."""

    def __init__(
        self,
        settings: tuple[Resident, ...],
        rules: tuple[Resident, ...],
        knowledge: tuple[Resident, ...],
        learned: tuple[Resident, ...],
    ) -> None:
        self._by_counter = (settings, rules, knowledge, learned)
        self._known: Versions = {}
        self._on_moved: Callable[[], None] = lambda: None
        self._hurry = asyncio.Event()

    async def load(self) -> None:
        """Brings every site up to date. One query, then one load for each thing that moved."""
        before = self._known
        versions = await in_database(_versions)
        for site in before.keys() - versions.keys():
            for resident in (one for group in self._by_counter for one in group):
                resident.forget(site)
        moved = before.keys() != versions.keys()
        for site, counters in versions.items():
            if self._known.get(site) != counters:
                await self._refresh(site, counters)
                moved = True
        # A site that `ensure` has loaded meanwhile may be newer than what was read here.
        came = {site: counters for site, counters in self._known.items() if site not in before}
        self._known = {**came, **versions, **self._stale(versions)}
        if moved:
            self._on_moved()

    async def ensure(self, site: str) -> None:
        """Loads a site that was made since the last poll."""
        if site not in self._known:
            await self.load()

    def on_moved(self, listener: Callable[[], None]) -> None:
        """Takes the one listener for a site that came, went or was loaded anew. Called on the loop; must not wait."""
        self._on_moved = listener

    def knows(self, site: str) -> bool:
        """Whether the site was there at the last poll, loaded or not."""
        return site in self._known

    def hurry(self) -> None:
        """Polls now instead of at the next interval."""
        self._hurry.set()

    async def watch(self) -> None:
        """Polls for ever. A database that does not answer leaves the resident state as it is."""
        while True:
            try:
                async with asyncio.timeout(POLL_INTERVAL_S):
                    await self._hurry.wait()
            except TimeoutError:
                pass
            self._hurry.clear()
            try:
                await self.load()
            except DatabaseError:
                logger.exception("the versions of the residents could not be read")

    async def _refresh(self, site: str, counters: Counters) -> None:
        for group, version in zip(self._by_counter, counters, strict=True):
            for resident in group:
                if resident.loaded_version(site) < version:
                    try:
                        await in_database(resident.refresh, site, version)
                    except Exception:
                        # One site's broken row must not keep the others stale; it is tried again at the next poll.
                        logger.exception("%s could not be loaded for site %s", type(resident).__name__, site)

    def _stale(self, versions: Versions) -> Versions:
        """Sites with something that failed to load: forgetting their counters makes the next poll try again."""
        return {
            site: (0, 0, 0, 0)
            for site, counters in versions.items()
            if any(
                resident.loaded_version(site) < version
                for group, version in zip(self._by_counter, counters, strict=True)
                for resident in group
            )
        }


def _versions() -> Versions:
    rows = Site.objects.values_list(
        "id", "settings_version", "rules_version", "knowledge_version", "learned_version"
    )
    return {site: (settings, rules, knowledge, learned) for site, settings, rules, knowledge, learned in rows}
