"""A conversation as its server would tell it, and what a bad network makes of that. Drawn from a seed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.chaos.holding import Holding

Frame = dict[str, Any]

CONVERSATION = "c"
_PIECES = ("a", "word ", "订单", "\n- ")
_LATEST = 6  # frames that may overtake a late one


@dataclass(slots=True)
class History:
    """`frames` in the order in which the server says them."""

    rng: random.Random
    epoch: str = "e1"
    seq: int = 0
    handle: int = 0
    frames: list[Frame] = field(default_factory=list)

    def go_on(self) -> None:
        """Something more happens."""
        self.rng.choice((self._say, self._turn, self._turn, self._own, self._hide))()

    def _event(self, kind: str, **fields: object) -> int:
        self.seq += 1
        self.frames.append(
            {
                "type": "event",
                "conversation": CONVERSATION,
                "seq": self.seq,
                "kind": kind,
                "at": self.seq,
                **fields,
            }
        )
        return self.seq

    def _message(self, place: int, text: str, **fields: object) -> Frame:
        message = {
            "id": f"m{place}",
            "place": place,
            "author": "customer",
            "name": "",
            "text": text,
            "at": place,
        }
        return message | fields

    def _say(self) -> None:
        place = self.seq + 1
        message = self._message(place, f"question {place}", client_id=f"c{place}")
        self._event("message", message=message)
        if self.rng.random() < 0.2:
            self._event("message_removed", message={**message, "text": "", "state": "removed"})

    def _own(self) -> None:
        kind = self.rng.choice(("assistant", "queue", "agent"))
        self._event("owner", owner={"kind": kind, "name": f"o{self.seq}", "version": self.seq})
        if self.rng.random() < 0.5:
            self._event("status", status=self.rng.choice(("open", "resolved")))

    def _hide(self) -> None:
        self._event("hidden")

    def _turn(self) -> None:
        """An answer in one or two parts; what was told of a part that broke off is kept."""
        turn = f"{self.epoch}-{self.seq}"
        broken = self.rng.random() < 0.2
        for part in (1, 2) if broken else (1,):
            self._part(turn, part, interrupted=broken and part == 1)

    def _part(self, turn: str, part: int, *, interrupted: bool) -> None:
        self.handle += 1
        handle = self.handle
        place = self._event("turn_opened", turn=turn, part=part)
        started = {"turn": turn, "part": part, "handle": handle, "place": place}
        self.frames.append({"type": "turn.started", "conversation": CONVERSATION} | started)
        text = ""
        for _ in range(self.rng.randrange(6)):
            piece = self.rng.choice(_PIECES)
            self.frames.append({"type": "delta", "handle": handle, "offset": len(text), "text": piece})
            text += piece
            if self.rng.random() < 0.15:
                self._say()
        end = (
            "interrupted"
            if interrupted
            else self.rng.choice(("finished", "finished", "stopped", "superseded"))
        )
        kept = {"superseded": "", "stopped": text[: self.rng.randrange(len(text) + 1)]}.get(end, text)
        ended = {"type": "turn.ended", "handle": handle, "end": end, "length": len(kept)}
        if not kept:
            self.frames.append(ended)
            return
        state = end if end in ("stopped", "interrupted") else "complete"
        message = self._message(place, kept, author="assistant", turn=turn, part=part, state=state)
        self._event("message", message=message)
        # Either may come first.
        self.frames.insert(len(self.frames) - self.rng.randrange(2), ended)

    def page(self, sent: int, *, after: int | None = None, before: int | None = None) -> Frame:
        """What the server says when asked, after so many frames: each message once, as it stands; no opened turn."""
        told = [frame for frame in self.frames[:sent] if frame["type"] == "event"]
        now = {frame["message"]["place"]: frame for frame in told if frame.get("message")}
        chosen = [
            frame
            for frame in told
            if frame["kind"] != "turn_opened"
            and (not frame.get("message") or now[frame["message"]["place"]] is frame)
            and (after is None or frame["seq"] > after)
            and (before is None or frame["seq"] < before)
        ]
        upto = max((frame["seq"] for frame in told), default=0)
        return {
            "conversation": CONVERSATION,
            "epoch": self.epoch,
            "upto": upto,
            "events": chosen,
            "after": after,
        }

    def live(self, sent: int) -> Frame | None:
        live: Frame | None = None
        for frame in self.frames[:sent]:
            if frame["type"] == "turn.started":
                live = {key: frame[key] for key in ("turn", "part", "handle", "place")} | {"text": ""}
            elif frame["type"] == "delta" and live:
                live["text"] += frame["text"]
            elif frame["type"] == "turn.ended" or (
                live and (frame.get("message") or {}).get("place") == live["place"]
            ):
                live = None
        return live

    def last(self, sent: int, what: str, default: Any) -> Any:
        found = [frame[what] for frame in self.frames[:sent] if frame.get("kind") == what]
        return found[-1] if found else default

    def welcome(self, sent: int, seq: int | None) -> Frame:
        upto = self.page(sent)["upto"]
        resumed = seq is not None and seq <= upto
        return {
            "type": "welcome", "conversation": CONVERSATION, "customer": "k", "name": "", "verified": False,
            "status": self.last(sent, "status", "open"),
            "owner": self.last(sent, "owner", {"kind": "assistant", "name": "Lumi"}),
            "page": self.page(sent, after=seq if resumed else None), "live": self.live(sent),
            "assistant": True, "availability": {"online": True}, "heartbeat_s": 30, "now": 0,
        }  # fmt: skip

    def history(self, sent: int, *, after: int | None = None, before: int | None = None) -> Frame:
        return {
            "type": "history",
            "page": self.page(sent, after=after, before=before),
            "after": after,
            "before": before,
            "live": self.live(sent) if before is None else None,
        }


def disturbed(rng: random.Random, holding: Holding) -> Iterator[Frame]:
    """What reaches a client, which asks for what it misses. The last frame is an answer that makes all good.

    Frames are lost, doubled and late; the line breaks and is welcomed again; now and then the numbering begins anew.
    """
    history = History(rng)
    yield history.welcome(0, None)
    for _ in range(rng.randint(1, 3)):
        begun = len(history.frames)
        for _ in range(rng.randint(1, 8)):
            history.go_on()
        for sent, frame in _arrivals(history, begun):
            yield frame
            yield from _answers(history, holding, begun, sent)
        if rng.random() < 0.1:
            history = History(rng, epoch=f"{history.epoch}'")
        # Another process may count its answers anew; nothing of the lost line comes after this.
        history.handle = rng.choice((history.handle, 0))
        resumes = holding.epoch == history.epoch and rng.random() < 0.8
        yield history.welcome(len(history.frames), holding.seq if resumes else None)
    yield history.history(len(history.frames), after=holding.seq)


def _arrivals(history: History, begun: int) -> list[tuple[int, Frame]]:
    """The frames from `begun` on as they come, each with how many the server has sent by then."""
    rng, frames = history.rng, history.frames
    coming: list[tuple[int, Frame]] = []
    for index in range(begun, len(frames)):
        for _ in range(rng.choice((0, 1, 1, 1, 1, 2))):
            late = rng.randrange(_LATEST) if rng.random() < 0.3 else 0
            coming.append((min(index + late + 1, len(frames)), frames[index]))
    return sorted(coming, key=lambda one: one[0])


def _answers(history: History, holding: Holding, begun: int, sent: int) -> Iterator[Frame]:
    """Now and then one: to the client, or to somebody else whose question it was."""
    rng = history.rng
    if rng.random() < 0.3:
        sent -= rng.randrange(min(_LATEST, sent - begun) + 1)  # made before what came before it
    chance = rng.random()
    if holding.gap and chance < 0.3:
        yield history.history(sent, after=holding.seq)
    elif chance < 0.05:
        yield history.history(sent, after=rng.randrange(history.page(sent)["upto"] + 1))
    elif chance < 0.1:
        yield history.history(sent, before=rng.randrange(1, holding.seq + 2))
