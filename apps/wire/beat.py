"""When the pieces of answers go on: the first at once, the others together with those of every other answer here.

A process that woke for each token of each stream would do little else: it reads, stores and sends what has come in
the last 50 ms of all of them at once.
"""

from __future__ import annotations

import time
from typing import Final

from apps.wire.protocol import DELTA_INTERVAL_S

BEAT_S: Final = DELTA_INTERVAL_S
PROMPT_PIECES: Final = 3  # of an answer, which wait for no beat


def until_beat_s() -> float:
    """Seconds until the next beat, which is the same for everybody in a process."""
    return BEAT_S - time.monotonic() % BEAT_S
