"""One question to two endpoints: the first that says something is heard, the other is stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from apps.engine.events import ModelEvent, OnModelEvent
from apps.llm.errors import LlmError

# One runner: asks, and gives None when it has answered, or why not.
Ask = Callable[["Track"], Awaitable[LlmError | None]]


class Track:
    """One of the two, as its runner sees it."""

    def __init__(self, race: Race) -> None:
        self._race = race
        self.task: asyncio.Task[None] | None = None
        self.failure: LlmError | None = None
        self.raised: Exception | None = None
        self.moved = asyncio.Event()  # said something, or ended

    @property
    def lost(self) -> bool:
        """Whether the other one is heard."""
        return self._race.winner not in (None, self)

    async def hear(self, event: ModelEvent) -> None:
        """Passes on what the winner says. The first to call it wins, and the other is cancelled."""
        await self._race.hear(self, event)

    async def run(self, ask: Ask) -> None:
        """Never raises but by cancellation: a TaskGroup would cancel the other for it."""
        try:
            self.failure = await ask(self)
        except Exception as error:  # noqa: BLE001  the task's boundary: the race raises it again
            self.raised = error
        finally:
            self.moved.set()


class Race:
    """One turn's. The second starts only when the first is late."""

    def __init__(self, on_event: OnModelEvent) -> None:
        self.winner: Track | None = None
        self._on_event = on_event
        self._tracks: list[Track] = []

    @property
    def hedged(self) -> bool:
        """Whether the second was asked."""
        return len(self._tracks) > 1

    @property
    def second_won(self) -> bool:
        """Whether the second is the one that was heard."""
        return self.winner is not None and self.winner is not self._tracks[0]

    async def run(self, first: Ask, second: Callable[[], Ask | None], after_s: float) -> LlmError | None:
        """The winner's outcome; with no winner the last failure. `second` is called when `first` is late.

        Raises what the winner raises. Cancelling it cancels both, and waits for their end.
        """
        async with asyncio.TaskGroup() as group:
            leader = self._start(group, first)
            await self._until_said_or_ended(leader, after_s)
            if not leader.moved.is_set() and (other := second()) is not None:
                self._start(group, other)
        return self._outcome()

    async def hear(self, track: Track, event: ModelEvent) -> None:
        """What `track` says."""
        if self.winner is None:
            self.winner = track
            track.moved.set()
            for other in self._tracks:
                if other is not track and other.task is not None:
                    other.task.cancel()
        elif self.winner is not track:
            await asyncio.sleep(0)  # its cancellation arrives here
            return
        await self._on_event(event)

    def _start(self, group: asyncio.TaskGroup, ask: Ask) -> Track:
        track = Track(self)
        self._tracks.append(track)
        track.task = group.create_task(track.run(ask))
        return track

    async def _until_said_or_ended(self, track: Track, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await track.moved.wait()

    def _outcome(self) -> LlmError | None:
        deciding = self.winner or self._tracks[-1]
        for track in (deciding, *self._tracks):
            if track.raised is not None:
                raise track.raised
        return deciding.failure
