"""What a model is told: the same bytes first, turn after turn, or nothing of the last prompt is found in its cache."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from apps.engine.context import build_messages
from apps.engine.types import (
    Assistant,
    ChatMessage,
    Facts,
    FactsState,
    Order,
    Passage,
    Profile,
    Speaker,
    Utterance,
)

LUMEN = Assistant("Lumen", "Lantern", "Be brief.", version=3)
ORDERS = (Order("1042", "in_transit", "2026-01-05", ("Trail lamp",), "$89.00", "DHL", "JD014", "2026-01-09"),)
MIA = Facts(True, FactsState.WARM, Profile("Mia", "mia@shop.example", "gold", {"vip": True}), ORDERS)
VISITOR = Facts(verified=False, state=FactsState.NONE)

texts = st.text(min_size=1, max_size=20)
passages = st.lists(
    st.builds(Passage, title=texts, text=texts, url=texts, score=st.just(1.0), answerable=st.booleans()),
    max_size=3,
)
# Question and answer, and what was found and ordered for that question.
exchanges = st.lists(st.tuples(texts, texts, passages, st.lists(texts, max_size=2)), min_size=2, max_size=5)


@given(exchanges, st.sampled_from([MIA, VISITOR]))
def test_a_prompt_begins_as_the_last_one_did_up_to_its_question(
    exchanges: list[tuple[str, str, list[Passage], list[str]]], facts: Facts
) -> None:
    history: list[Utterance] = []
    settled: tuple[ChatMessage, ...] = ()
    for question, answer, found, instructions in exchanges:
        history.append(Utterance(Speaker.CUSTOMER, question, len(history) + 1))
        prompt = build_messages(LUMEN, facts, history, found, instructions)
        assert prompt[: len(settled)] == settled
        assert prompt[-1] == ChatMessage("user", question)
        # Policy, facts and what was said before; then the articles and instructions of this turn alone.
        settled = prompt[: 2 + len(history) - 1]
        assert [message.content for message in settled[2:]] == [said.text for said in history[:-1]]
        history.append(Utterance(Speaker.ASSISTANT, answer, len(history) + 1))


def test_a_visitor_s_prompt_holds_no_fact() -> None:
    question = (Utterance(Speaker.CUSTOMER, "Where is my order 1042?", 1),)
    told = "\n".join(message.content for message in build_messages(LUMEN, VISITOR, question, (), ())[:-1])
    assert "log in" in told
    assert "1042" not in told
