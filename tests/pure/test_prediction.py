"""The next request, guessed from what was said; and what may be prepared for it."""

from __future__ import annotations

import json
import random

import pytest

from apps.engine.dialogue import MAX_DETAILS, MAX_TOPICS, History, Move, steps
from apps.engine.prediction import MAX_REQUESTS, Predictor, UnknownVersion
from apps.engine.prediction_views import name
from apps.engine.preparing import Record, may_start

KINDS = ("ask", "tell", "thank")
TOPICS = ("order", "return", "shipping", "warranty")


def asks(topic: str, kind: str = "ask", *details: str) -> Move:
    return Move(by_customer=True, acts=((kind, topic),), details=frozenset(details))


def answers(kind: str = "tell") -> Move:
    return Move(by_customer=False, acts=((kind, ""),))


def conversation(*topics: str) -> list[Move]:
    return [move for topic in topics for move in (asks(topic), answers())]


def wandering(seed: int, length: int = 8) -> list[Move]:
    """A conversation without any sense."""
    dice = random.Random(seed)
    return [
        Move(
            by_customer=number % 2 == 0,
            acts=tuple((dice.choice(KINDS), dice.choice(TOPICS)) for _ in range(dice.randint(1, 3))),
            details=frozenset(str(dice.randint(0, 99)) for _ in range(dice.randint(0, 3))),
            named=frozenset(dice.sample(TOPICS, dice.randint(0, 2))),
        )
        for number in range(length)
    ]


def echoes(seed: int) -> list[Move]:
    """Topics by chance, except that every other message goes back to the one before the last."""
    dice = random.Random(seed)
    topics: list[str] = []
    for number in range(10):
        topics.append(topics[-2] if number % 2 and number > 1 else dice.choice(TOPICS))
    return conversation(*topics)


def learned(conversations: list[list[Move]]) -> Predictor:
    predictor = Predictor()
    for moves in conversations:
        predictor.learn(moves)
    return predictor


def after(moves: list[Move]) -> History:
    history = History()
    for move in moves:
        history.observe(move)
    return history


def test_probabilities_sum_to_one_whatever_was_learned_and_said() -> None:
    predictor = learned([wandering(seed) for seed in range(60)])
    for seed in range(1_000, 1_060):
        for history, _ in steps(wandering(seed)):
            assert sum(predictor.probabilities(history).values()) == pytest.approx(1)
            likely = [prediction.probability for prediction in predictor.predict(history, 5)]
            assert likely == sorted(likely, reverse=True)
            assert len(likely) == 5


def test_nothing_is_predicted_before_anything_was_learned() -> None:
    assert Predictor().predict(after(conversation("order"))) == ()


def test_a_habit_is_learned() -> None:
    predictor = learned(
        [conversation("order", "return", "shipping")] * 30 + [conversation("return", "order")] * 10
    )
    assert predictor.predict(after(conversation("order")), 1)[0].request == (("ask", "return"),)
    assert predictor.predict(after(conversation("order", "return")), 1)[0].request == (("ask", "shipping"),)


def test_what_holds_for_some_topics_is_expected_of_one_that_was_never_seen_in_its_place() -> None:
    """After a refusal customers ask for the same thing again, whatever it was."""
    habits = [[asks(topic), answers("refuse"), asks(topic, "insist")] for topic in TOPICS[:3]] * 10
    calm = [conversation("warranty", "order"), [asks("order"), answers(), asks("warranty", "insist")]] * 10
    predictor = learned(habits + calm)
    history = after([asks("warranty"), answers("refuse")])
    assert predictor.predict(history, 1)[0].request == (("insist", "warranty"),)


def test_voters_that_see_the_pattern_gain_weight_and_blind_ones_lose_it() -> None:
    predictor = learned([echoes(seed) for seed in range(300)])
    weights = predictor.weights
    assert weights["asked 3"] > 2 * weights["reply"]
    assert weights["reply"] < 0.1 < weights["asked 3"]


def test_weights_that_follow_the_hit_rate_predict_better_than_equal_ones() -> None:
    adaptive, equal = Predictor(), Predictor(adaptive=False)
    for seed in range(300):
        adaptive.learn(echoes(seed))
        equal.learn(echoes(seed))
    assert _mean_probability(adaptive) > _mean_probability(equal) + 0.05


def _mean_probability(predictor: Predictor) -> float:
    """Of what came, in conversations it has not seen."""
    given = [
        predictor.probabilities(history)[name(request)]
        for seed in range(5_000, 5_050)
        for history, request in steps(echoes(seed))
    ]
    return sum(given) / len(given)


def test_past_its_cap_it_forgets_what_is_rare_and_keeps_the_habit() -> None:
    habit = conversation("order", "return")
    mixed = [moves for seed in range(200) for moves in (wandering(seed), habit, habit, habit)]
    predictor = Predictor(max_tables=500)
    for moves in mixed:
        predictor.learn(moves)
        assert predictor.size <= 500
    assert predictor.predict(after(conversation("order")), 1)[0].request == (("ask", "return"),)
    assert sum(predictor.probabilities(after(conversation("order"))).values()) == pytest.approx(1)


def test_it_knows_so_many_requests_and_no_more() -> None:
    predictor = learned([conversation("order", f"topic {n}") for n in range(MAX_REQUESTS + 50)])
    assert len(predictor.probabilities(after(conversation("order")))) == MAX_REQUESTS


def test_a_history_stays_small_however_long_the_conversation() -> None:
    history = History()
    for n in range(5_000):
        history.observe(asks(f"topic {n % 40}", f"kind {n}", *(f"{n} {detail}" for detail in range(50))))
        history.observe(answers())
    assert len(history.topics) == MAX_TOPICS
    assert max(len(history.details_on_topic), len(history.times)) <= MAX_DETAILS
    assert max(len(history.asked), len(history.moves), len(history.asked_relatively)) <= 3


def test_a_stored_predictor_predicts_the_same_and_learns_on() -> None:
    predictor = learned([wandering(seed) for seed in range(40)])
    copy = Predictor.load(predictor.dump())
    for each in (predictor, copy):
        each.learn(echoes(1))
    for history, _ in steps(wandering(999)):
        assert copy.probabilities(history) == predictor.probabilities(history)
    assert copy.dump() == predictor.dump()


def test_a_predictor_of_another_version_is_refused() -> None:
    stored = json.loads(Predictor().dump())
    with pytest.raises(UnknownVersion):
        Predictor.load(json.dumps({**stored, "version": stored["version"] + 1}).encode())


@pytest.mark.parametrize(("idle_s", "processing_s", "may"), [(0.71, 1, True), (0.7, 1, False), (5, 8, False)])
def test_preparing_may_start_only_when_the_customer_is_expected_to_be_quiet_for_long(
    idle_s: float, processing_s: float, may: bool
) -> None:
    assert may_start(idle_s, processing_s) is may


def test_only_a_few_likely_predictions_are_acted_on() -> None:
    chances = {topic: 0.3 + number / 10 for number, topic in enumerate(TOPICS)}
    assert Record().chosen(chances) == {"warranty": 0.6, "shipping": 0.5}
    assert Record().chosen({"order": 0.15}) == {}


def test_predictions_that_keep_failing_are_no_longer_acted_on_until_they_come_true_again() -> None:
    record, promised = Record(), {"order": 0.6}
    assert record.chosen(promised) == promised
    for _ in range(50):
        assert record.settle(promised, {"return"}) == 0
    assert record.chosen(promised) == {}
    for _ in range(50):
        assert record.settle(promised, {"order"}) == 1
    assert record.chosen(promised) == promised
