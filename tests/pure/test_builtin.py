"""What the builtin assistant says to whom, and that it knows where its knowledge ends."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.engine.events import Done, HandoffCall, ModelEvent, TextDelta
from apps.engine.types import ChatMessage, Facts, FactsState, ModelRequest, Order, Passage, Profile
from apps.llm.providers import builtin
from apps.llm.providers.builtin_words import CHINESE, ENGLISH, Words

ON_THE_WAY = Order(
    "1042", "in_transit", "2026-11-26", ("Lantern Trail boots",), "€129.00", "DHL", "JD0146", "2026-12-03"
)
DELIVERED = Order("1017", "delivered", "2026-10-02", carrier="DHL", eta="2026-10-05")
RETURNED = Order("0998", "returned", "2026-08-14")
MIA = Facts(True, FactsState.WARM, Profile("Mia Chen"), (RETURNED, ON_THE_WAY, DELIVERED))
VISITOR = Facts(False, FactsState.NONE)

RETURNS = Passage(
    "Returns and exchanges",
    "# Returns\n\nYou can return most products within 30 days. Worn boots can be returned within 14 days if the soles "
    "are clean. Refunds reach your card in 5 days.\n\n- Keep the box.\n- Print the label.",
    "https://lantern.example/returns",
    0.7,
    answerable=True,
)
RETURNS_ZH = Passage(
    "退换货政策", "收货后30天内可以退货。穿过的靴子14天内可以退，鞋底需保持干净。退款5天内到账。", "https://lantern.example/zh/returns",
    0.6, answerable=True, locale="zh-hans",
)  # fmt: skip
OFF_TOPIC = Passage(
    "Batteries", "Batteries last 12 hours.", "https://lantern.example/b", 0.9, answerable=False
)


def answer(
    question: str,
    facts: Facts = VISITOR,
    passages: tuple[Passage, ...] = (),
    locale: str = "en",
    earlier: str = "",
    teams: tuple[str, ...] = (),
) -> builtin.Answer:
    messages = [ChatMessage("system", "…"), *([ChatMessage("assistant", earlier)] if earlier else [])]
    request = ModelRequest(
        (*messages, ChatMessage("user", question)), question, locale, facts, passages, teams
    )
    return builtin.compose(request)


@pytest.mark.parametrize(
    "question",
    [
        "Where is my order 1042?", "where's order #1042", "Order no. 1042 please", "1042", "and what about 1042?",
        "When will my parcel 1042 arrive?", "has 1042 shipped yet",
    ],
)  # fmt: skip
def test_an_owner_learns_the_state_of_a_named_order(question: str) -> None:
    assert answer(question, MIA).text == (
        "Order **1042** is on its way with DHL. It should arrive on 3 December. Tracking number: JD0146. "
        "In it: Lantern Trail boots."
    )


@pytest.mark.parametrize(
    "question", ["我的订单1042到哪了", "订单号：1042", "１０４２到哪了？", "查一下1042的物流"]
)
def test_a_chinese_question_is_answered_in_chinese_whatever_the_page_speaks(question: str) -> None:
    assert answer(question, MIA, locale="en").text == (
        "订单 **1042** 正在运送途中（DHL）。预计 12月3日送达。运单号：JD0146。商品：Lantern Trail boots。"
    )


def test_a_question_without_words_is_answered_in_the_language_of_the_page() -> None:
    assert answer("1017?", MIA, locale="zh-hans").text == "订单 **1017** 已送达（DHL）。"


def test_a_delivered_order_is_not_said_to_arrive() -> None:
    assert answer("order 1017?", MIA).text == "Order **1017** has been delivered with DHL."


@pytest.mark.parametrize("question", ["Where is my order?", "Show me my orders", "where's my parcel"])
def test_an_owner_of_several_orders_gets_the_list_newest_first(question: str) -> None:
    assert answer(question, MIA).text == (
        "These are your orders:\n\n- **1042** (26 November 2026): on its way\n"
        "- **1017** (2 October 2026): delivered\n- **0998** (14 August 2026): returned"
    )


def test_the_latest_order_and_an_only_order_are_told_in_full() -> None:
    assert answer("Where is my latest order?", MIA).text.startswith("Order **1042** is on its way")
    only = Facts(True, FactsState.COLD, Profile("Leo"), (DELIVERED,))
    assert answer("Where is my order?", only).text == "Order **1017** has been delivered with DHL."


def test_an_unknown_number_is_not_found_in_the_account() -> None:
    assert answer("Where is my order 5555?", MIA).text == ENGLISH.not_found.format(number="5555")
    assert answer("我的订单5555呢", MIA).text == CHINESE.not_found.format(number="5555")


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("Where is my order 1042?", ENGLISH), ("Where is my order 5555?", ENGLISH), ("Cancel order 1042", ENGLISH),
        ("Where is my order?", ENGLISH), ("我的订单1042到哪了", CHINESE), ("我的订单5555到哪了", CHINESE),
    ],
)  # fmt: skip
def test_a_stranger_is_asked_to_identify_and_learns_nothing(question: str, words: Words) -> None:
    assert answer(question, VISITOR, (OFF_TOPIC, RETURNS)).text == words.identify


def test_orders_out_of_reach_are_said_to_be_so() -> None:
    unreachable = Facts(True, FactsState.UNAVAILABLE, Profile("Mia"))
    assert answer("Where is my order 1042?", unreachable).text.startswith(ENGLISH.orders_unavailable)
    assert (
        answer("Where is my order?", Facts(True, FactsState.WARM, Profile("New"))).text == ENGLISH.no_orders
    )


def test_a_change_of_an_order_is_left_to_a_human() -> None:
    said = answer("Please cancel my order 1042", MIA).text
    assert "**1042** is on its way" in said
    assert said.endswith(f"{ENGLISH.cannot_change} {ENGLISH.offer}")


def test_a_policy_is_told_in_the_articles_own_sentences_and_names_it() -> None:
    given = answer("Can I return worn boots?", VISITOR, (OFF_TOPIC, RETURNS))
    assert "Worn boots can be returned within 14 days if the soles are clean." in given.text
    assert given.told == (RETURNS,)
    assert "#" not in given.text
    assert "Batteries" not in given.text


LAMPS = Passage(
    "Warranty on lamps", "Every lamp has a five-year warranty.", "/lamps", 0.921, answerable=False
)
COVERED = replace(
    LAMPS, text="A lamp that fails.", score=0.927, answerable=True, heading="What the warranty covers"
)
AFTER = replace(
    LAMPS, text="We sell spare parts.", score=0.927, answerable=True, heading="After the warranty"
)
EXCLUDED = replace(COVERED, text="No warranty can cover a fall.", heading="What the warranty does not cover")
LAMPS_ZH = Passage("灯具保修", "本店的灯保修五年。", "/zh/lamps", 0.909, answerable=True, locale="zh-hans")
EXCLUDED_ZH = replace(LAMPS_ZH, text="摔坏的不在保修范围内。", score=0.917, heading="哪些情况不保修")


@pytest.mark.parametrize(
    ("question", "near", "told"),
    [
        ("What's the warranty on lamps?", COVERED, LAMPS),
        ("How long is the warranty?", AFTER, LAMPS),
        ("What does the warranty cover?", replace(COVERED, score=0.94), COVERED),
        ("Do you sell spare parts after the warranty?", AFTER, AFTER),
        ("What do you sell after the warranty?", AFTER, AFTER),
        ("Do you have a warranty?", EXCLUDED, LAMPS),
        ("What does the warranty not cover?", EXCLUDED, EXCLUDED),
    ],
)
def test_an_articles_opening_is_told_where_a_section_is_near_by_its_heading_alone(
    question: str, near: Passage, told: Passage
) -> None:
    assert answer(question, VISITOR, (near, LAMPS)).text.startswith(told.text)


@pytest.mark.parametrize(
    ("question", "told"), [("有保修吗", LAMPS_ZH), ("保修吗？", LAMPS_ZH), ("哪些情况不保修", EXCLUDED_ZH)]
)
def test_a_chinese_question_whether_there_is_something_is_told_the_opening(
    question: str, told: Passage
) -> None:
    assert answer(question, VISITOR, (EXCLUDED_ZH, LAMPS_ZH)).text == told.text


def test_a_chinese_policy_question_prefers_the_chinese_article() -> None:
    given = answer("穿过的靴子可以退吗？", VISITOR, (RETURNS, RETURNS_ZH))
    assert "穿过的靴子14天内可以退，鞋底需保持干净。" in given.text
    assert given.told == (RETURNS_ZH,)


def test_a_return_of_a_known_order_gets_its_state_and_the_policy() -> None:
    given = answer("Can I return my order 1017?", MIA, (RETURNS,))
    assert given.text.startswith("Order **1017** has been delivered with DHL.\n\n")
    assert "You can return most products" in given.text
    assert given.told == (RETURNS,)
    assert answer("Where is my order 1017?", MIA, (RETURNS,)).told == ()


@pytest.mark.parametrize(
    "question",
    [
        "I want to talk to a human", "Can I speak with a real person please?", "agent please", "human",
        "I'd like a human please", "transfer me to someone", "connect me with customer service", "I need an agent now!",
        "转人工", "我要找真人客服", "人工客服", "帮我转一下人工",
    ],
)  # fmt: skip
def test_a_wish_for_a_human_is_an_action(question: str) -> None:
    said = answer(question)
    assert said.handoff == HandoffCall("The customer asked for a person.")
    assert said.text in (ENGLISH.handoff, CHINESE.handoff)


def test_a_wish_for_a_team_names_it() -> None:
    assert answer(
        "Please connect me to a person in Returns", teams=("Support", "Returns")
    ).handoff == HandoffCall("The customer asked for a person.", "Returns")


@pytest.mark.parametrize(
    "question", ["I don't want to talk to a human", "不要转人工", "No need for an agent"]
)
def test_not_wanting_a_human_is_not_a_wish_for_one(question: str) -> None:
    assert answer(question).handoff is None


@pytest.mark.parametrize("question", ["Are you a robot?", "Am I talking to a human?", "你是机器人吗"])
def test_it_never_passes_for_a_human(question: str) -> None:
    assert answer(question).text in (ENGLISH.machine, CHINESE.machine)


@pytest.mark.parametrize(("question", "earlier"), [("yes please", ENGLISH.offer), ("好的", CHINESE.offer)])
def test_yes_to_the_offer_calls_a_human_and_yes_to_nothing_does_not(question: str, earlier: str) -> None:
    assert answer(question, earlier=f"Hm. {earlier}").handoff is not None
    assert answer(question, earlier="Order **1042** is on its way.").handoff is None


def test_greetings_and_thanks_are_returned() -> None:
    assert answer("Hi there!", MIA).text == "Hello Mia! What can I help you with?"
    assert answer("你好", VISITOR).text == CHINESE.greeting
    assert answer("Hi", Facts(True, FactsState.WARM, Profile("  "))).text == ENGLISH.greeting
    assert answer("thank you so much!").text == ENGLISH.thanks
    assert answer("好的，谢谢").text == CHINESE.thanks


def test_a_greeting_before_a_question_does_not_hide_the_question() -> None:
    assert answer("Hi, where is my order 1042?", MIA).text.startswith("Order **1042**")


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("Do you sell lamps with 500 lumens?", ENGLISH),
        ("Who won the match?", ENGLISH),
        ("你们老板是谁", CHINESE),
    ],
)
def test_what_it_does_not_know_it_says_and_offers_a_human(question: str, words: Words) -> None:
    said = answer(question, MIA, (OFF_TOPIC,))
    assert said.text.startswith(words.unknown)
    assert said.text.endswith(words.offer)
    assert said.handoff is None


async def test_the_pieces_are_the_text_then_the_action_then_the_end() -> None:
    heard: list[ModelEvent] = []

    async def hear(event: ModelEvent) -> None:
        heard.append(event)

    request = ModelRequest((), "talk to a human", "en", VISITOR, ())
    await builtin.stream(request, hear, pace_s=0)
    assert "".join(event.text for event in heard if isinstance(event, TextDelta)) == ENGLISH.handoff
    assert heard[-2:] == [
        HandoffCall("The customer asked for a person."),
        Done("tool_calls", None, "builtin", told=()),
    ]
    assert len(heard) > 5


@given(st.text())
def test_any_text_cut_into_pieces_is_whole_again(text: str) -> None:
    assert "".join(builtin.pieces(text)) == text


@given(st.text(max_size=300))
def test_any_question_gets_an_answer(question: str) -> None:
    assert answer(question, MIA, (RETURNS, RETURNS_ZH)).text
