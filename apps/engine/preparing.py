"""Whether to prepare for what is predicted: only while the customer is expected to be quiet, only what is likely, only
a few things at a time, and less the more of it proves wrong. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from apps.engine.dialogue import Act
from apps.engine.prediction import Prediction

IDLE_SHARE: Final = 0.7
MAX_PREPARED: Final = 2
MIN_CHANCE: Final = 0.2

_REMEMBERED = 0.98  # of the record, at each settled prediction: about the last fifty count
_DOUBT = 2.0  # hits that a fresh record assumes beside as many promised


def may_start(expected_idle_s: float, processing_s: float) -> bool:
    """Whether the customer is expected to be quiet for more than 0.7 × what is being processed now will take."""
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

    def chosen(self, predictions: Iterable[Prediction]) -> tuple[Prediction, ...]:
        """At most two, each likely enough by its promise and the record."""
        likely = [one for one in predictions if one.probability * self.trust >= MIN_CHANCE]
        return tuple(sorted(likely, key=lambda one: -one.probability)[:MAX_PREPARED])

    def settle(self, prepared: Collection[Prediction], came: tuple[Act, ...]) -> int:
        """Notes what was asked; how many of the prepared were useful."""
        useful = 0
        for prediction in prepared:
            hit = prediction.request == came
            useful += hit
            self._promised = self._promised * _REMEMBERED + prediction.probability
            self._useful = self._useful * _REMEMBERED + hit
        return useful
