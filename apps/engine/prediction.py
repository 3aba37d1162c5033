"""Guesses what the customer asks next, from how finished conversations went. Pure, no clock, no arrays.

Many small tables of counts, each keyed by another view of the history, vote for what followed that view before. A
vote's weight is multiplied after each request by how much better the voter did than all of them together.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from apps.engine.dialogue import Act, History, Move, steps
from apps.engine.prediction_views import Views, name, views

VERSION: Final = 1

MAX_REQUESTS: Final = 256  # different ones; further ones are not learned
MAX_TABLES: Final = 60_000  # about 25 MB; past it all counts are halved and what was seen once is forgotten

_SMOOTHING = 0.1  # added to how often each request came
_ESCAPE_PER_KIND = 0.6  # how much of a table's mass goes to what it has not seen, for each request it has
_ESCAPE = 0.3
_RELATIVE_PRIOR = 0.02
_SIGN_PRIOR = 6.0
_SIGN_SEEN = 3
_FIRST_WEIGHT = 0.1
_RATE = 0.07
_MAX_GAIN = 3.0
_ADAPTS_AFTER = 20  # requests: before, everything is news to everybody

Look = Callable[[History], Views]
Votes = Mapping[str, float]  # by request: log of how much more likely than without the voter


@dataclass(frozen=True, slots=True)
class Prediction:
    """A request the customer may make next: all the acts of one message."""

    request: tuple[Act, ...]
    probability: float


class UnknownVersion(ValueError):
    """The stored predictor was written by another version of this module."""


class Predictor:
    """Learns conversation by conversation. `adaptive=False` leaves all voters their first weight."""

    def __init__(self, look: Look = views, *, adaptive: bool = True, max_tables: int = MAX_TABLES) -> None:
        self._look = look
        self._adaptive = adaptive
        self._max_tables = max_tables
        self._requests: dict[str, int] = {}
        self._acts: dict[str, tuple[Act, ...]] = {}
        self._tables: dict[str, dict[str, int]] = {}
        self._weights: dict[str, float] = {}

    def learn(self, moves: Iterable[Move]) -> None:
        """Takes a finished conversation: once, in any order of conversations."""
        for history, request in steps(moves):
            self._learn(history, request)
        while len(self._tables) > self._max_tables:
            self._forget()

    def predict(self, history: History, limit: int = 3) -> tuple[Prediction, ...]:
        """The likeliest next requests, likeliest first; nothing before anything was learned."""
        likely = sorted(self.probabilities(history).items(), key=lambda item: (-item[1], item[0]))
        return tuple(Prediction(self._acts[request], p) for request, p in likely[:limit])

    def probabilities(self, history: History) -> dict[str, float]:
        """By the request's name, for every request that was learned; they sum to 1."""
        if not self._requests:
            return {}
        return self._blend(self._ballot(history, self._look(history)))

    def dump(self) -> bytes:
        """The whole predictor as versioned JSON."""
        stored = {
            "version": VERSION,
            "requests": [[self._acts[request], times] for request, times in self._requests.items()],
            "tables": self._tables,
            "weights": self._weights,
        }
        return json.dumps(stored, ensure_ascii=False, separators=(",", ":")).encode()

    @classmethod
    def load(cls, raw: bytes) -> Predictor:
        """What `dump` gave. Raises `UnknownVersion`."""
        stored = json.loads(raw)
        if stored["version"] != VERSION:
            raise UnknownVersion(stored["version"])
        predictor = cls()
        for acts, times in stored["requests"]:
            request = tuple((str(kind), str(topic)) for kind, topic in acts)
            predictor._acts[name(request)] = request
            predictor._requests[name(request)] = times
        predictor._tables = stored["tables"]
        predictor._weights = stored["weights"]
        return predictor

    @property
    def weights(self) -> Mapping[str, float]:
        """By voter. Those that were never right enough tend to 0."""
        return self._weights

    @property
    def requests(self) -> int:
        """How many different requests it knows."""
        return len(self._requests)

    @property
    def size(self) -> int:
        """How many tables it holds."""
        return len(self._tables)

    def _learn(self, history: History, acts: tuple[Act, ...]) -> None:
        request = name(acts)
        known = request in self._requests
        if not known and len(self._requests) >= MAX_REQUESTS:
            return
        seen = self._look(history)
        if known and self._adaptive and sum(self._requests.values()) > _ADAPTS_AFTER:
            self._adapt(self._ballot(history, seen), request)
        self._acts[request] = acts
        self._count(request, history.relative(acts), seen)

    def _count(self, request: str, relative: str, seen: Views) -> None:
        self._requests[request] = self._requests.get(request, 0) + 1
        for _, key in seen.exact:
            self._add(key, request)
        for _, key in seen.relative:
            self._add(key, relative)
        for group, signs in seen.signs:
            for sign in signs:
                self._add(group + sign, request)

    def _add(self, key: str, request: str) -> None:
        table = self._tables.setdefault(key, {})
        table[request] = table.get(request, 0) + 1

    def _adapt(self, ballot: _Ballot, request: str) -> None:
        """Multiplicative weights: the gain is the voter's log-probability of what came, less what was expected."""
        blended = self._blend(ballot)
        prior_gain = _gain(ballot.log_prior, blended, request)
        self._reward(_PRIOR, prior_gain)
        for voter, on_prior, votes in ballot.votes:
            self._reward(voter, _gain(votes, blended, request) + (prior_gain if on_prior else 0.0))

    def _reward(self, voter: str, gain: float) -> None:
        factor = math.exp(_RATE * max(-_MAX_GAIN, min(_MAX_GAIN, gain)))
        self._weights[voter] = self._weights.get(voter, _FIRST_WEIGHT) * factor

    def _forget(self) -> None:
        self._requests = _halved(self._requests)
        self._acts = {request: self._acts[request] for request in self._requests}
        halved = {key: _halved(table) for key, table in self._tables.items()}
        self._tables = {key: table for key, table in halved.items() if table}

    def _ballot(self, history: History, seen: Views) -> _Ballot:
        total = sum(self._requests.values()) + _SMOOTHING * len(self._requests)
        prior = {request: (times + _SMOOTHING) / total for request, times in self._requests.items()}
        votes = [*self._exact(seen, prior), *self._relative(history, seen), *self._signs(seen, prior)]
        return _Ballot({request: math.log(p) for request, p in prior.items()}, votes)

    def _exact(self, seen: Views, prior: Mapping[str, float]) -> Iterable[tuple[str, bool, Votes]]:
        for voter, key in seen.exact:
            table = self._tables.get(key)
            if table:
                escape = _escape(table)
                votes = {r: math.log1p(times / (escape * prior[r])) for r, times in table.items()}
                yield voter, True, votes

    def _relative(self, history: History, seen: Views) -> Iterable[tuple[str, bool, Votes]]:
        meant: dict[str, list[str]] = defaultdict(list)
        for request, acts in self._acts.items():
            meant[history.relative(acts)].append(request)
        for voter, key in seen.relative:
            table = self._tables.get(key)
            if table:
                escape = _escape(table) * _RELATIVE_PRIOR
                votes = {
                    request: math.log1p(times / escape)
                    for relative, times in table.items()
                    for request in meant.get(relative, ())
                }
                yield voter, False, votes

    def _signs(self, seen: Views, prior: Mapping[str, float]) -> Iterable[tuple[str, bool, Votes]]:
        for group, signs in seen.signs:
            tables = [self._tables.get(group + sign, {}) for sign in signs]
            telling = [table for table in tables if sum(table.values()) >= _SIGN_SEEN]
            votes: dict[str, float] = defaultdict(float)
            for table in telling:
                for request, times in table.items():
                    # Signs of one message say the same thing several times: their sum grows with the root.
                    votes[request] += math.log1p(times / (_SIGN_PRIOR * prior[request])) / math.sqrt(
                        len(telling)
                    )
            if telling:
                yield group, False, votes

    def _blend(self, ballot: _Ballot) -> dict[str, float]:
        weight = self._weights.get
        scores = dict.fromkeys(ballot.log_prior, 0.0)
        prior_weight = weight(_PRIOR, _FIRST_WEIGHT)
        for voter, on_prior, votes in ballot.votes:
            trusted = weight(voter, _FIRST_WEIGHT)
            prior_weight += trusted if on_prior else 0.0
            for request, vote in votes.items():
                scores[request] += trusted * vote
        return _softmax({r: score + prior_weight * ballot.log_prior[r] for r, score in scores.items()})


_PRIOR = ""


@dataclass(frozen=True, slots=True)
class _Ballot:
    """`votes` are (voter, whether it leans on the prior for what it has not seen, votes)."""

    log_prior: Mapping[str, float]
    votes: list[tuple[str, bool, Votes]]


def _escape(table: Mapping[str, int]) -> float:
    return _ESCAPE_PER_KIND * len(table) + _ESCAPE


def _gain(votes: Votes, blended: Mapping[str, float], request: str) -> float:
    return votes.get(request, 0.0) - sum(blended[r] * vote for r, vote in votes.items())


def _halved(counts: Mapping[str, int]) -> dict[str, int]:
    return {key: times // 2 for key, times in counts.items() if times > 1}


def _softmax(scores: Mapping[str, float]) -> dict[str, float]:
    highest = max(scores.values())
    powers = {request: math.exp(score - highest) for request, score in scores.items()}
    total = sum(powers.values())
    return {request: power / total for request, power in powers.items()}
