"""Customers and agents: what they do, and the journal of what each has sent and seen."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from tests.chaos.holding import Holding
from tests.chaos.line import Line

Frame = dict[str, Any]

_PAUSE_S = 5.0  # before a question, at most: they fall into all of a schedule
ASK_FOR_A_PERSON = 0.15  # of the questions that are followed by the button


@dataclass(eq=False)
class Person(Line):
    """Whoever sends messages: what they said, and what was acknowledged."""

    said: dict[str, str] = field(default_factory=dict)  # text by id
    said_in: dict[str, str] = field(default_factory=dict)  # conversation by id
    acknowledged: dict[str, int] = field(default_factory=dict)  # seq by id

    def say(self, conversation: str, text: str) -> None:
        message_id = uuid4().hex
        self.said[message_id], self.said_in[message_id] = text, conversation
        self.post({"type": "message.send", "id": message_id, "conversation": conversation, "text": text})

    def answered(self, frame: Frame) -> None:
        """`ack` and `refused` end the wait for an id; what may have been stored is sent again later."""
        name = str(frame.get("id") or "")
        if frame["type"] == "ack":
            self.outbox.pop(name, None)
            self.acknowledged[name] = frame["seq"]
        elif frame["type"] == "refused" and name:
            if frame["code"] in ("unavailable", "slow_down"):
                asyncio.get_running_loop().call_later(0.5, self._again, name)
            else:
                self.outbox.pop(name, None)

    def _again(self, name: str) -> None:
        if name in self.outbox:
            self.tell(self.outbox[name])


@dataclass(eq=False)
class Customer(Person):
    """One conversation. Asks the next question when the last one was answered, or after a while all the same."""

    kind = "customer"
    name: str = ""
    token: str = ""
    questions: int = 2
    email: str = ""  # left before anything is said, where there is one
    impatience_s: float = 4.0
    holding: Holding = field(default_factory=lambda: Holding(""))
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def hello(self) -> Frame:
        frame: Frame = {"type": "hello", "token": self.token, "locale": "en"}
        if self.holding.epoch is not None:
            held = self.holding
            frame |= {"conversation": held.conversation, "epoch": held.epoch, "seq": held.seq}
        return frame

    def heard(self, frame: Frame) -> None:
        if frame["type"] == "welcome" and not self.holding.conversation:
            self.holding.conversation = frame["conversation"]
        if frame["type"] in ("ack", "refused"):
            self.answered(frame)
        self.holding.apply(frame)
        self.changed.set()

    def missing(self) -> Frame | None:
        unseen = any(seq > self.holding.seq for seq in self.acknowledged.values())
        if not (self.holding.gap or unseen) or self.holding.epoch is None:
            return None
        return {"type": "history.fetch", "conversation": self.holding.conversation, "after": self.holding.seq}

    async def talk(self) -> None:
        """Says everything it has to say; returns when all of it is acknowledged."""
        await self.until(lambda: self.ready)
        if self.email:
            contact = {"conversation": self.holding.conversation, "email": self.email}
            self.post({"type": "contact.leave", "id": uuid4().hex, **contact})
            await self.until(lambda: not self.outbox)
        for number in range(self.questions):
            await asyncio.sleep(self.rng.random() * _PAUSE_S)
            self.say(
                self.holding.conversation, f"{self.name} asks number {number}: how long is the warranty?"
            )
            if self.rng.random() < ASK_FOR_A_PERSON:
                self.post(
                    {"type": "handoff.request", "id": uuid4().hex, "conversation": self.holding.conversation}
                )
            try:
                async with asyncio.timeout(self.impatience_s):
                    await self.until(self.settled)
            except TimeoutError:
                continue
        await self.until(lambda: not self.outbox)

    def settled(self) -> bool:
        """Nothing waits here: all is acknowledged and seen, and the last word is answered or a person's to answer."""
        if self.outbox or self.missing() or self.holding.live is not None:
            return False
        if not self.ready:
            return False
        if self.holding.owner.get("kind") != "assistant":
            return True
        return self.holding.open_question() is None

    async def until(self, condition: Callable[[], bool]) -> None:
        """Looks again after each frame and each lost or won connection."""
        while not condition():
            # One event for all who wait: each sets about looking before the next frame can come.
            self.changed.clear()
            await self.changed.wait()


class Asker(Customer):
    """Asks the next question as soon as the last one was answered, until cancelled."""

    async def talk(self) -> None:
        await self.until(lambda: self.ready)
        while True:
            self.say(self.holding.conversation, f"{self.name} asks how long the warranty is")
            await self.until(self.settled)


@dataclass(eq=False)
class Agent(Person):
    """Takes what waits, says one thing, hands it back. Keeps the whole inbox and one conversation."""

    kind = "agent"
    name: str = ""
    rows: dict[str, Frame] = field(default_factory=dict)
    holding: Holding | None = None
    takes: dict[str, str] = field(default_factory=dict)  # conversation by id of the action
    working: bool = True
    served: int = 0

    def hello(self) -> Frame:
        return {"type": "hello"}

    def heard(self, frame: Frame) -> None:
        match frame["type"]:
            case "inbox":
                self.rows = {row["conversation"]: row for row in frame["rows"]}
            case "inbox.row":
                row = frame["row"]
                known = self.rows.get(row["conversation"])
                if known is None or known["seq"] <= row["seq"]:
                    self.rows[row["conversation"]] = row
            case "ack" | "refused":
                self.answered(frame)
                if frame["type"] == "ack":
                    self._took(frame["id"])
                elif frame["of"] == "conversation.watch":
                    asyncio.get_running_loop().call_later(0.5, self._watch_again, frame["conversation"])
        held = self.holding
        if held is not None and _conversation(frame) == held.conversation:
            held.apply(frame)
        self._work()

    def greeted(self) -> None:
        super().greeted()
        if self.holding is not None:
            self.tell({"type": "conversation.watch", "conversation": self.holding.conversation})

    def missing(self) -> Frame | None:
        if self.holding is None or not self.holding.gap or self.holding.epoch is None:
            return None
        return {"type": "history.fetch", "conversation": self.holding.conversation, "after": self.holding.seq}

    def watch(self, conversation: str) -> Holding:
        """Shows it, from nothing."""
        self.holding = Holding(conversation)
        self.tell({"type": "conversation.watch", "conversation": conversation})
        return self.holding

    def _watch_again(self, conversation: str) -> None:
        held = self.holding
        if held is not None and held.conversation == conversation and held.epoch is None:
            self.tell({"type": "conversation.watch", "conversation": conversation})

    def _work(self) -> None:
        if not self.working or self.outbox or not self.ready:
            return
        waiting = [name for name, row in self.rows.items() if row["owner"]["kind"] == "queue"]
        if waiting:
            conversation = self.rng.choice(waiting)
            action = uuid4().hex
            self.takes[action] = conversation
            self.watch(conversation)
            self.post({"type": "conversation.take", "id": action, "conversation": conversation})

    def _took(self, action: str) -> None:
        conversation = self.takes.pop(action, None)
        if conversation is None:
            return
        self.served += 1
        self.say(conversation, f"{self.name} has looked ({self.served}): two years.")
        self.post({"type": "conversation.hand_back", "id": uuid4().hex, "conversation": conversation})


@dataclass(eq=False)
class Reader(Agent):
    """A tab that was never there before and looks at one conversation after the other."""

    working: bool = False
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def heard(self, frame: Frame) -> None:
        super().heard(frame)
        self.news.set()

    async def read(self, conversation: str) -> Holding:
        """What it is told of the conversation."""
        holding = self.watch(conversation)
        while holding.epoch is None:
            self.news.clear()
            await self.news.wait()
        return holding


def _conversation(frame: Frame) -> str | None:
    if frame["type"] == "watching":
        return str(frame["row"]["conversation"])
    if frame["type"] == "history":
        return str(frame["page"]["conversation"])
    named = frame.get("conversation")
    return str(named) if named is not None else None
