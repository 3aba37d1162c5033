"""How long the line waits for what. Seconds; only progress of the model re-arms a deadline."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deadlines:
    """One set for all endpoints. `turn_s` is handed down over every endpoint that is tried."""

    slot_s: float = 1.5  # for a free slot of an endpoint that is full
    connect_s: float = 4.0  # TCP and TLS
    # From sending to the first word, thought or call. A cold prefix on a small machine took 12-18 s.
    first_data_s: float = 20.0
    between_data_s: float = 15.0
    turn_s: float = 90.0
    # Behind the finish reason only the usage is missing: not worth keeping a finished answer for.
    usage_s: float = 1.0
    close_s: float = 1.0
    # A WebSocket's hour, as OpenAI documents it; it is renewed before. A dialect may know a shorter one.
    socket_life_s: float = 3_600.0
