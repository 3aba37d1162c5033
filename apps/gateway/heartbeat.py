"""How often a client shows that its line lives. Pure: the caller brings the clock (monotonic seconds).

The interval follows what is asked on a site: one and a half times the mean time between two requests of a line.
"""

from __future__ import annotations

from collections import OrderedDict

from apps.wire.protocol import HEARTBEAT_S

DEFAULT_S = HEARTBEAT_S
QUIET_S = (15, 60)  # at least and at most, on a line that carries nothing else
LONGEST_S = 120  # on a line that other traffic has proven
MEAN_FACTOR = 1.5
# Of an exponential mean, and what is no interval any more but a pause.
WEIGHT = 1 / 32
PAUSE_S = 600.0
SITES = 10_000
MISSES = 3
# Browsers run the timers of a hidden page once a minute.
HIDDEN_TIMER_S = 60
ANSWER_S = 15


def quiet_interval_s(mean_request_s: float | None) -> int:
    """Whole seconds between two pings of a line that carries nothing else."""
    if mean_request_s is None:
        return DEFAULT_S
    return round(min(max(mean_request_s * MEAN_FACTOR, QUIET_S[0]), QUIET_S[1]))


def next_interval_s(quiet_s: int, last_s: int, *, proven: bool) -> int:
    """What follows `last_s`: twice as long while other traffic proves the line, the quiet interval once none does."""
    return min(LONGEST_S, max(quiet_s, 2 * last_s)) if proven else quiet_s


def patience_s(interval_s: int) -> float:
    """How long a line may be silent: three heartbeats missed, none of them sooner than a hidden page can be heard."""
    return MISSES * max(interval_s, HIDDEN_TIMER_S) + ANSWER_S


class Rhythms:
    """The mean time between two requests of a line, by site."""

    def __init__(self) -> None:
        self._means: OrderedDict[str, float] = OrderedDict()

    def observe(self, site: str, gap_s: float) -> None:
        """Between two requests of one line, neither of them a ping. A pause is none."""
        if not 0 <= gap_s <= PAUSE_S:
            return
        mean = self._means.pop(site, None)
        self._means[site] = gap_s if mean is None else mean + (gap_s - mean) * WEIGHT
        if len(self._means) > SITES:
            self._means.popitem(last=False)

    def mean_s(self, site: str) -> float | None:
        """None while nothing was observed."""
        return self._means.get(site)


class Heartbeat:
    """One line's: what it was told, and whether anything else was heard since."""

    def __init__(self) -> None:
        self.interval_s = DEFAULT_S
        self._requested_at: float | None = None
        self._proven = False

    def begin(self, interval_s: int) -> None:
        """The client was told this interval."""
        self.interval_s = interval_s

    def proven(self) -> None:
        """Something other than a ping was heard."""
        self._proven = True

    def request(self, now: float) -> float | None:
        """Somebody asked for something; the seconds since the time before, None for the first."""
        before, self._requested_at = self._requested_at, now
        self._proven = True
        return None if before is None else now - before

    def ping(self, quiet_s: int) -> int | None:
        """The interval to tell now; None where it stays as it is."""
        before = self.interval_s
        self.interval_s = next_interval_s(quiet_s, before, proven=self._proven)
        self._proven = False
        return self.interval_s if self.interval_s != before else None
