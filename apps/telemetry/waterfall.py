"""The stages of one turn, in milliseconds from the receipt of the question."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(slots=True)
class Waterfall:
    """Collects stages and marks. `marks` says what was warm, such as {"profile": "warm"}."""

    started: float = field(default_factory=time.monotonic)
    stages: list[tuple[str, float, float]] = field(default_factory=list)
    marks: dict[str, str] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Times a block, also when it raises."""
        begun = time.monotonic()
        try:
            yield
        finally:
            self.add(name, begun, time.monotonic())

    def add(self, name: str, begun: float, ended: float) -> None:
        """A stage between two monotonic times, in seconds."""
        self.stages.append((name, (begun - self.started) * 1000, (ended - begun) * 1000))

    def since_last(self, name: str) -> None:
        """A stage from the end of the last one until now."""
        last_end_ms = max((start + length for _, start, length in self.stages), default=0.0)
        self.stages.append((name, last_end_ms, self.elapsed_ms() - last_end_ms))

    def elapsed_ms(self) -> float:
        """Since the receipt of the question."""
        return (time.monotonic() - self.started) * 1000
