"""Frames no honest client sends: each is refused with its code, and every refusal can itself be sent."""

from __future__ import annotations

import pytest

from apps.wire import client_frames as client
from apps.wire import protocol as wire
from apps.wire import server_frames as server
from apps.wire.texts import storable

DEEP = 100_000
LONE = r"\ud83d"

ODD = {
    "arrays without end": ("[" * DEEP, "bad_frame", None),
    "a ping with arrays inside": ('{"type":"ping","x":' + "[" * DEEP + "]" * DEEP + "}", "bad_frame", None),
    "a ping with objects inside": ('{"type":"ping","x":' + '{"a":' * DEEP + "1" + "}" * DEEP + "}", "bad_frame", None),
    "a number beyond JavaScript": (
        '{"type":"turn.stop","conversation":"c","turn":"t","painted":' + "9" * 30 + "}", "bad_frame", "turn.stop",
    ),
    "a number of 5,000 digits": (
        '{"type":"turn.stop","conversation":"c","turn":"t","painted":' + "9" * 5_000 + "}", "bad_frame", None,
    ),
    "a number below nought": (
        '{"type":"history.fetch","conversation":"c","after":-1}', "bad_frame", "history.fetch",
    ),
    "a fraction": ('{"type":"hello","seq":1.5}', "bad_frame", "hello"),
    "a lone surrogate as an id": (
        f'{{"type":"message.send","id":"{LONE}","conversation":"c","text":"x"}}', "bad_text", "message.send",
    ),
    "a lone surrogate as a type": (f'{{"type":"{LONE}","id":"x"}}', "bad_text", None),
    "a NUL in an id": (
        r'{"type":"message.send","id":"a\u0000","conversation":"c","text":"x"}', "bad_frame", "message.send",
    ),
    "a NUL in a conversation": (
        r'{"type":"message.send","id":"a","conversation":"c\u0000","text":"x"}', "bad_frame", "message.send",
    ),
    "a NUL in a locale": (r'{"type":"hello","locale":"\u0000"}', "bad_frame", "hello"),
    "a type of 100,000 characters": ('{"type":"' + "t" * 100_000 + '","id":"x"}', "unknown_type", None),
    "an id of 100,000 characters": (
        '{"type":"message.send","id":"' + "i" * 100_000 + '","conversation":"c","text":"x"}',
        "bad_frame",
        "message.send",
    ),
    "more than a mebibyte": ('{"type":"ping","x":"' + "x" * wire.FRAME_LIMIT_BYTES + '"}', "too_long", None),
    "single quotes": ("{'type':'ping'}", "bad_frame", None),
    "something behind": ('{"type":"ping"} {}', "bad_frame", None),
    "nothing": ("", "bad_frame", None),
    "null": ("null", "bad_frame", None),
}  # fmt: skip


@pytest.mark.parametrize(("text", "code", "of"), ODD.values(), ids=ODD)
@pytest.mark.parametrize("parse", [client.parse_customer, client.parse_agent])
def test_an_odd_frame_is_refused_in_words_that_can_be_sent(
    parse: object, text: str, code: str, of: str | None
) -> None:
    known = {"turn.stop"} if parse is client.parse_agent else set()
    with pytest.raises(client.FrameError) as refused:
        parse(text)  # type: ignore[operator]
    refusal = refused.value.as_frame()
    if of not in known:
        assert (refusal.code, refusal.of) == (code, of)
    assert len(refusal.message) <= wire.REFUSAL_LIMIT
    assert len(server.encode_json(refusal)) < 1_000
    assert server.encode_msgpack(refusal)


def test_a_pair_of_surrogates_is_a_character() -> None:
    frame = client.parse_customer(
        r'{"type":"message.send","id":"a","conversation":"c","text":"\ud83d\ude00"}'
    )
    assert isinstance(frame, client.Send)
    assert frame.text == "\U0001f600"


@pytest.mark.parametrize(
    ("said", "kept"), [("a\x00b", "ab"), ("a\ud83db", "a\ufffdb"), ("a\U0001f600", "a\U0001f600")]
)
def test_what_a_model_says_can_be_stored(said: str, kept: str) -> None:
    assert storable(said) == kept
