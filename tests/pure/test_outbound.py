"""What waits for one socket: its order, its bounds, and text that becomes coarser instead of longer."""

from __future__ import annotations

import pytest

from apps.gateway.outbound import AHEAD_UNITS, QUEUED_BYTES, QUEUED_FRAMES, Close, Outbound
from apps.wire.protocol import TurnEnd
from apps.wire.publish import Encoded, Outgoing, Relayed
from apps.wire.server_frames import Ack, Delta, Pong, ServerFrame, TurnEnded

ENDED = TurnEnded(handle=1, end=TurnEnd.FINISHED)


def delta(offset: int, text: str, handle: int = 1) -> Delta:
    return Delta(handle=handle, offset=offset, text=text)


def queued(*frames: ServerFrame | Encoded) -> Outbound:
    outbound = Outbound()
    for frame in frames:
        ready = frame if isinstance(frame, Outgoing | Relayed) else Outgoing(frame)  # type: ignore[arg-type]
        assert outbound.put(ready)
    return outbound


def sent(outbound: Outbound) -> list[str]:
    """The text of everything that may go now."""
    texts = []
    while (frame := outbound.get_now()) is not None:
        assert not isinstance(frame, Close)
        texts.append(frame.text)
    return texts


def texts(*frames: ServerFrame) -> list[str]:
    return [Outgoing(frame).text for frame in frames]


def test_deltas_that_wait_behind_each_other_become_one() -> None:
    waiting = queued(delta(0, "👩‍👧 "), delta(6, "a"), delta(7, "b"), ENDED)
    assert sent(waiting) == texts(delta(0, "👩‍👧 ab"), ENDED)


@pytest.mark.parametrize("between", [Pong(), delta(0, "x", handle=2)], ids=["a frame", "another stream"])
def test_nothing_is_sent_before_what_came_before_it(between: ServerFrame) -> None:
    waiting = queued(delta(0, "a"), between, delta(1, "b"))
    assert sent(waiting) == texts(delta(0, "a"), between, delta(1, "b"))


def test_a_hole_stays_a_hole() -> None:
    assert sent(queued(delta(0, "a"), delta(2, "c"))) == texts(delta(0, "a"), delta(2, "c"))


def test_deltas_of_another_process_become_one_too() -> None:
    parts = [Outgoing(delta(0, "a")), Outgoing(delta(1, "b"))]
    relayed = [Relayed(part.text, part.binary) for part in parts]
    assert sent(queued(*relayed)) == texts(delta(0, "ab"))


def test_a_stream_to_a_client_that_does_not_read_takes_one_place() -> None:
    waiting = queued(*(delta(index * 10, "0123456789") for index in range(QUEUED_FRAMES * 2)))
    assert len(waiting) == 1


def test_frames_and_bytes_have_a_bound_and_one_large_page_fits() -> None:
    many = queued(*[Pong()] * QUEUED_FRAMES)
    assert not many.put(Outgoing(Pong()))
    large = queued(Ack(id="x" * QUEUED_BYTES, seq=1, conversation="c", at=1))
    assert not large.put(Outgoing(Pong()))
    large.clear()
    assert large.put(Outgoing(Pong()))


def test_text_far_ahead_of_the_paint_waits_for_it_or_for_the_end() -> None:
    waiting = queued(delta(0, "x" * AHEAD_UNITS))
    waiting.painted(0, 0)
    assert len(sent(waiting)) == 1
    waiting.put(Outgoing(delta(AHEAD_UNITS, "a")))
    waiting.put(Outgoing(delta(AHEAD_UNITS + 1, "b")))
    assert sent(waiting) == []
    waiting.painted(1, 10)
    assert sent(waiting) == texts(delta(AHEAD_UNITS, "ab"))
    waiting.put(Outgoing(delta(AHEAD_UNITS + 2, "x" * AHEAD_UNITS)))
    waiting.painted(1, AHEAD_UNITS)
    sent(waiting)
    waiting.put(Outgoing(delta(2 * AHEAD_UNITS + 2, "c")))
    waiting.put(Outgoing(ENDED))
    assert (sent(waiting))[-1] == texts(ENDED)[0]


def test_a_client_that_never_reports_its_paint_is_sent_everything() -> None:
    waiting = queued(delta(0, "x" * AHEAD_UNITS * 2))
    sent(waiting)
    waiting.put(Outgoing(delta(AHEAD_UNITS * 2, "a")))
    assert sent(waiting) == texts(delta(AHEAD_UNITS * 2, "a"))


async def test_a_close_lets_what_waits_go_first_and_nothing_follows_it() -> None:
    waiting = queued(Pong())
    assert waiting.put(Close(4429, "slow"))
    assert waiting.put(Outgoing(Pong()))
    assert waiting.get_now() is not None
    assert [await waiting.get(), waiting.get_now()] == [Close(4429, "slow"), None]
