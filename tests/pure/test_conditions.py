"""What a rule's condition may say, and what its author is told otherwise."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.rulebook.compiler import RefusedCondition, compile_condition

ACCEPTED = [
    "true",
    'tier == "gold" && text_lower.contains("refund")',
    "text.contains('退款') || text.contains('退货')",
    'text_lower.matches("refund|money back|退款")',
    "turn_number > 3 && !verified",
    'order_count > 0 && orders[0].status == "in_transit"',
    '"delivered" in order_statuses && "1042" in order_numbers',
    'attributes.vip == true || attributes["points"] > 100',
    'locale == "zh" && within_hours // weekdays',
    "size(text) > 1000",
]

REFUSED = [
    ("", None, "is empty"),
    ('tier = "gold"', 5, "character 6: write == to compare"),
    ('tier == "gold" and verified', 15, "write && for and"),
    ("tier == “gold”", 8, "straight quotes"),
    ('tier == "gold', 8, "no closing quote"),
    ("text.contains(", 14, "something is missing at the end"),
    ('verified &&\n tier = "gold"', 18, "line 2, character 7: write =="),
    ('tire == "gold"', 0, "did you mean tier?"),
    ("text.contain('x')", 5, "did you mean contains?"),
    ("launch(text)", 0, "there are: contains"),
    ("orders.exists(o, o.status == 'x')", 7, "not allowed"),
    ("orders.map(o, o.status) == []", 7, "not allowed"),
    ("orders.filter(o, true) == []", 7, "not allowed"),
    ("orders.all(o, true)", 7, "not allowed"),
    ("has(attributes.vip)", 0, "not needed"),
    ("attributes.vip || text.matches('(')", 31, "unclosed group"),
    ("text.matches(tier)", 5, "one text in quotes"),
    (r"text.matches('\\w{1,200}x')", 13, "too slow"),
    ("text.matches('" + "a" * 81 + "')", 13, "80 characters"),
    ("'refund' in text", None, "Values of different kinds"),
    ("tier", None, "must be true or false"),
    ("orders[0].status == 'shipped'", None, "order_count > 0 &&"),
    ("order_count > 0 && orders[0].sate == 'x'", None, "Orders have no field 'sate'"),
    ("1 / turn_number == 1 && 1 / 0 == 1", None, "divides by zero"),
    ("(" * 200 + "true" + ")" * 200, None, "too many brackets"),
    ("true || " * 200 + "true", None, "longer than 1000"),
]


@pytest.mark.parametrize("condition", ACCEPTED)
def test_a_sound_condition_is_accepted(condition: str) -> None:
    compile_condition(condition)


@pytest.mark.parametrize(("condition", "at", "told"), REFUSED)
def test_a_refusal_says_what_is_wrong_and_where(condition: str, at: int | None, told: str) -> None:
    with pytest.raises(RefusedCondition, match=r".") as refused:
        compile_condition(condition)
    assert told in str(refused.value)
    if at is not None:
        assert refused.value.at == at


def verdict(condition: str) -> str:
    try:
        compile_condition(condition)
    except RefusedCondition as refused:
        return str(refused)
    return "accepted"


@given(st.text(max_size=60))
def test_whatever_is_typed_is_accepted_or_refused_with_a_reason(condition: str) -> None:
    assert verdict(condition)


@pytest.mark.parametrize(
    ("condition", "trigger"),
    [
        ("text.contains('Refund')", {"refund"}),
        ("tier == 'gold' && (text.contains('a') || (text_lower.contains('退款')))", {"a", "退款"}),
        ("text.contains('a') && text.contains('b') && verified", {"a"}),
        ("text.contains('a') || verified", None),
        ("!text.contains('a')", None),
        ("text.matches('Court|律师') && verified", {"court", "律师"}),
        ("text.matches('court|')", None),
        ("text.matches('(?i)court')", None),
        ("text.startsWith('court')", None),
        ("text.contains('a') ? verified : true", None),
        ("text.contains('a') == false", None),
        ("text.contains('')", None),
        ("text.contains(tier)", None),
        ("tier.contains('a')", None),
        ("('(' + text).contains('a')", None),
        ("verified && text.contains(') || true')", {") || true"}),
    ],
)
def test_words_that_must_occur_are_found(condition: str, trigger: set[str] | None) -> None:
    compiled = compile_condition(condition)
    assert compiled.trigger == (None if trigger is None else frozenset(trigger))


def test_folding_after_lowering_loses_no_difference_between_the_two() -> None:
    # The index looks for a folded word in the lowered and folded text; a condition looks in either.
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        assert character.lower().casefold() == character.casefold(), hex(code)
