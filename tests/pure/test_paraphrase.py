"""When two questions may share an answer. The committed lists are held to it whole; so are pairs of other shops."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.engine.cache import alone, question_of
from apps.engine.languages import asked_in
from apps.engine.paraphrase.meaning import Meaning
from apps.engine.paraphrase.normal import normal
from apps.engine.paraphrase.verdict import Veto, veto
from bench.answers.lists import near_misses, paraphrases


def meaning(text: str) -> Meaning:
    question = question_of(text, "en")
    assert question is not None, text
    return question.meaning


def reason(one: str, other: str) -> Veto | None:
    """The verdict, which must not depend on the side."""
    verdict = veto(meaning(one), meaning(other))
    assert veto(meaning(other), meaning(one)) == verdict
    return verdict


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("How long is the warranty on the kettle?", "What is the warranty period for kettles?"),
        ("Can I return a kettle?", "Is it possible to send a kettle back?"),
        ("Do you ship to Norway?", "Can you deliver to Norway?"),
        ("How much does shipping cost?", "hi, what are the shipping costs please"),
        ("What should I do if the kettle leaks?", "The kettle leaks, what can I do?"),
        ("When will I get my refund?", "How long does the refund take?"),
        ("水壶保修多久？", "请问水壶的保修期是多长时间"),
        ("水壶可以退货吗", "水壶能不能退"),
        ("水壶漏水怎么办", "你好，水壶漏水了怎么处理呀"),
        ("能寄到挪威吗", "可以送到挪威吗？"),
    ],
)
def test_the_same_question_in_other_words_shares_the_answer(one: str, other: str) -> None:
    assert reason(one, other) is None or meaning(one).personal


@pytest.mark.parametrize(
    ("one", "other", "why"),
    [
        ("Can I return it within 30 days of delivery?", "Can I return it within 14 days of delivery?", Veto.NUMBER),
        ("Is 5 litres enough?", "Is 5 gallons enough?", Veto.NAME),
        ("Can I heat it to 20 °C?", "Can I heat it to -20 °C?", Veto.NAME),
        ("Can I return one kettle?", "Can I return kettles?", Veto.NUMBER),
        ("Can I return an opened kettle?", "Can I return a kettle that is not opened?", Veto.NEGATION),
        ("Can I return it with the box?", "Can I return it without the box?", Veto.NEGATION),
        ("Which kettles can I return?", "Which kettles can't I return?", Veto.NEGATION),
        ("When do you open?", "When do you close?", Veto.ANTONYM),
        ("Can I order before noon?", "Can I order after noon?", Veto.ANTONYM),
        ("Can I return the kettle?", "Can I exchange the kettle?", Veto.DEALING),
        ("Do you ship kettles?", "Do you repair kettles?", Veto.DEALING),
        ("Do you sell kettles?", "Do you sell teapots?", Veto.NAME),
        ("Do you ship to Norway?", "Do you ship from Norway?", Veto.NAME),
        ("Where is the shop in Oslo?", "Where is the shop in Bergen?", Veto.NAME),
        ("Are you open in May?", "Are you open?", Veto.NAME),
        ("Can I call you?", "Can you call me?", Veto.ACTOR),
        ("Can the kettle break?", "Can I break the kettle?", Veto.ACTOR),
        ("Can I return an exchanged kettle?", "Can I exchange a returned kettle?", Veto.ORDER),
        ("Is the Nordic lighter than the Alpine?", "Is the Alpine lighter than the Nordic?", Veto.ORDER),
        ("How long does it take to return a kettle?", "How long do I have to return a kettle?", Veto.KIND),
        ("How much is the kettle?", "How do I descale the kettle?", Veto.KIND),
        ("How much can I load onto the card?", "What is the fee for loading the card?", Veto.KIND),
        ("Do I have to descale the kettle?", "Can I descale the kettle?", Veto.KIND),
        ("What do I need for a return?", "What is a return?", Veto.NAME),
        ("Tell me what I need for a return", "What is a return?", Veto.NAME),
        ("Can I get a card in the US?", "Can I get a card from us?", Veto.NAME),
        ("Is this the actual price?", "Is this actually the price?", Veto.NAME),
        ("什么时候发货", "什么时候退货", Veto.DEALING),
        ("什么时候收货", "什么时候发货", Veto.DEALING),
        ("水壶可以退吗", "水壶可以换吗", Veto.DEALING),
        ("水壶保修两年吗", "水壶保修三年吗", Veto.NUMBER),
        ("十天内可以退水壶吗", "20天内可以退水壶吗", Veto.NUMBER),
        ("水壶能退吗", "水壶不能退吗", Veto.NEGATION),
        ("可以不退水壶吗", "不可以退水壶吗", Veto.NEGATION),
        ("几点开门", "几点关门", Veto.ANTONYM),
        ("水壶多少钱", "茶壶多少钱", Veto.NAME),
        ("从上海寄到北京要多久", "从北京寄到上海要多久", Veto.NAME),
        ("退货后可以换货吗", "换货后可以退货吗", Veto.ORDER),
        ("我可以给你们打电话吗", "你们可以给我打电话吗", Veto.ACTOR),
        ("退货要多久", "多久内可以退货", Veto.KIND),
        ("水壶怎么清洗", "水壶在哪里清洗", Veto.KIND),
        ("水壶可以自己修吗", "水壶可以修吗", Veto.NAME),
        ("Do you sell kettles?", "你们卖水壶吗", Veto.LANGUAGE),
    ],
)  # fmt: skip
def test_one_difference_that_matters_is_a_veto(one: str, other: str, why: Veto) -> None:
    assert reason(one, other) is why


@pytest.mark.parametrize(
    "text",
    [
        "Where is my order?", "Where is order 1042?", "Has my parcel arrived?", "my number is 4155550123",
        "Write to me at bob@example.com", "My name is Bob", "I bought a kettle, can I return it?",
        "我的订单到哪了", "订单1042发货了吗", "我的包裹什么时候到", "我叫王芳", "打13800138000找我",
    ],
)  # fmt: skip
def test_what_is_about_the_asker_is_nobody_elses_answer(text: str) -> None:
    assert alone(meaning(text), first=True) is Veto.PERSONAL


@pytest.mark.parametrize(
    "text", ["Are you open today?", "Is it cheaper this week?", "现在营业吗", "今天几点关门"]
)
def test_what_is_true_only_now_is_never_kept(text: str) -> None:
    assert alone(meaning(text), first=True) is Veto.PASSING


@pytest.mark.parametrize(
    ("text", "first", "why"),
    [
        ("How long does it take?", True, Veto.CONTEXT),
        ("And for kettles?", False, Veto.CONTEXT),
        ("Can I return it?", False, Veto.CONTEXT),
        ("How long is the warranty?", True, None),
        ("How long is the warranty?", False, Veto.CONTEXT),
        ("How long is the warranty on the kettle?", False, None),
        ("这个可以退吗", False, Veto.CONTEXT),
        ("保修多久", False, Veto.CONTEXT),
        ("保修多久", True, None),
        ("水壶保修多久", False, None),
    ],
)
def test_within_a_conversation_a_question_must_name_its_subject(
    text: str, first: bool, why: Veto | None
) -> None:
    assert alone(meaning(text), first) is why


@pytest.mark.parametrize(
    "text",
    [
        "", "  ", "?" * 3 + "x" * 200,
        "Can I return the kettle, and how long do I have?",
        "Can I return the kettle? How long does the refund take?",
        "水壶可以退货吗？退款多久到账？",
    ],
)  # fmt: skip
def test_two_questions_and_stories_are_left_to_the_model(text: str) -> None:
    assert question_of(text, "en") is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("What's your RETURN policy?", "what is your return policy"),
        ("Hi there, could you tell me what is your return policy? Thanks!", "What is your return policy"),
        ("Ｃａｎ　Ｉ　ｐａｙ？", "can i pay"),
        ("Is delivery free over $1,500?", "is delivery free over $1500"),
        ("我想退貨，請問運費誰付？", "我想退货 请问运费谁付"),
        ("你好，请问运费多少？", "运费多少"),
        ("可以用 PayPal 吗", "可以用paypal吗？"),
    ],
)
def test_habits_of_writing_do_not_make_another_question(one: str, other: str) -> None:
    assert normal(one, asked_in(one, "en")) == normal(other, asked_in(other, "en"))


@pytest.mark.parametrize(
    ("one", "other"), [("-5 °C", "5 °C"), ("1.5 l", "15 l"), ("C++", "C"), ("50 %", "50"), ("#1", "1"), ("€5", "$5")]
)  # fmt: skip
def test_marks_that_mean_something_stay(one: str, other: str) -> None:
    assert normal(one, "en") != normal(other, "en")


@pytest.mark.parametrize("written", ["e-mail", "E‑Mail", "e mail", "email"])
def test_email_is_one_word_however_it_is_written(written: str) -> None:
    assert normal(f"Where is the {written}?", "en") == "where is the email"


def test_the_mail_stays_two_words() -> None:
    assert normal("Can I return it by the mail?", "en") == "can i return it by the mail"


@pytest.mark.parametrize("locale", ["en", "zh"])
def test_no_near_miss_shares_an_answer(locale: str) -> None:
    rows = [row for row in near_misses() if row.locale == locale]
    assert len(rows) >= 120
    assert [(row.known, row.asked) for row in rows if reason(row.known, row.asked) is None] == []


@pytest.mark.parametrize("locale", ["en", "zh"])
def test_no_two_questions_of_the_lists_share_an_answer(locale: str) -> None:
    read = [
        (group.topic, group.means, text, meaning(text))
        for group in paraphrases()
        if group.locale == locale
        for text in group.asked
    ]
    shared = [
        (one[2], other[2])
        for one, other in combinations(read, 2)
        if one[:2] != other[:2] and veto(one[3], other[3]) is None
    ]
    assert shared == []


def test_the_lists_are_long_enough_and_of_both_languages() -> None:
    pairs = {
        locale: sum(len(group.asked) - 1 for group in paraphrases() if group.locale == locale)
        for locale in ("en", "zh")
    }
    assert min(pairs.values()) >= 0.4 * sum(pairs.values()) >= 160


listed_questions = st.sampled_from([text for group in paraphrases() for text in group.asked])


@given(listed_questions)
def test_a_question_is_its_own_paraphrase_unless_it_is_personal(text: str) -> None:
    assert reason(text, text) in (None, Veto.PERSONAL, Veto.EMPTY)


@given(listed_questions, st.integers(2, 99))
def test_another_number_is_always_a_veto(text: str, number: int) -> None:
    more = f"{text} {number} days" if asked_in(text, "en") == "en" else f"{text}{number}天"
    assert reason(text, more) in (Veto.NUMBER, Veto.PERSONAL)


@given(listed_questions, st.sampled_from(["kettle", "Norway", "bicycle", "水壶", "挪威", "自行车"]))
def test_another_thing_is_always_a_veto(text: str, thing: str) -> None:
    assert reason(text, f"{text} {thing}") is not None


@given(st.text(max_size=250), st.text(max_size=250))
def test_any_text_can_be_judged(one: str, other: str) -> None:
    first, second = question_of(one, "en"), question_of(other, "zh")
    if first and second:
        assert veto(first.meaning, second.meaning) == veto(second.meaning, first.meaning)
        assert (first.key == second.key) == (first.plain == second.plain)
