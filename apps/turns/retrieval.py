"""A turn's search of the articles, begun when the question was received, or while it was being written."""

from __future__ import annotations

import asyncio
import time

from apps.engine.cache import Vector
from apps.engine.types import Passage
from apps.knowledge.resident import Found, KnowledgeResident
from apps.turns.spawn import Spawn


class StartedRetrieval:
    """Runs, perhaps, before its turn exists."""

    def __init__(
        self, spawn: Spawn, knowledge: KnowledgeResident, *, site: str, text: str, locale: str
    ) -> None:
        """Starts the search in a task of the owner."""
        self._knowledge, self._site, self._text = knowledge, site, text
        self._began = time.monotonic()
        self._ended: float | None = None
        self._found: Found | None = None
        self._at_start = knowledge.loaded_version(site)
        self._task = spawn(self._search(text, locale), "retrieval")

    async def _search(self, text: str, locale: str) -> None:
        try:
            self._found = await self._knowledge.search(self._site, text, locale)
        finally:
            self._ended = time.monotonic()

    async def passages(self) -> tuple[Passage, ...]:
        """What was found; nothing when the search failed, which its task has logged."""
        await asyncio.wait([self._task])
        return self._found.passages if self._found is not None else ()

    def asked(self) -> None:
        """A turn has used it: what was drafted is a question now."""
        if self._found is not None:
            self._knowledge.asked(self._text, self._found)

    @property
    def vector(self) -> Vector | None:
        """The question's, once the search is done; None where it went by words alone."""
        return self._found.vector if self._found is not None else None

    @property
    def version(self) -> int:
        """Of the knowledge that was searched; 0 before the search is done, or where it failed."""
        return self._found.version if self._found is not None else 0

    @property
    def serves_yet(self) -> bool:
        """Whether a search begun now could find no more: the knowledge is the same, and the vector did not fail."""
        same = self._knowledge.loaded_version(self._site) == self._at_start
        return same and (not self._task.done() or (self._found is not None and not self._found.worse))

    @property
    def running(self) -> bool:
        """Whether there is more to wait for."""
        return not self._task.done()

    @property
    def ran_s(self) -> float:
        """For how long it has run, or did."""
        return (self._ended or time.monotonic()) - self._began

    def cancel(self) -> None:
        """Nobody needs the search any more. `passages` then gives nothing."""
        self._task.cancel()
