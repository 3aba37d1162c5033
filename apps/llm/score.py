"""How good an endpoint is, and in which order equals are asked. Pure: the caller brings the clock (seconds)."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from apps.llm.tactics import Tactics

# Of an endpoint nobody has asked yet, while nothing is known of any other either.
UNKNOWN_S = 0.5
# An unknown one is taken to be a little better than the best: somebody has to ask it first.
HOPE = 0.9
KEPT_TIMES = 100
ENOUGH_TIMES = 20  # to speak of a quantile


class Form:
    """How fast and how reliable an endpoint was lately."""

    def __init__(self, tactics: Tactics | None = None) -> None:
        self._tactics = tactics or Tactics()
        self._average_s: float | None = None
        self._failing = 0.0  # the part of answers that failed
        self._at = 0.0
        self._times: deque[float] = deque(maxlen=KEPT_TIMES)

    def began(self, first_s: float, now: float) -> None:
        """An answer said its first text `first_s` after it was asked for."""
        self._times.append(first_s)
        self._failing *= (1.0 - self._tactics.failure_smoothing) * math.sqrt(self._faded(now))
        self._learn(first_s, now)

    def gave_up(self, waited_s: float, now: float) -> None:
        """Nobody waited any longer for a first text: it takes at least so long."""
        if self._average_s is None or waited_s > self._average_s:
            self._learn(waited_s, now)

    def failed(self, now: float) -> None:
        """An answer failed through the endpoint's fault."""
        self._failing += (1.0 - self._failing) * self._tactics.failure_smoothing
        self._at = now

    def cost_s(self, now: float, least: float) -> float | None:
        """What asking it costs a customer, falling to the part `least` of it while nobody asks; None: unknown."""
        if self._average_s is None and not self._failing:
            return None
        known_s = UNKNOWN_S if self._average_s is None else self._average_s
        return (known_s + self._failing * self._tactics.failure_costs_s) * max(self._faded(now), least)

    def late_s(self) -> float | None:
        """After how long an answer of this endpoint is unusually late; None while too few are known."""
        if len(self._times) < ENOUGH_TIMES:
            return None
        times = sorted(self._times)
        return times[min(int(len(times) * self._tactics.hedged_at), len(times) - 1)]

    def _learn(self, first_s: float, now: float) -> None:
        """The older the average, the more one new time weighs."""
        if self._average_s is None:
            self._average_s = first_s
        else:
            weight = max(self._tactics.smoothing, 1.0 - self._faded(now))
            self._average_s += weight * (first_s - self._average_s)
        self._at = now

    def _faded(self, now: float) -> float:
        return math.pow(0.5, max(0.0, now - self._at) / self._tactics.half_life_s)


@dataclass(frozen=True, slots=True)
class Candidate:
    """What the order is made of. Names are of one site, so each stands for one endpoint."""

    name: str
    region: str
    priority: int
    in_flight: int
    form: Form


@dataclass(frozen=True, slots=True)
class Past:
    """By name, the endpoint of a conversation's last answer, and the one where an answer broke off since."""

    answered: str = ""
    broke: str = ""


def ranked(candidates: Sequence[Candidate], past: Past, now: float, tactics: Tactics) -> list[Candidate]:
    """By priority, then by score, best first. Where this conversation's answer broke off comes last of all."""
    costs = _costs(candidates, now, tactics.forgives)
    region = next((one.region for one in candidates if one.name == past.answered), "")

    def bonus(one: Candidate) -> float:
        if not tactics.sticky or past.broke:
            return 1.0
        if one.name == past.answered:
            return tactics.same_endpoint
        return tactics.same_region if one.region and one.region == region else 1.0

    def place(one: Candidate) -> tuple[bool, int, float]:
        score = costs[one.name] * (one.in_flight + 1) * bonus(one) if tactics.scored else 0.0
        return (one.name == past.broke, one.priority, score)

    return sorted(candidates, key=place)


def worth_a_try(order: Sequence[Candidate], now: float) -> Candidate | None:
    """Of those as important as the best, one so long unheard of that it may be the best by now."""
    rivals = [one for one in order[1:] if one.priority == order[0].priority]
    if not rivals:
        return None
    costs = _costs([order[0], *rivals], now, 0.0)
    now_s = _costs([order[0], *rivals], now, 1.0)[order[0].name]
    best = min(rivals, key=lambda one: costs[one.name] * (one.in_flight + 1))
    return best if costs[best.name] * (best.in_flight + 1) < now_s * (order[0].in_flight + 1) else None


def _costs(candidates: Iterable[Candidate], now: float, least: float) -> dict[str, float]:
    costs = {one.name: one.form.cost_s(now, least) for one in candidates}
    hoped = min((cost for cost in costs.values() if cost is not None), default=UNKNOWN_S) * HOPE
    return {name: hoped if cost is None else cost for name, cost in costs.items()}
