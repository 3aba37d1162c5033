"""How the line chooses among endpoints, and what it may ask twice. Pure; the bench switches parts of it off."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tactics:
    """One set for all sites. What is here concerns endpoints of equal priority; another priority is only a fallback."""

    scored: bool = True  # False: by name, as if nothing were known
    sticky: bool = True  # a conversation tends to stay where its last answer came from
    explores: bool = True  # now and then one that was slow is asked again
    hedges: bool = False  # a second endpoint is asked when the first is late; see decision 0018

    half_life_s: float = 15.0  # after so long a measured time says half as much
    smoothing: float = 0.2  # the weight of one more answer
    failure_smoothing: float = 0.1
    failure_costs_s: float = 3.0  # what a customer loses by a failure, as a time to first text
    same_endpoint: float = 0.7  # its cache has most of the prompt
    same_region: float = 0.9
    # A slow endpoint may have become fast: its score falls to this part while nobody asks it.
    forgives: float = 0.5

    explored_share: float = 0.04  # of all turns
    hedged_share: float = 0.05
    hedged_at: float = 0.95  # the quantile of the time to first text from which on an answer is late
    hedged_after_s: float = 0.05  # never earlier
    # Whatever is asked beyond the first request of a turn: again, elsewhere, or at the same time.
    extra_share: float = 0.2
    extra_at_once: float = 10.0
    extra_per_s: float = 0.1
