"""Which lane a turn gets: the books of an endpoint's sockets, without the sockets. Pure; the caller brings the clock.

A server remembers the last response of each lane, and only that. So a conversation goes back to the lane that has its
chain, a new one to a lane that has none, and only when there is no such lane to the one that was quiet for longest.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

# Documented limits of one connection; see decision 0015.
MOST_IN_FLIGHT = 16
MOST_NAMES = 32
# A conversation that was quiet for so long may lose its lane to a new one; a socket is not opened for its sake.
CHAIN_LIVES_S = 600.0
# Sockets are retired after this part of their life, earlier by up to a tenth, so that they do not all go together.
ROTATES_AT = 55 / 60
JITTER = 0.1


@dataclass(slots=True, eq=False)
class Lane:
    """One `stream_id`, or with `name` None the only lane of a sequential socket."""

    name: str | None
    key: str = ""  # the conversation whose last response the server remembers here
    response_id: str = ""  # of the last response that ended here
    used_at: float = 0.0
    busy: bool = False

    def lives(self, now: float) -> bool:
        """Whether it holds a chain somebody may still continue."""
        return bool(self.key) and now - self.used_at < CHAIN_LIVES_S


class LaneTable:
    """The lanes of one socket. Not `open`, it takes no new turn."""

    def __init__(self, *, named: bool, in_flight: int = MOST_IN_FLIGHT, names: int = MOST_NAMES) -> None:
        self.open = True
        self.named = named
        self._most_in_flight = in_flight if named else 1
        self._most_lanes = names if named else 1
        self._lanes: list[Lane] = []

    @property
    def in_flight(self) -> int:
        """Responses the server is busy with, also those nobody listens to any more."""
        return sum(lane.busy for lane in self._lanes)

    @property
    def keys(self) -> set[str]:
        """The conversations that have a chain here."""
        return {lane.key for lane in self._lanes if lane.key}

    @property
    def has_room(self) -> bool:
        return self.open and self.in_flight < self._most_in_flight

    def holding(self, key: str) -> Lane | None:
        """The idle lane that has the conversation's chain."""
        return next((lane for lane in self._lanes if key and lane.key == key and not lane.busy), None)

    def unclaimed(self, now: float) -> Lane | None:
        """An idle lane without a living chain; a name that was not used yet, if there must be."""
        for lane in self._lanes:
            if not lane.busy and not lane.lives(now):
                return lane
        return self._another() if len(self._lanes) < self._most_lanes else None

    def quietest(self) -> Lane | None:
        """The idle lane that was used longest ago."""
        idle = [lane for lane in self._lanes if not lane.busy]
        return min(idle, key=lambda lane: lane.used_at, default=None)

    def has_unclaimed(self, now: float) -> bool:
        """Whether `unclaimed` would give a lane."""
        return len(self._lanes) < self._most_lanes or any(
            not lane.busy and not lane.lives(now) for lane in self._lanes
        )

    def disclaim(self, key: str, but: Lane) -> None:
        """The conversation has gone on elsewhere: no other lane's response is its last one."""
        for lane in self._lanes:
            if lane.key == key and lane is not but:
                lane.key = ""

    def _another(self) -> Lane:
        lane = Lane(f"lane-{len(self._lanes) + 1}" if self.named else None)
        self._lanes.append(lane)
        return lane


def lease(
    tables: Iterable[LaneTable], key: str, now: float, *, evicts: bool = True
) -> tuple[LaneTable, Lane] | None:
    """A lane for a turn of conversation `key`, marked busy; None while every place is taken.

    Unless it `evicts`, a lane with another's living chain counts as taken.
    """
    roomy = [table for table in tables if table.has_room]
    for table in roomy:
        if (lane := table.holding(key)) is not None:
            return _leased(table, lane)
    for table in roomy:
        if (lane := table.unclaimed(now)) is not None:
            return _leased(table, lane)
    if not evicts:
        return None
    quiet = [(lane.used_at, at) for at, table in enumerate(roomy) if (lane := table.quietest()) is not None]
    if not quiet:
        return None
    table = roomy[min(quiet)[1]]
    lane = table.quietest()
    return _leased(table, lane) if lane is not None else None


def release(lane: Lane, key: str, now: float, response_id: str = "") -> None:
    """The turn is over; `key` is "" when nothing is left there to continue."""
    lane.busy, lane.key, lane.used_at = False, key, now
    lane.response_id = response_id or lane.response_id


def wants_another(tables: Iterable[LaneTable], now: float) -> bool:
    """Whether a new conversation would have to wait, or to push another's chain out."""
    return not any(table.has_room and table.has_unclaimed(now) for table in tables)


def retires_after(life_s: float, chance: float) -> float:
    """Seconds after which a socket takes no new turns; `chance` in 0..1 is the caller's dice."""
    return life_s * (ROTATES_AT - JITTER * chance)


def _leased(table: LaneTable, lane: Lane) -> tuple[LaneTable, Lane]:
    lane.busy = True
    return table, lane
