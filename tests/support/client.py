"""A WebSocket client that speaks the wire, keeps what it received, and waits with a deadline."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import groupby
from typing import Any

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

from apps.wire.protocol import JSON_SUBPROTOCOL
from apps.wire.server_frames import fields_by_code

DEADLINE_S = 10.0

Frame = dict[str, Any]

_FIELDS = fields_by_code()


class Client:
    """One socket. `journal` holds every frame in order of arrival, decoded, each with its `type`."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.journal: list[Frame] = []
        self._expected: set[int] = set()

    async def send(self, frame: Frame) -> None:
        """Sends a frame as JSON text, which is what both subprotocols carry to the server."""
        await self.socket.send(json.dumps(frame))

    async def send_raw(self, data: str | bytes) -> None:
        await self.socket.send(data)

    async def expect(
        self,
        kind: str,
        /,
        *,
        where: Callable[[Frame], bool] = lambda _: True,
        deadline_s: float = DEADLINE_S,
        **fields: Any,
    ) -> Frame:
        """The first frame of this type and these field values that no earlier call has returned.

        Reads until it comes; other frames stay in the journal for later calls. Raises `AssertionError` when the
        deadline passes or the socket closes first.
        """
        wanted = f"{kind} {fields or ''}"
        return await self._first(lambda f: _matches(f, kind, fields, where), wanted, deadline_s)

    async def expect_one_of(self, *kinds: str, deadline_s: float = DEADLINE_S) -> Frame:
        """The first frame of any of these types that no earlier call has returned. Raises as `expect` does."""
        return await self._first(lambda f: f["type"] in kinds, " or ".join(kinds), deadline_s)

    async def _first(self, fits: Callable[[Frame], bool], wanted: str, deadline_s: float) -> Frame:
        seen = 0
        try:
            async with asyncio.timeout(deadline_s):
                while True:
                    for index in range(seen, len(self.journal)):
                        if index not in self._expected and fits(self.journal[index]):
                            self._expected.add(index)
                            return self.journal[index]
                    seen = len(self.journal)
                    await self._read()
        except TimeoutError:
            raise AssertionError(f"no {wanted} within {deadline_s} s; got {self._kinds()}") from None
        except ConnectionClosed as closed:
            raise AssertionError(f"no {wanted} before the close {closed}; got {self._kinds()}") from None

    async def closed(self, deadline_s: float = DEADLINE_S) -> tuple[int, str]:
        """Reads until the server closes; the code and the reason of the close."""
        async with asyncio.timeout(deadline_s):
            try:
                while True:
                    await self._read()
            except ConnectionClosed:
                pass
        assert self.socket.close_code is not None
        return int(self.socket.close_code), self.socket.close_reason or ""

    def received(self, kind: str) -> list[Frame]:
        """All frames of a type so far, expected or not."""
        return [frame for frame in self.journal if frame["type"] == kind]

    async def _read(self) -> None:
        self.journal.append(decode(await self.socket.recv()))

    def _kinds(self) -> str:
        runs = ((kind, len(list(run))) for kind, run in groupby(frame["type"] for frame in self.journal))
        return ", ".join(f"{kind} x{count}" if count > 1 else kind for kind, count in runs) or "nothing"


@asynccontextmanager
async def connected(
    url: str,
    *,
    subprotocol: str | None = JSON_SUBPROTOCOL,
    origin: str | None = None,
    cookie: str | None = None,
    address: str | None = None,
) -> AsyncIterator[Client]:
    """An open socket; nothing has been sent yet. Closes at the end if the server has not.

    It takes in whatever comes: one that stopped reading would not see the answer to its close either. `address` is
    where a proxy says that it comes from.
    """
    subprotocols = [Subprotocol(subprotocol)] if subprotocol else None
    given = (("Origin", origin), ("Cookie", cookie), ("X-Forwarded-For", address))
    headers = {name: value for name, value in given if value}
    async with connect(
        url, subprotocols=subprotocols, additional_headers=headers, max_size=None, max_queue=None
    ) as socket:
        yield Client(socket)


def decode(data: str | bytes) -> Frame:
    """One server frame of either subprotocol as a dictionary with its `type`."""
    if isinstance(data, str):
        read: Frame = json.loads(data)
        return read
    code, *values = msgspec.msgpack.decode(data)
    kind, names = _FIELDS[code]
    return {"type": kind, **dict(zip(names, values, strict=False))}


def _matches(frame: Frame, kind: str, fields: Frame, where: Callable[[Frame], bool]) -> bool:
    return (
        frame["type"] == kind
        and all(frame.get(name) == value for name, value in fields.items())
        and where(frame)
    )
