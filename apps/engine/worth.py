"""Whether looking something up pays: time saved by hits against time spent on looking. Pure; no clock of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

WINDOW: Final = 200  # looks whose weight fades to a third
ENOUGH: Final = 100  # looks before the first judgement, and between a switch and the next
PROBE_EVERY: Final = 20  # while off, one question in so many is looked up, to see whether it would pay again
# On again only when it would pay well: between the two it stays what it is.
ON_FROM: Final = 2.0
OFF_BELOW: Final = 1.0


@dataclass(slots=True)
class Worth:
    """The account of one site and language. Milliseconds."""

    on: bool = True
    hit_rate: float = 0.0
    cost_ms: float = 0.0
    saved_ms: float = 0.0  # a hit's, were it all on the asker's way
    _looks: int = 0
    _asked: int = 0

    def wants_look(self) -> bool:
        """Whether the next question should be looked up. Call it once a question."""
        self._asked += 1
        return self.on or self._asked % PROBE_EVERY == 0

    def answered(self, model_ms: float) -> None:
        """A question that a model answered: what a hit would have saved."""
        self.saved_ms += (model_ms - self.saved_ms) * (_WEIGHT if self.saved_ms else 1.0)

    def looked(self, cost_ms: float, hit: bool) -> None:
        """Books a look-up and judges: off when a look costs more than hits bring, on when they bring twice as much."""
        weight = max(_WEIGHT, 1 / (self._looks + 1) if self._looks < WINDOW else 0.0)
        self.hit_rate += (hit - self.hit_rate) * weight
        self.cost_ms += (cost_ms - self.cost_ms) * weight
        self._looks += 1
        if self._looks < ENOUGH or not self.saved_ms:
            return
        gain = self.hit_rate * self.saved_ms
        if self.on and gain < OFF_BELOW * self.cost_ms:
            self.on, self._looks = False, 0
        elif not self.on and gain >= ON_FROM * self.cost_ms:
            self.on, self._looks = True, 0


_WEIGHT = 1 / WINDOW
