"""The ways in which the predictor looks at a history: each is a key under which it counts what came next.

Views count requests as they are, or relatively (the same topic, an earlier one, a new one). Signs are single
features, taken together as one voter.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from apps.engine.dialogue import Act, History

_BETWEEN = "\x1f"


@dataclass(frozen=True, slots=True)
class Views:
    """(voter, key) of each view; a sign's voter is its group."""

    exact: tuple[tuple[str, str], ...]
    relative: tuple[tuple[str, str], ...]
    signs: tuple[tuple[str, tuple[str, ...]], ...]


def views(history: History) -> Views:
    """What of the history can be looked up."""
    return Views(exact=_exact(history), relative=_relative(history), signs=_signs(history))


def name(request: Iterable[Act]) -> str:
    """A request as one string."""
    return "|".join(f"{kind}:{topic}" for kind, topic in request)


def _exact(h: History) -> tuple[tuple[str, str], ...]:
    reply, asked = name(h.reply), [name(request) for request in h.asked]
    topics, details = _all(h.topics), _all(h.details_on_topic)
    told = str(len(h.details_on_topic))
    return (
        _view("reply", reply),
        _view("reply details", reply, _all(h.reply_details)),
        _view("asked", asked[-1], reply),
        _view("asked 3", *asked),
        _view("moves 3", *map(name, h.moves)),
        _view("details", _all(h.details), reply),
        _view("topic", h.topic, topics, reply),
        _view("topic asked", h.topic, topics, asked[-1], reply),
        _view("stay", h.topic, topics, str(min(h.moves_on_topic, 5))),
        _view("position", h.topic, str(min(h.customer_moves, 10)), str(len(h.topics))),
        _view("on topic", h.topic, details, reply),
        _view("told", h.topic, topics, told),
        _view("order", *h.topics),
        _view("named", h.topic, _all(h.named_on_topic)),
        _view("just named", h.topic, topics, _all(h.named)),
        _view("named, new", h.topic, _all(h.named_on_topic - set(h.topics)), told),
    )


def _relative(h: History) -> tuple[tuple[str, str], ...]:
    reply, asked = h.relative(h.reply), list(h.asked_relatively)
    topics, told = str(len(h.topics)), str(len(h.details_on_topic))
    named = _flag(h.named_on_topic - {h.topic}) + _flag(h.named - {h.topic})
    return (
        _view("~reply", reply),
        _view("~asked", asked[-1], reply),
        _view("~asked 2", *asked[-2:], reply),
        _view("~asked 3", *asked, reply),
        _view("~stay", str(min(h.moves_on_topic, 7)), topics, reply),
        _view("~position", str(min(h.customer_moves, 10)), topics, reply),
        _view("~told", told, topics, reply),
        _view("~on topic", _all(h.details_on_topic), reply),
        _view("~named", named, reply),
        _view("~named, told", named, told, topics),
    )


def _signs(h: History) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return (
        ("#on topic", tuple(f"{h.topic}{_BETWEEN}{detail}" for detail in sorted(h.details_on_topic))),
        ("#times", tuple(f"{kind}:{topic} {min(times, 4)}" for (kind, topic), times in h.times.items())),
        ("#reply", (*sorted(h.reply_details), *(f"{kind}:{topic}" for kind, topic in h.reply))),
        ("#asked", (*sorted(h.details), *(f"{kind}:{topic}" for kind, topic in h.asked[-1]))),
    )


def _view(voter: str, *parts: str) -> tuple[str, str]:
    return voter, _BETWEEN.join((voter, *parts))


def _all(items: Iterable[str]) -> str:
    return ",".join(sorted(items))


def _flag(items: frozenset[str]) -> str:
    return "+" if items else "-"
