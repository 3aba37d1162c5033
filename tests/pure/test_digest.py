"""What a digest keeps: facts before topics before repeats, in the speakers' own words, within its budget."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.engine.digest.lines import Line, digest, rendered, utf8_size
from apps.engine.types import Speaker

C, A = Speaker.CUSTOMER, Speaker.ASSISTANT
AMPLE = 10**6


def lines(*told: tuple[Speaker, str]) -> list[Line]:
    return [Line(place, speaker, text) for place, (speaker, text) in enumerate(told, 1)]


def texts(kept: tuple[Line, ...]) -> list[str]:
    return [line.text for line in kept]


ENGLISH = lines(
    (C, "Hi there, could you please help me? I would like to return the boots of order 1042."),
    (A, "Of course! The Ridge boots were delivered on March 2nd, so you can return them until April 1st."),
    (C, "Thanks, that sounds good. They are not worn. Please send the label to mia.chen@example.com."),
    (A, "It has been sent. Drop the parcel at the Museum of Art Post Office, 12 King's Road."),
)

CHINESE = lines(
    (C, "你好，请问一下，订单1042可以退吗？"),
    (A, "可以的。登山靴的价格是599元，退货地址是北京市朝阳区北辰西路1号院5号。"),
    (C, "好的，我不要换货，谢谢你。"),
)


def test_with_room_for_all_only_fillers_go() -> None:
    assert texts(digest(ENGLISH, AMPLE)) == [
        "return boots order 1042",
        "Ridge boots delivered March 2nd return April 1st",
        "not worn send label mia.chen@example.com",
        "sent Drop parcel Museum of Art Post Office, 12 King's Road",
    ]
    assert texts(digest(CHINESE, AMPLE)) == [
        "订单1042 退",
        "登山靴 价格 599元 退货地址 北京市朝阳区北辰西路1号院5号",
        "不要换货",
    ]


@pytest.mark.parametrize(
    ("said", "facts"),
    [
        (
            ENGLISH,
            ("1042", "March 2nd", "April 1st", "not", "mia.chen@example.com", "Museum of Art Post Office"),
        ),
        (CHINESE, ("1042", "599元", "北京市朝阳区北辰西路1号院5号", "不要换货")),
    ],
)
def test_at_two_fifths_of_the_bytes_the_facts_are_left(said: list[Line], facts: tuple[str, ...]) -> None:
    budget = utf8_size(said) * 2 // 5
    kept = digest(said, budget)
    assert utf8_size(kept) <= budget
    assert [fact for fact in facts if fact not in rendered(kept)] == []


def test_what_was_said_before_goes_first() -> None:
    said = lines(
        (C, "The lantern is broken."), (A, "Which lantern is broken?"), (C, "The lantern from invoice 77.")
    )
    whole = digest(said, AMPLE)
    assert texts(whole) == ["lantern broken", "lantern broken", "lantern invoice 77"]
    assert texts(digest(said, utf8_size(whole) - 1)) == ["lantern broken", "lantern broken", "invoice 77"]
    assert texts(digest(said, 35)) == ["lantern broken", "invoice 77"]


def test_a_message_of_fillers_leaves_no_line_and_the_others_keep_their_places() -> None:
    said = lines((C, "Order 1042?"), (A, "One moment please!"), (C, "谢谢，好的。"), (A, "Shipped."))
    assert [line.place for line in digest(said, AMPLE)] == [1, 2, 4]
    assert digest(said, 0) == ()


def test_a_digest_of_a_digest_loses_nothing_when_there_is_room() -> None:
    for said in (ENGLISH, CHINESE):
        once = digest(said, AMPLE)
        assert digest(once, utf8_size(once)) == once


_said = st.lists(
    st.tuples(
        st.sampled_from(list(Speaker)),
        st.one_of(
            st.text(max_size=80),
            st.lists(
                st.sampled_from(
                    [
                        "the",
                        "order",
                        "1042",
                        "Mia",
                        "of",
                        "is",
                        "not",
                        "订单",
                        "的",
                        "是",
                        "5元",
                        "(",
                        "（",
                        "，",
                        ".",
                    ]
                ),
                max_size=30,
            ).map(" ".join),
            st.text(alphabet="的是在有为订单退货5元（）(),、 ", max_size=60),
        ),
    ),
    max_size=12,
)


@settings(max_examples=300, deadline=None)
@given(_said, st.integers(0, 600))
def test_any_digest_is_made_of_the_words_in_their_order_and_fits(
    told: list[tuple[Speaker, str]], budget: int
) -> None:
    said = lines(*told)
    kept = digest(said, budget)
    assert utf8_size(kept) == len(rendered(kept).encode("utf-8", "replace"))
    assert utf8_size(kept) <= budget
    for line in kept:
        original = said[line.place - 1]
        assert line.speaker is original.speaker
        letters = iter(original.text)
        assert all(letter in letters for letter in line.text.replace(" ", ""))


@pytest.mark.parametrize(
    "text", ["的是在有为" * 2_000, "订单5元的" * 2_000, "a" * 10_000, "A of " * 2_000, "（" * 10_000]
)
def test_text_that_is_no_language_is_digested_too(text: str) -> None:
    assert utf8_size(digest(lines((C, text), (A, text)), 1_000)) <= 1_000
