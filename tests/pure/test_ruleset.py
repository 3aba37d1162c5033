"""What the rules of a site decide together."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.engine.rules import Decision, RuleInput
from apps.engine.types import Facts, FactsState, Order, Profile
from apps.rulebook.compiler import Condition, compile_condition
from apps.rulebook.ruleset import Action, CompiledRule, CompiledRules

ORDERS = (Order("1042", "shipped", "2026-01-05", ("Lamp",)),)
VISITOR = Facts(verified=False, state=FactsState.NONE)


def rule(name: str, condition: str, **action: Any) -> CompiledRule:
    return CompiledRule(name, compile_condition(condition), Action(**action))


def asked(
    text: str = "",
    *,
    locale: str = "en",
    facts: Facts = VISITOR,
    turn_number: int = 1,
    within_hours: bool = True,
) -> RuleInput:
    return RuleInput(text, locale, turn_number, facts, within_hours)


def customer(tier: str = "gold", orders: tuple[Order, ...] = (), **attributes: Any) -> Facts:
    return Facts(True, FactsState.WARM, Profile("Mia", tier=tier, attributes=attributes), orders)


def matched(condition: str, given_: RuleInput) -> bool:
    decision = CompiledRules([rule("it", condition)]).decide(given_)
    assert decision.failed == ()
    return decision.matched == ("it",)


REFUND = 'tier == "gold" && (text_lower.contains("refund") || text_lower.contains("退款"))'


@pytest.mark.parametrize(
    ("text", "tier", "acts"),
    [
        ("I want a REFUND", "gold", True),
        ("我要退款，谢谢", "gold", True),
        ("I want a refund", "standard", False),
        ("hello", "gold", False),
    ],
)
def test_gold_customers_who_mention_a_refund_are_recognised(text: str, tier: str, acts: bool) -> None:
    assert matched(REFUND, asked(text, facts=customer(tier))) is acts


@pytest.mark.parametrize(
    ("condition", "given_"),
    [
        ('locale == "zh"', asked(locale="zh-hans")),
        ("turn_number == 3", asked(turn_number=3)),
        ("!within_hours", asked(within_hours=False)),
        ("verified && attributes.vip", asked(facts=customer(vip=True))),
        ("attributes.points >= 100", asked(facts=customer(points=100))),
        ("attributes.points >= 100", asked(facts=customer(points=100.5))),
        ('attributes["since"] == "2019"', asked(facts=customer(since="2019"))),
        ("attributes.vip == null", asked()),
        ('order_count == 1 && orders[0].items[0] == "Lamp"', asked(facts=customer(orders=ORDERS))),
        ('"1042" in order_numbers', asked(facts=customer(orders=ORDERS))),
        ("text.contains('\\U0001F525')", asked("🔥🔥")),
    ],
)  # fmt: skip
def test_a_condition_sees_the_turn_and_the_customer(condition: str, given_: RuleInput) -> None:
    assert matched(condition, given_)


@pytest.mark.parametrize(
    "condition", ["attributes.points > 100", 'attributes.name.contains("x")', "attributes.vip"]
)
def test_an_attribute_nobody_told_matches_nothing_and_is_no_failure(condition: str) -> None:
    assert not matched(condition, asked(facts=customer()))


def test_a_rule_that_fails_is_named_and_the_others_act() -> None:
    rules = CompiledRules(
        [
            rule("breaks", "attributes.points > 100", tag="rich"),
            rule("acts", "true", tag="seen"),
            CompiledRule("refused when loaded", None, Action(tag="never")),
        ],
    )
    decision = rules.decide(asked(facts=customer(points="many")))
    assert decision == Decision(tags=("seen",), matched=("acts",), failed=("breaks", "refused when loaded"))


def test_the_first_reply_and_the_first_handoff_win_and_the_rest_adds_up() -> None:
    rules = CompiledRules([
            rule("1", "true", tag="a", instruction="Be short."),
            rule("2", "true", reply_zh="您好", handoff=True, team="Returns", tag="b"),
            rule("3", "true", reply_en="Hello", handoff=True, team="Support", tag="a"),
            rule("3b", "true", instruction="Be kind."),
            rule("4", "false", reply_en="Never"),
        ],
    )  # fmt: skip
    chinese, english = (rules.decide(asked(locale=locale)) for locale in ("zh-hans", "en"))
    assert english == Decision(
        reply="您好", handoff=True, team="Returns", tags=("a", "b"), instructions=("Be short.", "Be kind."),
        matched=("1", "2", "3", "3b"),
    )  # fmt: skip
    assert chinese.reply == "您好"


@given(
    text=st.text(),
    locale=st.text(max_size=6),
    tier=st.text(max_size=6),
    attribute=st.one_of(st.text(), st.integers(), st.floats(), st.booleans()),
    number=st.text(max_size=6),
)
def test_no_input_raises(text: str, locale: str, tier: str, attribute: Any, number: str) -> None:
    rules = CompiledRules(
        [rule(str(at), condition) for at, condition in enumerate([REFUND, "attributes.x == text", "true"])]
    )
    facts = customer(tier, (Order(number, number, number),), x=attribute)
    decision = rules.decide(asked(text, locale=locale, facts=facts))
    assert "2" in decision.matched


WORDS = ["Refund", "退款", "ΣΑΣ", "ß", "İ", "x"]


def unindexed(condition: Condition) -> Condition:
    return Condition(condition.program, None, condition.attributes)


@given(st.text(alphabet=list("RefundrefundΣσςΑßSsİi̇xX 退款"), max_size=20))
def test_the_index_by_words_changes_no_decision(text: str) -> None:
    conditions = [
        f"{variable}.{call}('{word}')"
        for word in WORDS
        for variable in ("text", "text_lower")
        for call in ("contains", "matches")
    ]
    compiled = [(condition, compile_condition(condition)) for condition in conditions]
    indexed = CompiledRules([CompiledRule(name, condition, Action()) for name, condition in compiled])
    plain = CompiledRules(
        [CompiledRule(name, unindexed(condition), Action()) for name, condition in compiled]
    )
    assert indexed.decide(asked(text)) == plain.decide(asked(text))
