"""The prompt's prefix over any conversation: append-only inside a generation, encoded once."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.engine.context import Context, Marks, window_turns
from apps.engine.digest.lines import utf8_size
from apps.engine.prompt import facts_message, policy_message
from apps.engine.tokens import tokens_of_bytes
from apps.engine.types import Assistant, ChatMessage, Facts, FactsState, Order, Passage, Profile, Speaker
from apps.turns.kept.context_copies import read, written

POLICY = policy_message(Assistant("Lumen", "Lantern", ""))
NOBODY = facts_message(Facts(verified=False, state=FactsState.NONE))


def mia(status: str) -> ChatMessage:
    orders = (Order("1042", status, "2026-01-02", ("Lamp",)),)
    return facts_message(Facts(True, FactsState.WARM, Profile("Mia Chen", tier="gold"), orders))


def passage(text: str) -> Passage:
    return Passage(title="Returns", text=text, url="", score=1.0, answerable=True)


def asked(context: Context, facts: ChatMessage = NOBODY, article: str = "") -> tuple[ChatMessage, ...]:
    return context.prompt(POLICY, facts, (passage(article),) if article else (), ())


def contents(messages: tuple[ChatMessage, ...]) -> list[str]:
    return [message.content for message in messages]


def test_what_is_this_turns_alone_stands_behind_the_history_and_before_the_question() -> None:
    context = Context()
    for place, speaker, text in (
        (1, Speaker.CUSTOMER, "Hi"),
        (2, Speaker.ASSISTANT, "Hello"),
        (4, Speaker.CUSTOMER, "Boots?"),
    ):
        context.add(place, speaker, text)
    prompt = asked(context, article="Boots may come back.")
    assert contents(prompt)[2:] == [
        "Hi",
        "Hello",
        "<articles>\n# Returns\nBoots may come back.\n</articles>",
        "Boots?",
    ]


def test_facts_that_change_are_told_again_behind_the_history_and_leave_the_prefix_alone() -> None:
    context = Context()
    context.add(1, Speaker.CUSTOMER, "Where is it?")
    first = asked(context, mia("shipped"))
    context.add(2, Speaker.ASSISTANT, "Shipped.")
    context.add(4, Speaker.CUSTOMER, "And now?")
    second = asked(context, mia("delivered"))
    assert second[:3] == first[:3]
    assert second[-2] == mia("delivered")
    assert context.generation == 1


def test_an_answer_that_was_stored_after_a_later_question_stands_before_it() -> None:
    context = Context()
    context.add(1, Speaker.CUSTOMER, "First?")
    first = asked(context)
    context.add(3, Speaker.CUSTOMER, "Second?")
    context.add(2, Speaker.ASSISTANT, "One.")
    second = asked(context)
    assert contents(second)[2:] == ["First?", "One.", "Second?"]
    assert second[: len(first)] == first
    assert context.generation == 1


def test_what_is_known_before_a_question_is_what_its_prompt_begins_with() -> None:
    context = Context()
    assert contents(context.known(POLICY, None)) == [POLICY.content]
    first = context.known(POLICY, NOBODY)
    context.add(1, Speaker.CUSTOMER, "First?")
    assert asked(context, article="Boots.")[:2] == first
    context.add(2, Speaker.ASSISTANT, "One.")
    before = (context.given, context.generation, context.head)
    second = context.known(POLICY, mia("shipped"))
    assert (context.given, context.generation, context.head) == before
    context.add(3, Speaker.CUSTOMER, "Second?")
    prompt = asked(context, mia("shipped"), "Lamps.")
    assert contents(second)[1:] == [NOBODY.content, "First?", "One."]
    assert prompt[:4] == second


def test_a_question_that_may_come_makes_the_prompt_that_it_makes_when_it_comes() -> None:
    context = long_conversation()
    asked(context)
    assert shortened(context)
    before = (len(context.said), context.given, context.generation, context.tokens)
    guessed = asked(context.with_question("Second?"), article="Boots.")
    assert (len(context.said), context.given, context.generation, context.tokens) == before
    context.add(999, Speaker.CUSTOMER, "Second?")
    assert asked(context, article="Boots.") == guessed


def test_a_shortened_conversation_is_known_by_its_digest() -> None:
    context = long_conversation()
    asked(context)
    assert shortened(context)
    known = context.known(POLICY, NOBODY)
    context.add(999, Speaker.CUSTOMER, "And now?")
    assert asked(context)[:-1] == known


def test_a_removed_message_starts_a_new_generation_only_if_the_model_had_it() -> None:
    context = Context()
    context.add(1, Speaker.CUSTOMER, "My card is 4111 1111")
    context.remove(1)
    assert (context.generation, context.tokens) == (1, 0)
    context.add(2, Speaker.CUSTOMER, "My card is 4111 1111")
    asked(context)
    context.remove(2)
    assert context.generation == 2
    assert "4111" not in str(contents(asked(context)))


TIGHT = Marks(high_tokens=1_000, low_tokens=400, window_turns=3)


def long_conversation(turns: int = 60) -> Context:
    context = Context()
    for turn in range(turns):
        context.add(
            2 * turn + 1, Speaker.CUSTOMER, f"Hello, could you please tell me about order {1000 + turn}?"
        )
        context.add(
            2 * turn + 2, Speaker.ASSISTANT, f"Of course, it would be {turn}.50 euro, thank you for asking."
        )
    return context


def shortened(context: Context, marks: Marks = TIGHT) -> bool:
    outgrown = context.outgrown(marks)
    return outgrown is not None and context.shorten(outgrown, outgrown.shortened())


def test_below_the_high_mark_nothing_moves() -> None:
    context = long_conversation(turns=20)
    assert context.tokens <= TIGHT.high_tokens
    assert context.outgrown(TIGHT) is None


def test_above_it_the_newest_turns_stay_and_of_the_others_their_facts_in_a_new_generation() -> None:
    context = long_conversation()
    before = asked(context)
    assert shortened(context)
    after = asked(context)
    assert context.tokens <= TIGHT.low_tokens
    assert context.generation == 2
    assert context.customer_turns() == 60
    assert contents(after)[-6:] == contents(before)[-6:]
    earlier = contents(after)[2]
    assert contents(after)[3] == contents(before)[-6]
    assert earlier.startswith("<earlier>\nC:order 1000\nA:0.50 euro\nC:1001\n")
    assert earlier.endswith("\nC:1056\nA:56.50\n</earlier>")


@pytest.mark.parametrize(("average", "turns"), [(0, 4), (3.4, 5), (10, 12), (10.1, 13), (1_000, 40)])
def test_the_window_is_the_average_and_a_fifth_within_bounds(average: float, turns: int) -> None:
    assert window_turns(average) == turns


def test_at_most_the_window_stays_as_it_was_said() -> None:
    for turns in (2, 5):
        context = long_conversation()
        assert shortened(context, Marks(high_tokens=1_000, low_tokens=900, window_turns=turns))
        assert [said.place for said in context.said] == list(range(121 - 2 * turns, 121))


def test_a_digest_is_shortened_again_with_what_came_after_it() -> None:
    context = long_conversation()
    assert shortened(context)
    for turn in range(60, 110):
        context.add(
            2 * turn + 1, Speaker.CUSTOMER, f"Hello, could you please tell me about order {1000 + turn}?"
        )
        context.add(2 * turn + 2, Speaker.ASSISTANT, f"Of course, it would be {turn}.50 euro, thank you.")
    assert shortened(context)
    assert context.tokens <= TIGHT.low_tokens
    assert context.customer_turns() == 110
    assert [line.place for line in context.earlier] == sorted({line.place for line in context.earlier})


def test_a_change_meanwhile_leaves_the_context_as_it_is() -> None:
    context = long_conversation()
    outgrown = context.outgrown(TIGHT)
    assert outgrown is not None
    context.remove(3)
    before = contents(asked(context))
    assert not context.shorten(outgrown, outgrown.shortened())
    assert contents(asked(context)) == before


def test_messages_that_came_meanwhile_stay_behind_the_digest() -> None:
    context = long_conversation()
    outgrown = context.outgrown(TIGHT)
    assert outgrown is not None
    context.add(1_000, Speaker.CUSTOMER, "One more?")
    assert context.shorten(outgrown, outgrown.shortened())
    assert contents(asked(context))[-1] == "One more?"


def test_a_removed_message_leaves_the_digest_too() -> None:
    context = long_conversation()
    assert shortened(context)
    assert "1007" in contents(asked(context))[2]
    context.remove(15)
    assert "1007" not in contents(asked(context))[2]
    assert context.generation == 2


def test_a_digested_message_does_not_come_back() -> None:
    context = long_conversation()
    assert shortened(context)
    before = asked(context)
    context.add(15, Speaker.CUSTOMER, "order 1007")
    assert asked(context) == before


def test_a_prompt_of_turn_two_hundred_encodes_only_what_is_new() -> None:
    context = Context()
    for place in range(1, 400):
        context.add(place, Speaker.CUSTOMER, f"message {place}")
    before = [message.json for message in asked(context)]
    context.add(400, Speaker.CUSTOMER, "one more")
    after = [message.json for message in asked(context)]
    assert all(one is other for one, other in zip(before, after, strict=False))


_steps: st.SearchStrategy[Any] = st.one_of(
    st.tuples(st.just("say"), st.sampled_from(list(Speaker)), st.text(min_size=1, max_size=40)),
    st.tuples(st.just("late"), st.text(min_size=1, max_size=40)),
    st.tuples(
        st.just("ask"),
        st.sampled_from(["", "one article", "another"]),
        st.sampled_from(["shipped", "delivered"]),
    ),
    st.tuples(st.just("remove"), st.integers(1, 40)),
    st.tuples(st.just("shorten"), st.integers(10, 200)),
    st.tuples(st.just("move")),
)


@settings(max_examples=300)
@given(st.lists(_steps, max_size=40))
def test_inside_a_generation_every_prompt_extends_the_one_before(steps: list[Any]) -> None:
    context, place, kept = Context(), 0, (0, b"")
    for step in steps:
        match step:
            case ("say", speaker, text):
                place += 2
                context.add(place, speaker, text)
            case ("late", text):
                context.add(place - 1, Speaker.ASSISTANT, text)
            case ("remove", which):
                context.remove(which)
            case ("shorten", low):
                shortened(context, Marks(high_tokens=low * 2, low_tokens=low, window_turns=4))
            case ("move",):  # to another process, which goes on from the copy
                context = read(written("epoch", context)).context
            case ("ask", article, status):
                prompt = asked(context, mia(status), article)
                given_bytes = _stable_part(context, prompt)
                generation, before = kept
                if generation == context.generation:
                    assert given_bytes.startswith(before)
                kept = (context.generation, given_bytes)
    assert context.tokens == sum(said.message.tokens for said in context.said) + tokens_of_bytes(
        utf8_size(context.earlier)
    )
    assert [said.place for said in context.said] == sorted({said.place for said in context.said})


def _stable_part(context: Context, prompt: tuple[ChatMessage, ...]) -> bytes:
    """The bytes a cache can keep: policy, facts and the history, without what is this turn's alone."""
    history = [said.message for said in context.said]
    head = context.stable_head()
    assert prompt[: len(head)] == head
    return b",".join(message.json for message in (*head, *history))


def test_a_visitors_prompt_holds_no_fact() -> None:
    context = Context()
    context.add(1, Speaker.CUSTOMER, "Where is my order 1042?")
    told = "\n".join(contents(asked(context)[:-1]))
    assert "log in" in told
    assert "1042" not in told
