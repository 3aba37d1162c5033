"""What one client holds of one conversation: docs/protocol.md once more, in Python, independent of the server's code.

Texts of the schedules have no character beyond the BMP, so that Python's lengths are UTF-16 code units.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Frame = dict[str, Any]

_CUT_OFF = ("interrupted", "taken_over")


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
    over: bool = False  # it has ended, and its message is on the way


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
    _owner_seq: int = 0
    _as_of: dict[int, int] = field(
        default_factory=dict
    )  # by place: the number as of which its message was told
    _held: dict[int, Frame] = field(default_factory=dict)
    _ahead: list[Frame] = field(
        default_factory=list
    )  # deltas beyond the text held, or of an answer not yet known
    _silent: dict[int, int | None] = field(
        default_factory=dict
    )  # handles that say no more, and their answer's place

    def apply(self, frame: Frame) -> None:
        """One server frame of this conversation."""
        match frame["type"]:
            case "welcome":
                self._join(frame["page"], frame["owner"], frame.get("live"))
            case "watching":
                self._join(frame["page"], frame["row"]["owner"], frame.get("live"))
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
        return bool(self._held or self._ahead) or (self.live is not None and self.live.over)

    def told(self, message_id: str) -> Frame | None:
        """The message that its sender sent under this id."""
        return next((m for m in self.messages.values() if m.get("client_id") == message_id), None)

    def open_question(self) -> Frame | None:
        """The customer's last message, where nothing but what was cut off follows it."""
        whole = [m for _, m in sorted(self.messages.items()) if m.get("state") not in _CUT_OFF]
        return whole[-1] if whole and whole[-1]["author"] == "customer" else None

    def script(self) -> list[tuple[int, str, str]]:
        """What is on the screen, top to bottom: place, message id, text."""
        return [
            (place, m["id"], m["text"])
            for place, m in sorted(self.messages.items())
            if m.get("state") != "removed"
        ]

    def _join(self, page: Frame, owner: Frame, live: Frame | None) -> None:
        """A line begins: nothing of the one before is still on its way."""
        self._page(page)
        self._silent = {}
        if page["upto"] >= self._owner_seq:
            self.owner, self._owner_seq = owner, page["upto"]
        self._relive(live, page["upto"])
        self._settle()

    def _history(self, frame: Frame) -> None:
        page = frame["page"]
        if page["epoch"] != self.epoch:
            return
        if frame.get("before") is not None:
            for event in page["events"]:
                self._show(event, page["upto"])
            return
        if page.get("after") is not None and page["after"] > self.seq:
            return  # it continues what others hold; ours is filled by asking
        self._page(page)
        self._relive(frame.get("live"), page["upto"])
        self._settle()

    def _page(self, page: Frame) -> None:
        if page["epoch"] != self.epoch:
            self._begin(page["epoch"])
        after = page.get("after")
        if not (after is not None and after <= self.seq) and self.seq < page["upto"]:
            self.messages, self._as_of = {}, {}
        for event in page["events"]:
            self._show(event, page["upto"])
        self.seq = max(self.seq, page["upto"])

    def _begin(self, epoch: str) -> None:
        """Another numbering: what was held says nothing in it. Events that came before the first page belong to it."""
        if self.epoch is not None:
            self._held = {}
        self.epoch, self.seq, self._owner_seq, self.live = epoch, 0, 0, None
        self.messages, self._as_of, self._ahead = {}, {}, []

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
                self._show(event, seq)
                self.seq = seq
        if self.live is not None and self.live.place in self.messages:
            self._quiet(self.live.handle)

    def _same(self, event: Frame) -> None:
        message = event.get("message")
        if message is None:
            return
        known = self.messages.get(message["place"])
        if known is not None and known["id"] != message["id"]:
            raise Contradiction(f"place {message['place']} holds {known} and is told {message}")

    def _show(self, event: Frame, as_of: int) -> None:
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
        if self._as_of.get(message["place"], 0) > as_of:
            return  # what is held is newer
        if message.get("state") != "removed":
            self._judge_text(message)
        self.messages[message["place"]], self._as_of[message["place"]] = message, as_of

    def _judge_text(self, message: Frame) -> None:
        """What was painted of an attempt is the beginning of what is kept; only a broken one may be kept shorter."""
        if message.get("turn") is None:
            return
        shown = self.painted.get((message["turn"], message["part"]), "")
        kept, state = message["text"], message.get("state", "complete")
        if not (kept.startswith(shown) or (state != "complete" and shown.startswith(kept))):
            raise Contradiction(f"painted {shown!r}, kept {kept!r} ({state})")

    def _relive(self, told: Frame | None, upto: int) -> None:
        """The server's word on the live answer as of `upto`: one that began later is not contradicted."""
        live = self.live
        if live is not None and live.place > (upto if told is None else told["place"]):
            return
        if told is None:
            if live is not None:
                self._quiet(live.handle)
            self._ahead = []
            return
        if told["place"] in self.messages:
            return
        same = live is not None and (live.turn, live.part) == (told["turn"], told["part"])
        if live is not None and same:
            if live.over:
                return
            live.handle = told["handle"]
        else:
            self.live = Live(told["handle"], told["turn"], told["part"], told["place"])
        assert self.live is not None
        self._silent.pop(told["handle"], None)
        self._ahead = [delta for delta in self._ahead if delta["handle"] == told["handle"]]
        if len(told.get("text", "")) > len(self.live.text):
            self._paint(told["text"])
        self._catch_up()

    def _start(self, frame: Frame) -> None:
        live, place = self.live, frame["place"]
        if live is not None and (live.handle, live.turn, live.part) == (
            frame["handle"],
            frame["turn"],
            frame["part"],
        ):
            return
        if frame["handle"] in self._silent and (self._silent[frame["handle"]] or place) >= place:
            return
        if place in self.messages or (live is not None and live.place > place):
            return
        if live is not None:
            self._quiet(live.handle)
        self._silent.pop(frame["handle"], None)
        self.live = Live(frame["handle"], frame["turn"], frame["part"], place)
        self._catch_up()

    def _delta(self, frame: Frame) -> None:
        live = self.live
        if frame["handle"] in self._silent or (live and live.handle == frame["handle"] and live.over):
            return
        self._ahead.append(frame)
        self._catch_up()

    def _catch_up(self) -> None:
        """Paints what now follows."""
        live = self.live
        if live is None:
            return
        mine = [delta for delta in self._ahead if delta["handle"] == live.handle]
        for delta in sorted(mine, key=lambda delta: int(delta["offset"])):
            if delta["offset"] > len(live.text):
                return
            self._ahead.remove(delta)
            known = live.text[delta["offset"] :]
            if not (delta["text"].startswith(known) or known.startswith(delta["text"])):
                raise Contradiction(f"offset {delta['offset']} was {known!r} and is {delta['text']!r}")
            self._paint(live.text + delta["text"][len(known) :])

    def _paint(self, text: str) -> None:
        live = self.live
        assert live is not None
        if not text.startswith(live.text):
            raise Contradiction(f"painted {live.text!r}, told {text!r}")
        live.text = text
        if len(text) > len(self.painted.get((live.turn, live.part), "")):
            self.painted[live.turn, live.part] = text

    def _end(self, frame: Frame) -> None:
        live, length = self.live, frame.get("length", 0)
        if live is None or live.handle != frame["handle"] or length == 0 or live.place in self.messages:
            self._quiet(frame["handle"])
            return
        live.over, live.text = True, live.text[:length]
        self._ahead = [delta for delta in self._ahead if delta["handle"] != live.handle]

    def _quiet(self, handle: int) -> None:
        """No more of this handle."""
        live = self.live
        mine = live is not None and live.handle == handle
        self._silent[handle] = live.place if live is not None and mine else None
        self._ahead = [delta for delta in self._ahead if delta["handle"] != handle]
        if mine:
            self.live = None
