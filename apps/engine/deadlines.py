"""How long each stage of a turn may take, in seconds. Optional context that is late is left out."""

from __future__ import annotations

from typing import Final

FACTS_COPY_S: Final = 0.05  # a preloaded copy is a round trip to Redis
FACTS_FETCH_S: Final = 1.0  # a fact the question needs
RETRIEVAL_S: Final = 0.4
