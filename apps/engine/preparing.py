"""Whether to prepare for what is predicted: only while the customer is expected to be quiet, only what is likely, only
a few things at a time, and less the more of it proves wrong. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from typing import Final, TypeVar

IDLE_SHARE: Final = 0.7
MAX_PREPARED: Final = 2
MIN_CHANCE: Final = 0.2

_REMEMBERED = 0.98  # of the record, at each settled prediction: about the last fifty count
_DOUBT = 2.0  # hits that a fresh record assumes beside as many promised

What = TypeVar("What", bound=Hashable)


def may_start(expected_idle_s: float, processing_s: float) -> bool:
    """Whether the customer is expected to be quiet for more than 0.7 × what is being processed now takes."""
    return expected_idle_s > IDLE_SHARE * processing_s


class Record:
    """How predictions that were acted on have turned out, against what they promised."""

    def __init__(self) -> None:
        self._promised = 0.0
        self._useful = 0.0

    @property
    def trust(self) -> float:
        """1 when as many came true as promised, less when fewer did. Never 0: a better time can be noticed."""
        return min(1.0, (self._useful + _DOUBT) / (self._promised + _DOUBT))

    def chosen(self, chances: Mapping[What, float]) -> dict[What, float]:
        """At most two with their chances, each likely enough by its promise and the record."""
        likely = [what for what, chance in chances.items() if chance * self.trust >= MIN_CHANCE]
        best = sorted(likely, key=lambda what: -chances[what])[:MAX_PREPARED]
        return {what: chances[what] for what in best}

    def settle(self, promised: Mapping[What, float], came: Collection[What]) -> int:
        """Notes what came; how much of what was promised did."""
        for what, chance in promised.items():
            self._promised = self._promised * _REMEMBERED + chance
            self._useful = self._useful * _REMEMBERED + (what in came)
        return sum(what in came for what in promised)
