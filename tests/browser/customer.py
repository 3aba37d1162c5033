"""A customer without a browser: the socket of the widget, spoken from a test."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import httpx
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin, Subprotocol

from apps.wire.protocol import JSON_SUBPROTOCOL
from tests.support.demo import Demo

DEADLINE_S = 15.0


class SocketCustomer:
    """An anonymous visitor in a conversation of its own."""

    def __init__(self, socket: ClientConnection, token: str) -> None:
        self._socket = socket
        self._send(type="hello", token=token, locale="en")
        welcome = self.expect("welcome")
        self.conversation: str = welcome["conversation"]
        self.customer: str = welcome["customer"]

    def say(self, text: str) -> None:
        """Sends and waits until it is stored."""
        self._send(type="message.send", id=str(uuid4()), conversation=self.conversation, text=text)
        self.expect("ack")

    def ask_for_a_person(self) -> None:
        self._send(type="handoff.request", id=str(uuid4()), conversation=self.conversation)
        self.expect("ack")

    def hears(self, text: str) -> None:
        """Waits for a message with this text."""
        while True:
            message = self.expect("event").get("message")
            if message is not None and message["text"] == text:
                return

    def expect(self, *kinds: str) -> dict[str, Any]:
        """The next frame of one of these types. Raises `TimeoutError`."""
        while True:
            frame: dict[str, Any] = json.loads(self._socket.recv(timeout=DEADLINE_S))
            if frame["type"] in kinds:
                return frame

    def _send(self, **frame: object) -> None:
        self._socket.send(json.dumps(frame))


@contextmanager
def visiting(demo: Demo, token: str = "") -> Iterator[SocketCustomer]:
    """A new visitor, or the one whose token is given."""
    url = f"{demo.ws}/ws/customer"
    subprotocols = [Subprotocol(JSON_SUBPROTOCOL)]
    with connect(url, subprotocols=subprotocols, origin=Origin(demo.url), max_queue=None) as socket:
        yield SocketCustomer(socket, token or _new_visitor(demo))


def _new_visitor(demo: Demo) -> str:
    with sqlite3.connect(demo.var_dir / "chatsvc.sqlite3") as database:
        (site,) = database.execute("SELECT id FROM accounts_site ORDER BY id").fetchone()
    answer = httpx.post(f"{demo.url}/api/v1/widget/session", json={"site": site})
    token: str = answer.raise_for_status().json()["token"]
    return token
