"""`chatsvc.server` round a five-line application, as a process of its own: what the server promises, alone.

`/echo` echoes; `/flood` sends 64 MiB to a client that need not read; `/close` closes with 1012 and a reason;
`/deaf` takes no frame; `/talk` says something whenever it can; `/late` accepts once the process drains. Over HTTP,
`/pour` is an event stream; anything else answers the size of the body.
The owner's drain lasts until the file given by `--hold` is gone, or its grace is over.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from typing import Any

import daphne.server  # noqa: F401 - installs the reactor first

from chatsvc.server import serve

FLOOD_BYTES = 64 * 1024 * 1024
POUR_BYTES = 16 * 1024 * 1024
PIECE = "x" * 16_384
DRAINING = asyncio.Event()


class HoldingOwner:
    """An owner whose one turn runs while a file exists."""

    def __init__(self, hold: Path) -> None:
        self._hold = hold

    async def start(self) -> None:
        say("started")

    async def drain(self, grace_s: float) -> None:
        say("draining")
        DRAINING.set()
        try:
            async with asyncio.timeout(grace_s):
                while await asyncio.to_thread(self._hold.exists):  # noqa: ASYNC110 - the file is the test's hand
                    await asyncio.sleep(0.01)
            say("finished")
        except TimeoutError:
            say("cut off")


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    if scope["type"] == "http":
        await (pour_events(send) if scope["path"] == "/pour" else answer(receive, send))
        return
    await receive()
    if scope["path"] == "/late":
        say("asked")
        await DRAINING.wait()
    await send({"type": "websocket.accept"})
    if scope["path"] == "/close":
        await send({"type": "websocket.close", "code": 1012, "reason": "why"})
    if scope["path"] == "/flood":
        await flood(send)
    if scope["path"] == "/pour":
        await pour(send)
    if scope["path"] == "/talk":
        await talk(receive, send)
        return
    if scope["path"] == "/deaf":
        await asyncio.Event().wait()
    while (event := await receive())["type"] == "websocket.receive":
        await send({"type": "websocket.send", "text": event["text"]})
    say(f"disconnected {event['code']}")


async def flood(send: Any) -> None:
    """Does not wait for what it sends."""
    sending = set()
    for _ in range(FLOOD_BYTES // len(PIECE)):
        sending.add(asyncio.ensure_future(send({"type": "websocket.send", "text": PIECE})))
        await asyncio.sleep(0)


async def talk(receive: Any, send: Any) -> None:
    """Until it hears that the client is gone."""
    hearing = asyncio.ensure_future(receive())
    while not hearing.done():
        await send({"type": "websocket.send", "text": "x"})
        await asyncio.sleep(0)
    say(f"disconnected {(await hearing)['code']}")


async def pour(send: Any) -> None:
    """Waits as long as it is told to, and says when that is long."""
    for _ in range(POUR_BYTES // len(PIECE)):
        await patiently(send({"type": "websocket.send", "text": PIECE}))
    await send({"type": "websocket.close", "code": 1000})


async def pour_events(send: Any) -> None:
    """The same down a response."""
    head = [(b"content-type", b"text/event-stream")]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    for _ in range(POUR_BYTES // len(PIECE)):
        await patiently(send({"type": "http.response.body", "body": PIECE.encode(), "more_body": True}))
    await send({"type": "http.response.body"})


async def patiently(sending: Any) -> None:
    sent = asyncio.ensure_future(sending)
    if not (await asyncio.wait([sent], timeout=1.0))[0]:
        say("waits")
    await sent


async def answer(receive: Any, send: Any) -> None:
    size = 0
    while (event := await receive())["type"] == "http.request":
        size += len(event["body"])
        if not event["more_body"]:
            break
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(size).encode()})


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--hold", type=Path, required=True)
    parser.add_argument("--drain-s", type=float, default=10.0)
    options = parser.parse_args()
    owner = HoldingOwner(options.hold)
    return serve(application, owner, "127.0.0.1", options.port, drain_s=options.drain_s)


if __name__ == "__main__":
    sys.exit(main())
