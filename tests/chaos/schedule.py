"""What is broken when: drawn from a seed, printed as it is, and made smaller when it fails."""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import StrEnum

HORIZON_S = 6.0


class Fault(StrEnum):
    LOSE_UP = "lose what clients send"
    LOSE_DOWN = "lose what clients are sent"
    LOSE_BOTH = "lose both ways"
    DELAY = "delay"
    RESET = "reset connections"
    KILL_WEB = "kill -9 a web process"
    END_WEB = "SIGTERM a web process"
    FREEZE_WEB = "freeze a web process"
    SKEW_CLOCK = "skew a clock"
    KILL_WORKER = "kill the worker"
    RESTART_REDIS = "restart Redis"
    KILL_CLIENTS = "CLIENT KILL in Redis"
    FILL_REDIS = "fill Redis"
    SLOW_REDIS = "slow Redis"
    RESTART_POSTGRES = "restart PostgreSQL"
    LOCK_ROWS = "hold conversations locked in PostgreSQL"


@dataclass(frozen=True, slots=True)
class Injection:
    """One fault. `target` is a web process where it strikes one; `seconds` is how long it lasts."""

    at_s: float
    fault: Fault
    target: int
    seconds: float

    def __str__(self) -> str:
        return f"{self.at_s:5.2f} s  {self.fault.value} (web {self.target}, {self.seconds:.2f} s)"


@dataclass(frozen=True, slots=True)
class Schedule:
    """All that a trial needs to be repeated, but for the machine's own timing."""

    seed: int
    injections: tuple[Injection, ...]

    def __str__(self) -> str:
        return "\n".join([f"seed {self.seed}", *map(str, self.injections)])

    @property
    def again(self) -> str:
        """The command that does it once more."""
        faults = " ".join(f"--fault {one.fault.name}" for one in self.injections)
        return f"python -m tests.chaos --seed {self.seed} --faults {len(self.injections)} {faults}"

    def without(self, injection: Injection) -> Schedule:
        return Schedule(self.seed, tuple(other for other in self.injections if other is not injection))


def draw(seeds: list[int], each: int, kinds: tuple[Fault, ...] = tuple(Fault)) -> list[Schedule]:
    """One schedule a seed, `each` faults in it. Dealt from one deck, so that every kind comes about equally often."""
    rng = random.Random(repr(seeds))
    deck: list[Fault] = []
    schedules = []
    for seed in seeds:
        dealt: list[Fault] = []
        while len(dealt) < each:
            deck = deck or rng.sample(kinds, len(kinds))
            dealt.append(deck.pop())
        schedules.append(dealt_schedule(seed, dealt))
    return schedules


def dealt_schedule(seed: int, faults: list[Fault]) -> Schedule:
    """The same for the same seed and faults, however they were dealt."""
    rng = random.Random(seed)
    injections = [_injection(rng, fault) for fault in sorted(faults)]
    return Schedule(seed, tuple(sorted(injections, key=lambda one: one.at_s)))


def _injection(rng: random.Random, fault: Fault) -> Injection:
    latest_s = HORIZON_S - 1.0
    match fault:
        case Fault.FREEZE_WEB:
            seconds = rng.uniform(5.0, 9.0)  # some long enough to be taken for dead
            latest_s /= 2
        case Fault.RESET | Fault.KILL_CLIENTS:
            seconds = 0.0
        case Fault.LOCK_ROWS:
            seconds = rng.uniform(1.0, 3.0)
        case _:
            seconds = rng.uniform(0.3, 2.5)
    return Injection(rng.uniform(0.5, latest_s), fault, rng.randrange(2), seconds)
