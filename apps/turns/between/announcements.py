"""What processes tell each other over publish/subscribe. Each may be lost: there is a slower way to learn the same."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

PROCESSES = "processes"  # the group of every web process


class ResidentsMoved(msgspec.Struct, frozen=True, tag="residents", tag_field="what"):
    """Some site has a newer version. Else found by the poll."""


class OwnerMoved(msgspec.Struct, frozen=True, tag="owner", tag_field="what"):
    """A conversation has another owner. Else found by the streaming process at its next flush."""

    conversation: str
    version: int


class StopPressed(msgspec.Struct, frozen=True, tag="stop", tag_field="what"):
    """The customer stopped the turn at this many UTF-16 code units. Else found at the next flush."""

    conversation: str
    turn: str
    painted: int


class PaintReported(msgspec.Struct, frozen=True, tag="paint", tag_field="what"):
    """A client shows the first text of a turn, so many ms after the question was submitted. Else not recorded."""

    conversation: str
    handle: int
    ms: float


class NewsLost(msgspec.Struct, frozen=True, tag="lost", tag_field="what"):
    """Some of what this process published has not arrived. Else found by the next event's number, if one comes."""


Announcement: TypeAlias = ResidentsMoved | OwnerMoved | StopPressed | PaintReported
Told: TypeAlias = Announcement | NewsLost


def to_message(announcement: Told, origin: str) -> dict[str, Any]:
    """The channel layer's message; `origin` is the process that speaks, "" for a worker."""
    return {"type": "announcement", "origin": origin, "body": msgspec.to_builtins(announcement)}


def from_message(message: dict[str, Any]) -> Told:
    """Raises `msgspec.ValidationError` for what only a newer process understands."""
    told: Told = msgspec.convert(message["body"], Told)
    return told
