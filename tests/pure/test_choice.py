"""Which endpoint a turn goes to, driven by a clock of the test: fast, slow and failing ones, and their changes."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field, replace

import pytest

from apps.llm.allowance import Extra
from apps.llm.choice import Choice
from apps.llm.score import Candidate, Form
from apps.llm.tactics import Tactics

TACTICS = Tactics()
TURNS = 5  # of a conversation


@dataclass
class Server:
    """An endpoint whose first text takes `first_s`, give or take a third, and which fails in a part of its answers."""

    first_s: float
    fails: float = 0.0


FAST, SLOW, FAILING = Server(0.1), Server(0.6), Server(0.15, fails=0.2)


@dataclass
class World:
    """A site that asks `per_s` turns a second, one after the other, and fails over as the line does."""

    servers: dict[str, Server]
    tactics: Tactics = TACTICS
    per_s: float = 4.0
    now: float = 1_000.0
    dice: random.Random = field(default_factory=lambda: random.Random(7))

    last: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.choice = Choice(self.tactics)
        self.forms = {name: Form(self.tactics) for name in self.servers}

    def candidates(self) -> list[Candidate]:
        return [Candidate(name, "", 10, 0, self.forms[name]) for name in sorted(self.servers)]

    def turns(self, count: int) -> Counter[str]:
        """Who answered."""
        answered: Counter[str] = Counter()
        for _ in range(count):
            conversation = f"c{round(self.now * self.per_s) // TURNS}"
            last = self.last.get(conversation, "")
            order = self.choice.turn(self.candidates(), conversation, last, self.now)
            who = next((one.name for one in order if self._asked(one.name)), "nobody")
            answered[who] += 1
            self.last[conversation] = who
            self.now += 1.0 / self.per_s
        return answered

    def _asked(self, name: str) -> bool:
        server, form = self.servers[name], self.forms[name]
        if self.dice.random() < server.fails:
            form.failed(self.now)
            return False
        form.began(server.first_s * self.dice.uniform(0.67, 1.33), self.now)
        return True


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("per_s", [2.0, 4.0, 20.0])
def test_nine_of_ten_turns_go_to_the_fast_one_and_again_half_a_minute_after_a_swap(
    per_s: float, seed: int
) -> None:
    world = World({"a": SLOW, "b": FAST, "c": FAILING}, per_s=per_s, dice=random.Random(seed))
    assert world.turns(200)["b"] >= 180
    world.servers = {"a": FAST, "b": SLOW, "c": FAILING}
    world.turns(int(30 * per_s))
    assert world.turns(200)["a"] >= 180
    world.servers = {"a": FAILING, "b": SLOW, "c": FAST}
    world.turns(int(30 * per_s))
    assert world.turns(200)["c"] >= 180


def test_without_a_score_the_first_by_name_is_asked_however_slow() -> None:
    world = World({"a": SLOW, "b": FAST}, tactics=replace(TACTICS, scored=False))
    assert world.turns(50) == {"a": 50}


def test_a_slow_one_that_became_the_fastest_is_found_though_the_other_is_as_good_as_before() -> None:
    world = World({"a": SLOW, "b": FAST})
    world.turns(200)
    world.servers["a"] = Server(0.02)
    world.turns(120)
    assert world.turns(100)["a"] >= 90


def test_a_lower_number_is_asked_first_however_slow_and_the_others_are_its_fallback() -> None:
    slow, fast = Form(), Form()
    slow.began(3.0, 1.0)
    fast.began(0.1, 1.0)
    candidates = [Candidate("fast", "", 20, 0, fast), Candidate("slow", "", 10, 0, slow)]
    choice = Choice(TACTICS)
    for second in range(100):
        assert [one.name for one in choice.turn(candidates, "", "", float(second))] == ["slow", "fast"]


def test_each_answer_that_runs_makes_an_endpoint_that_much_worse() -> None:
    one, other = Form(), Form()
    one.began(0.1, 1.0)
    other.began(0.25, 1.0)

    def first(in_flight: int) -> str:
        candidates = [Candidate("one", "", 10, in_flight, one), Candidate("other", "", 10, 0, other)]
        return Choice(TACTICS).likely(candidates, "", "", 1.0)[0].name

    assert [first(running) for running in range(4)] == ["one", "one", "other", "other"]


def test_a_conversation_stays_with_a_little_slower_endpoint_and_with_its_region() -> None:
    forms = {name: Form() for name in "abc"}
    for name, first_s in (("a", 0.10), ("b", 0.12), ("c", 0.105)):
        forms[name].began(first_s, 1.0)
    regions = {"a": "north", "b": "south", "c": "south"}
    candidates = [Candidate(name, regions[name], 10, 0, forms[name]) for name in "abc"]
    choice = Choice(TACTICS)
    assert [one.name for one in choice.likely(candidates, "stays", "b", 1.0)] == ["b", "c", "a"]
    assert [one.name for one in choice.likely(candidates, "new", "", 1.0)] == ["a", "c", "b"]


def test_what_broke_a_conversations_answer_off_is_asked_last_next_time() -> None:
    choice = Choice(TACTICS)
    candidates = [Candidate("a", "", 10, 0, Form()), Candidate("b", "", 20, 0, Form())]
    choice.broke("k", "a")
    assert [one.name for one in choice.turn(candidates, "k", "a", 1.0)] == ["b", "a"]
    assert [one.name for one in choice.turn(candidates, "other", "a", 1.0)] == ["a", "b"]
    choice.answered("k")
    assert [one.name for one in choice.turn(candidates, "k", "b", 1.0)] == ["a", "b"]


def test_all_extras_together_are_a_fifth_of_the_turns_and_ten_at_once() -> None:
    choice = Choice(replace(TACTICS, extra_per_s=0.0))
    granted = 0
    for _ in range(1_000):
        choice.turn([], "", "", 1.0)
        granted += sum(choice.grants(extra, 1.0) for extra in Extra)
    assert granted == 10 + 200 - 1  # the first turn found it full


def test_a_quiet_site_may_ask_elsewhere_again_after_a_while() -> None:
    choice = Choice(TACTICS)
    while choice.grants(Extra.ELSEWHERE, 1.0):
        pass
    assert not choice.grants(Extra.AGAIN, 10.9)
    assert choice.grants(Extra.AGAIN, 11.1)


def test_hedges_are_a_twentieth_of_the_turns_even_where_other_extras_are_left() -> None:
    choice = Choice(TACTICS)
    hedges = 0
    for _ in range(1_000):
        choice.turn([], "", "", 1.0)
        hedges += choice.grants(Extra.HEDGE, 1.0)
    assert 50 <= hedges <= 52
    assert choice.grants(Extra.ELSEWHERE, 1.0)


def test_late_is_later_than_nineteen_of_twenty_answers_of_the_sooner_one() -> None:
    asked, other = Form(), Form()
    candidates = Candidate("asked", "", 10, 0, asked), Candidate("other", "", 10, 0, other)
    choice = Choice(replace(TACTICS, hedges=True))
    assert choice.hedge_after_s(candidates[0], candidates[1:]) is None  # nothing is known
    for number in range(100):
        asked.began(1.0 + number / 100, 1.0)
        other.began(0.5 + number / 100, 1.0)
    assert choice.hedge_after_s(candidates[0], candidates[1:]) == pytest.approx(1.45)
    assert choice.hedge_after_s(candidates[0], ()) is None
    assert Choice(replace(TACTICS, hedges=False)).hedge_after_s(candidates[0], candidates[1:]) is None
