"""What is published while a client's first state is still being read: kept in order, and never without bound."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from apps.gateway.connections import Connections
from apps.gateway.outbound import QUEUED_FRAMES, Close
from apps.gateway.peer import Peer
from apps.wire.publish import Encoded, Outgoing
from apps.wire.server_frames import Ack, Delta, Pong


def waiting_peer() -> Peer:
    """One whose state is being read; it uses nothing of its process."""
    return Peer({"client": None, "headers": []}, cast("Connections", SimpleNamespace(office=None)))


def told(peer: Peer) -> list[Encoded | Close]:
    said = []
    while (item := peer.next_now()) is not None:
        said.append(item)
    return said


def event(number: int) -> Outgoing:
    return Outgoing(Ack(id=str(number), seq=number, conversation="c", at=0))


def test_what_is_held_follows_the_state_and_text_becomes_coarser_meanwhile() -> None:
    peer = waiting_peer()
    peer.deliver(event(1))
    for offset in range(5_000):
        peer.deliver(Outgoing(Delta(handle=1, offset=offset, text="x")))
    assert told(peer) == []
    peer.release(Pong())
    texts = [item.text for item in told(peer) if not isinstance(item, Close)]
    assert texts == [
        Outgoing(Pong()).text,
        event(1).text,
        Outgoing(Delta(handle=1, offset=0, text="x" * 5_000)).text,
    ]


def test_too_much_meanwhile_closes_the_line_which_resumes() -> None:
    peer = waiting_peer()
    abandoned: list[bool] = []
    peer.too_slow = lambda: abandoned.append(True)
    for number in range(3 * QUEUED_FRAMES):
        peer.deliver(event(number))
    # At once: the state may take long.
    assert told(peer) == [Close(4429, "too slow")]
    peer.release(Pong())
    peer.deliver(event(0))
    assert told(peer) == []
    assert abandoned == [True]


async def test_whoever_was_told_to_go_is_heard_no_more() -> None:
    peer = waiting_peer()
    peer.end_hold()
    peer.hang_up(4401, "token expired")
    await peer.hear('{"type":"ping"}', 0.0)  # would raise: the base class carries out no frame
    assert told(peer) == [Close(4401, "token expired")]
