"""What one client holds of one conversation: docs/protocol.md once more, in Python, independent of the server's code.

Texts of the schedules have no character beyond the BMP, so that Python's lengths are UTF-16 code units.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Frame = dict[str, Any]


class Contradiction(AssertionError):
    """The server has told this client two things that cannot both be so."""


@dataclass(slots=True)
class Live:
    """The answer being written, as painted."""

    handle: int
    turn: str
    part: int
    place: int
    text: str = ""


@dataclass(slots=True)
class Holding:
    """Applies frames in any order they may come in. Raises `Contradiction`."""

    conversation: str
    epoch: str | None = None
    seq: int = 0
    messages: dict[int, Frame] = field(default_factory=dict)  # by place
    owner: Frame = field(default_factory=dict)
    live: Live | None = None
    painted: dict[tuple[str, int], str] = field(
        default_factory=dict
    )  # longest text ever shown of (turn, part)
    handles: dict[int, tuple[str, int]] = field(default_factory=dict)
    _owner_seq: int = 0
    _held: dict[int, Frame] = field(default_factory=dict)
    _beyond: bool = False  # a delta came from beyond the text held
    _ended: bool = False  # the live turn has ended, its message is on the way

    def apply(self, frame: Frame) -> None:
        """One server frame of this conversation."""
        match frame["type"]:
            case "welcome":
                self._page(frame["page"])
                self._state(frame["owner"], frame.get("live"), frame["page"]["upto"])
            case "watching":
                self._page(frame["page"])
                self._state(frame["row"]["owner"], frame.get("live"), frame["page"]["upto"])
            case "history":
                self._history(frame)
            case "event":
                self._event(frame)
            case "turn.started":
                self._start(frame)
            case "delta":
                self._delta(frame)
            case "turn.ended":
                self._end(frame)

    @property
    def gap(self) -> bool:
        """Something is known to be missing: ask `history.fetch` with `after`."""
        return bool(self._held) or self._beyond or self._ended

    def told(self, message_id: str) -> Frame | None:
        """The message that its sender sent under this id."""
        return next((m for m in self.messages.values() if m.get("client_id") == message_id), None)

    def script(self) -> list[tuple[int, str, str]]:
        """What is on the screen, top to bottom: place, message id, text."""
        return [(place, m["id"], m["text"]) for place, m in sorted(self.messages.items())]

    # ------------------------------------------------------------ pages and events

    def _history(self, frame: Frame) -> None:
        page = frame["page"]
        if page["epoch"] != self.epoch:
            return
        if frame.get("before") is not None:
            for event in page["events"]:
                self._show(event)
            return
        if page.get("after") is not None and page["after"] > self.seq:
            return  # it continues what others hold; ours is filled by asking
        self._page(page)
        self._relive(frame.get("live"), page["upto"])

    def _page(self, page: Frame) -> None:
        after = page.get("after")
        continues = (self.epoch == page["epoch"] and after is not None and after <= self.seq) or (
            self.epoch == page["epoch"] and self.seq >= page["upto"]
        )
        if not continues:
            self.messages = {}
            self._held = {} if self.epoch != page["epoch"] else self._held
            self.seq = 0
        self.epoch = page["epoch"]
        for event in page["events"]:
            self._show(event)
        self.seq = max(self.seq, page["upto"])
        self._settle()

    def _event(self, event: Frame) -> None:
        if event["seq"] <= self.seq:
            self._same(event)
            return
        self._held[event["seq"]] = event
        self._settle()

    def _settle(self) -> None:
        for seq in sorted(self._held):
            if seq > self.seq + 1:
                break
            event = self._held.pop(seq)
            if seq == self.seq + 1:
                self._show(event)
                self.seq = seq
        if self.live is not None and self.live.place in self.messages:
            self._quiet()

    def _same(self, event: Frame) -> None:
        message = event.get("message")
        if message is None:
            return
        known = self.messages.get(message["place"])
        if known is not None and known["id"] != message["id"]:
            raise Contradiction(f"place {message['place']} holds {known} and is told {message}")

    def _show(self, event: Frame) -> None:
        if event["kind"] == "owner" and event["seq"] > self._owner_seq:
            self.owner, self._owner_seq = event["owner"], event["seq"]
        message = event.get("message")
        if message is None:
            return
        self._same(event)
        key = message.get("client_id")
        twin = next(
            (
                m
                for m in self.messages.values()
                if key and m.get("client_id") == key and m["id"] != message["id"]
            ),
            None,
        )
        if twin is not None:
            raise Contradiction(f"{key} stands twice: {twin} and {message}")
        self._judge_text(message)
        self.messages[message["place"]] = message

    def _judge_text(self, message: Frame) -> None:
        """What was painted of an attempt is the beginning of what is kept; only a broken one may be kept shorter."""
        if message.get("turn") is None:
            return
        shown = self.painted.get((message["turn"], message["part"]), "")
        kept, state = message["text"], message.get("state", "complete")
        if not (kept.startswith(shown) or (state != "complete" and shown.startswith(kept))):
            raise Contradiction(f"painted {shown!r}, kept {kept!r} ({state})")

    # ------------------------------------------------------------ the live text

    def _state(self, owner: Frame, live: Frame | None, upto: int) -> None:
        if upto >= self._owner_seq:
            self.owner, self._owner_seq = owner, upto
        self._relive(live, upto)

    def _relive(self, live: Frame | None, upto: int) -> None:
        self._beyond = False
        if live is None:
            if self.live is not None and self.live.place <= upto:
                self._quiet()
            return
        if live["place"] in self.messages or (self.live is not None and self.live.place > live["place"]):
            return
        self._start(live)
        text = live.get("text", "")
        if self.live is not None and len(text) > len(self.live.text):
            self._paint(text)

    def _start(self, frame: Frame) -> None:
        key = (frame["turn"], frame["part"])
        self.handles[frame["handle"]] = key
        if frame["place"] in self.messages:
            return
        if self.live is None or (self.live.turn, self.live.part) != key:
            self.live = Live(frame["handle"], *key, frame["place"])
            self._ended = False
        self.live.handle = frame["handle"]

    def _delta(self, frame: Frame) -> None:
        live = self.live
        if live is None or live.handle != frame["handle"]:
            # Of a turn that is over, or one whose start was lost: the next page brings it.
            self._beyond = self._beyond or frame["handle"] not in self.handles
            return
        if frame["offset"] > len(live.text):
            self._beyond = True
            return
        overlap = live.text[frame["offset"] : frame["offset"] + len(frame["text"])]
        if not frame["text"].startswith(overlap):
            raise Contradiction(f"offset {frame['offset']} was {overlap!r} and is {frame['text']!r}")
        self._paint(
            live.text[: frame["offset"]] + frame["text"]
            if not overlap
            else live.text + frame["text"][len(overlap) :]
        )

    def _paint(self, text: str) -> None:
        live = self.live
        assert live is not None
        if not text.startswith(live.text):
            raise Contradiction(f"painted {live.text!r}, told {text!r}")
        live.text = text
        self.painted[live.turn, live.part] = text

    def _end(self, frame: Frame) -> None:
        if self.live is None or self.live.handle != frame["handle"]:
            return
        if frame.get("length", 0) == 0 or self.live.place in self.messages:
            self._quiet()
        else:
            self._ended = True

    def _quiet(self) -> None:
        self.live = None
        self._ended = self._beyond = False
