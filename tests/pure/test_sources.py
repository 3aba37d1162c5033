"""Which of the passages that were found an answer is from."""

from __future__ import annotations

import pytest

from apps.engine.sources import behind
from apps.engine.types import Facts, FactsState, ModelRequest, Order, Passage

VISITOR = Facts(False, FactsState.NONE)
MIA = Facts(
    True,
    FactsState.WARM,
    None,
    (Order("1042", "in_transit", "2026-11-26", carrier="DHL", tracking="JD0146"),),
)
SHIPPING = Passage(
    "Shipping",
    "Standard takes 2 to 4 working days. As soon as the parcel leaves us, you get an e-mail with the tracking number. "
    "You find your order in your account. Standard delivery costs $4.90 and is free for orders of $60 or more.",
    "/shipping",
    0.9,
    answerable=True,
)
SHIPPING_ZH = Passage(
    "配送", "包裹发出后，您会收到带运单号的邮件，国内 2 到 4 个工作日送达。标准配送 4.90 美元，满 60 美元包邮。",
    "/zh/shipping", 0.9, answerable=True, locale="zh",
)  # fmt: skip


def named(question: str, said: str, facts: Facts = VISITOR) -> list[str]:
    locale = "zh" if SHIPPING_ZH.text[0] in said else "en"
    request = ModelRequest((), question, locale, facts, (SHIPPING, SHIPPING_ZH))
    return [passage.title for passage in behind(said, request)]


@pytest.mark.parametrize(
    ("question", "said", "article"),
    [
        ("How much is it?", "It's $4.90, and free once your order reaches $60.", "Shipping"),
        ("How long does it take?", "2 to 4 working days.", "Shipping"),
        ("How long does it take?", "Good question! Within 2 to 4 working days it is usually there.", "Shipping"),
        ("运费多少", "标准配送 4.90 美元，满 60 美元就免运费。", "配送"),
        ("要几天", "一般 2 到 4 个工作日就能送达哦。", "配送"),
    ],
)  # fmt: skip
def test_an_answer_that_repeats_an_article_is_from_it(question: str, said: str, article: str) -> None:
    assert article in named(question, said)


@pytest.mark.parametrize(
    ("question", "said", "facts"),
    [
        ("Where is my order 1042?", "Please log in to your account, so that I can look up your order.", VISITOR),
        ("Where is my order 1042?", "It is on its way with DHL. The tracking number is JD0146.", MIA),
        ("Where is my parcel?", "It should arrive on 3 December.", MIA),
        ("How long does delivery take?", "I don't know that. Would you like to talk to a person?", VISITOR),
        ("我的订单到哪了", "请先登录您的账户，我才能为您查询订单。", VISITOR),
        ("我的订单到哪了", "您的订单 1042 由 DHL 配送，运单号是 JD0146。", MIA),
        ("How long does it take?", "", VISITOR),
    ],
)  # fmt: skip
def test_an_answer_from_an_order_or_from_nothing_is_from_no_article(
    question: str, said: str, facts: Facts
) -> None:
    assert named(question, said, facts) == []


def test_between_languages_a_question_after_an_order_is_answered_by_the_order() -> None:
    french = "La livraison prend deux à quatre jours."
    assert named("Combien de temps?", french) == ["配送"]
    assert named("Where is my order?", french) == []
