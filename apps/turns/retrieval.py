"""A turn's search of the articles, begun when the question was received."""

from __future__ import annotations

import asyncio

from apps.engine.cache import Vector
from apps.engine.types import Passage
from apps.knowledge.resident import Found


class StartedRetrieval:
    """Runs, perhaps, before its turn exists."""

    def __init__(self, task: asyncio.Task[None], found: list[Found]) -> None:
        self._task = task
        self._found = found

    async def passages(self) -> tuple[Passage, ...]:
        """What was found; nothing when the search failed, which its task has logged."""
        await asyncio.wait([self._task])
        return self._found[0].passages if self._found else ()

    @property
    def vector(self) -> Vector | None:
        """The question's, once the search is done; None where it went by words alone."""
        return self._found[0].vector if self._found else None

    @property
    def version(self) -> int:
        """Of the knowledge that was searched; 0 before the search is done, or where it failed."""
        return self._found[0].version if self._found else 0

    def cancel(self) -> None:
        """Nobody needs the search any more. `passages` then gives nothing."""
        self._task.cancel()
