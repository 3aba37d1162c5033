"""The event-stream parser: what it takes for a line, an event, and too much."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.llm.sse import SseEvent, SseOverflow, SseParser


def parsed(*chunks: bytes) -> list[SseEvent]:
    parser = SseParser()
    return [event for chunk in chunks for event in parser.feed(chunk)]


def data(*texts: str) -> list[SseEvent]:
    return [SseEvent("", text) for text in texts]


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_each_line_ending_ends_a_line(end: bytes) -> None:
    assert parsed(b"data: a" + end + b"data: b" + end + end + b"data: c" + end + end) == data("a\nb", "c")


def test_a_crlf_cut_between_its_two_bytes_is_one_line_end() -> None:
    assert parsed(b"data: a\r", b"\ndata: b\r", b"\n\r", b"\n") == data("a\nb")


def test_a_line_separator_character_does_not_end_a_line() -> None:
    text = "one\u2028two\u2029three\u0085four\x0b\x0cfive"
    assert parsed(f"data: {text}\n\n".encode()) == data(text)


def test_comments_unknown_fields_and_blank_lines_give_no_event() -> None:
    assert parsed(b": keep-alive\n\n\n\nid: 7\nretry: 10\nfoo: bar\nnonsense\n\n: x\n\n") == []


def test_a_byte_order_mark_is_dropped_only_at_the_start() -> None:
    assert parsed(b"\xef", b"\xbb\xbfdata: a\n\n\xef\xbb\xbfdata: b\n\n") == data("a")


def test_an_event_name_belongs_to_its_event_only() -> None:
    assert parsed(b"event: ping\ndata: 1\n\ndata: 2\n\nevent: lost\n\ndata: 3\n\n") == [
        SseEvent("ping", "1"), SseEvent("", "2"), SseEvent("", "3"),
    ]  # fmt: skip


def test_one_space_after_the_colon_is_removed_and_an_empty_data_line_is_an_event() -> None:
    assert parsed(b"data:a\n\ndata:  a\n\ndata\n\ndata:\ndata:\n\n") == data("a", " a", "", "\n")


def test_an_event_without_its_blank_line_is_not_dispatched() -> None:
    assert parsed(b"data: a\n\ndata: [DO") == data("a")


def test_a_character_cut_by_a_chunk_border_stays_whole_and_broken_bytes_do_not_raise() -> None:
    encoded = "data: 灯👩‍🚀\n\n".encode()
    assert parsed(*(encoded[i : i + 1] for i in range(len(encoded)))) == data("灯👩‍🚀")
    assert parsed(b"data: \xff\xfe\n\n") == data("��")


@pytest.mark.parametrize("stream", [b"data: " + b"x" * 200, b"data: 1234567890\n" * 20, b": " + b"x" * 200])
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_an_event_beyond_the_limit_is_refused_after_the_ones_before_it(stream: bytes, size: int) -> None:
    parser, events = SseParser(limit_bytes=100), []
    whole = b"data: first\n\n" + stream

    def follow() -> None:
        for start in range(0, len(whole), size):
            for event in parser.feed(whole[start : start + size]):
                events.append(event)

    with pytest.raises(SseOverflow):
        follow()
    assert events == data("first")


LINES = st.lists(
    st.sampled_from([
        b"data: a", b"data: \xe7\x81\xaf", b"data", b"event: e", b": c", b"", b"", b"id: 1", b"\xef\xbb\xbfdata: b",
        "data: \u2028 x".encode(), b"data: \xff",
    ]),
    max_size=20,
)  # fmt: skip


@given(LINES, st.lists(st.sampled_from([b"\n", b"\r", b"\r\n"]), min_size=20, max_size=20), st.data())
def test_any_chunking_gives_the_same_events(
    lines: list[bytes], ends: list[bytes], draw: st.DataObject
) -> None:
    stream = b"".join(line + end for line, end in zip(lines, ends, strict=False))
    cuts = sorted(draw.draw(st.sets(st.integers(0, len(stream)))))
    chunks = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert parsed(*chunks) == parsed(stream)


@given(st.lists(st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"])), max_size=5))
def test_what_was_sent_as_data_comes_out_unchanged(texts: list[str]) -> None:
    assert parsed("".join(f"data: {text}\n\n" for text in texts).encode()) == data(*texts)
