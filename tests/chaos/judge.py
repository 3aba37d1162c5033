"""What was lost, doubled, glued or put out of order, from the people's own journals and from what a newcomer reads."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.chaos.holding import Holding
from tests.chaos.people import Agent, Customer

_NAMES = re.compile(r"\bc\d+\b")


@dataclass(slots=True)
class Verdict:
    """Each list names what went wrong, one line a case. All empty is the only good verdict."""

    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    disagreeing: list[str] = field(default_factory=list)
    unanswered: list[str] = field(default_factory=list)
    strange: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        return not self.cases

    @property
    def wrong(self) -> bool:
        """Something false was shown or kept; what is only late is not."""
        return bool(self.lost or self.doubled or self.disagreeing or self.strange)

    @property
    def cases(self) -> list[str]:
        named = (
            ("lost", self.lost),
            ("doubled", self.doubled),
            ("disagreeing", self.disagreeing),
            ("unanswered", self.unanswered),
            ("strange", self.strange),
        )
        return [f"{name}: {case}" for name, cases in named for case in cases]


def judge(
    customers: Sequence[Customer],
    agents: Sequence[Agent],
    read_again: Mapping[str, Holding],
    second_tabs: Mapping[Customer, Holding],
    newcomer: Agent,
) -> Verdict:
    """`read_again` is what an agent who was never there is told of each conversation, `newcomer` holds that agent's
    inbox; `second_tabs` is what customers are told who come anew.
    """
    verdict = Verdict()
    for customer in customers:
        conversation = customer.holding.conversation
        truth = read_again[conversation]
        _acknowledged(verdict, customer.name, customer.acknowledged, customer.said, [truth])
        _once(verdict, customer.name, truth)
        _same_screen(verdict, customer.name, customer.holding, truth)
        _answered(verdict, customer, truth)
        _own_business(verdict, customer.name, truth)
    for customer, holding in second_tabs.items():
        if holding.conversation != customer.holding.conversation:
            verdict.disagreeing.append(f"{customer.name}: a second tab shows another conversation")
        else:
            _same_screen(verdict, f"{customer.name}'s second tab", holding, read_again[holding.conversation])
    for agent in agents:
        _acknowledged(verdict, agent.name, agent.acknowledged, agent.said, list(read_again.values()))
        _same_inbox(verdict, agent, newcomer)
        if agent.holding is not None and agent.holding.conversation in read_again:
            _same_screen(verdict, agent.name, agent.holding, read_again[agent.holding.conversation])
    return verdict


def _acknowledged(
    verdict: Verdict, who: str, acknowledged: dict[str, int], said: dict[str, str], places: list[Holding]
) -> None:
    for message_id in acknowledged.keys() & said.keys():
        told = [message for place in places if (message := place.told(message_id)) is not None]
        if not told:
            verdict.lost.append(f"{who}: {said[message_id]!r} was acknowledged and is nowhere")
        elif told[0]["text"] != said[message_id]:
            verdict.strange.append(f"{who}: said {said[message_id]!r}, stored {told[0]['text']!r}")


def _once(verdict: Verdict, who: str, truth: Holding) -> None:
    seen: set[tuple[str, object]] = set()
    whole: set[str] = set()
    for message in truth.messages.values():
        keys = [("id", message["id"])]
        if message.get("client_id"):
            keys.append(("client_id", message["client_id"]))
        if message.get("turn"):
            keys.append(("part", f"{message['turn']}/{message['part']}"))
            if message.get("state", "complete") == "complete":
                if message["turn"] in whole:
                    verdict.doubled.append(f"{who}: two whole answers of turn {message['turn']}")
                whole.add(message["turn"])
        for key in keys:
            if key in seen:
                verdict.doubled.append(f"{who}: {key}")
            seen.add(key)


def _same_screen(verdict: Verdict, who: str, seen: Holding, truth: Holding) -> None:
    if seen.live is not None:
        verdict.disagreeing.append(f"{who}: still shows an answer being written: {seen.live}")
    newest = min(seen.messages, default=0)
    expected = [row for row in truth.script() if row[0] >= newest]
    if seen.script() != expected:
        verdict.disagreeing.append(f"{who}: shows {seen.script()}, stored is {expected}")


def _answered(verdict: Verdict, customer: Customer, truth: Holding) -> None:
    if customer.outbox:
        verdict.unanswered.append(f"{customer.name}: {len(customer.outbox)} never acknowledged")
    question = truth.open_question()
    if question is not None and truth.owner["kind"] == "assistant":
        verdict.unanswered.append(f"{customer.name}: {question['text']!r}; the end of it: {_told(truth)}")


def _told(truth: Holding) -> str:
    messages = [message for _, message in sorted(truth.messages.items())][-5:]
    return ", ".join(
        f"{message['place']} {message['author']} {message.get('state', 'complete')} "
        f"{message.get('turn') or ''}/{message.get('part') or ''}"
        for message in messages
    )


def _own_business(verdict: Verdict, who: str, truth: Holding) -> None:
    for message in truth.messages.values():
        others = set(_NAMES.findall(message["text"])) - {who}
        if others:
            verdict.strange.append(f"{who}: is told of {others}: {message['text']!r}")


def _same_inbox(verdict: Verdict, agent: Agent, inbox: Agent) -> None:
    for conversation, row in inbox.rows.items():
        known = agent.rows.get(conversation)
        if known is None:
            verdict.disagreeing.append(f"{agent.name}: does not know of {conversation}")
        elif (known["seq"], known["owner"]) != (row["seq"], row["owner"]):
            verdict.disagreeing.append(f"{agent.name}: shows {known}, stored is {row}")
