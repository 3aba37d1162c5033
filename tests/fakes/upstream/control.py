"""Orders to the model server and their one form, in-process and over HTTP."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import TypeAlias

import msgspec

from tests.fakes.transport.listener import ConnectionFault, Leave
from tests.fakes.upstream.faults import Plan
from tests.fakes.upstream.ledger import Counts, Seen
from tests.fakes.upstream.profile import Profile

WAIT_S = 10.0


class Next(msgspec.Struct, frozen=True, tag="next", forbid_unknown_fields=True):
    """Plans for the next chat requests, in order, behind those already waiting."""

    plans: tuple[Plan, ...]


class Always(msgspec.Struct, frozen=True, tag="always", forbid_unknown_fields=True):
    """The plan for every request that no `Next` is for; None is a good answer."""

    plan: Plan | None = None


class SetProfile(msgspec.Struct, frozen=True, tag="profile", forbid_unknown_fields=True):
    """From the next request and the next connection on."""

    profile: Profile


class Break(msgspec.Struct, frozen=True, tag="break", forbid_unknown_fields=True):
    """What happens to the next connections, one each."""

    faults: tuple[ConnectionFault, ...]


class EndConnections(msgspec.Struct, frozen=True, tag="end_connections", forbid_unknown_fields=True):
    how: Leave = Leave.CLOSE
    idle_only: bool = True


class Refuse(msgspec.Struct, frozen=True, tag="refuse", forbid_unknown_fields=True):
    """Closes the port: connection refused. Live connections stay."""


class Accept(msgspec.Struct, frozen=True, tag="accept", forbid_unknown_fields=True):
    """Opens the port again."""


class Release(msgspec.Struct, frozen=True, tag="release", forbid_unknown_fields=True):
    """Lets every answer that stands at a stall go on."""


class Push(msgspec.Struct, frozen=True, tag="push", forbid_unknown_fields=True):
    """Says `text` on every open WebSocket, then closes it with the code `close` unless that is 0."""

    text: str = ""
    close: int = 0


class Expire(msgspec.Struct, frozen=True, tag="expire", forbid_unknown_fields=True):
    """The hour of every open WebSocket is over now."""


class Forget(msgspec.Struct, frozen=True, tag="forget", forbid_unknown_fields=True):
    """Empties counts, requests, plans, broken connections to come and the prefix cache."""


class Wait(msgspec.Struct, frozen=True, tag="wait", forbid_unknown_fields=True):
    """Until a count is at least (or `exactly`) `value`. Fails after `timeout_s`."""

    count: str
    value: int
    exactly: bool = False
    timeout_s: float = WAIT_S

    def met(self, counts: Counts) -> bool:
        now: int = getattr(counts, self.count)
        return now == self.value if self.exactly else now >= self.value


Command: TypeAlias = (
    Next
    | Always
    | SetProfile
    | Break
    | EndConnections
    | Refuse
    | Accept
    | Release
    | Push
    | Expire
    | Forget
    | Wait
)


class Control(ABC):
    """What a test or a bench may do to a model server, wherever that runs."""

    url: str
    ca_file: str  # empty without TLS

    @property
    def base_url(self) -> str:
        """What a client is configured with: `…/v1`."""
        return f"{self.url}/v1"

    @abstractmethod
    def send(self, command: Command) -> Counts:
        """Raises `TimeoutError` when a `Wait` was in vain."""

    @abstractmethod
    def requests(self) -> list[Seen]:
        """The requests since the start or `forget`, oldest first."""

    @abstractmethod
    def counts(self) -> Counts: ...

    def next(self, *plans: Plan) -> None:
        self.send(Next(plans))

    def always(self, plan: Plan | None) -> None:
        self.send(Always(plan))

    def set_profile(self, profile: Profile) -> None:
        self.send(SetProfile(profile))

    def break_connections(self, *faults: ConnectionFault) -> None:
        self.send(Break(faults))

    def end_connections(self, how: Leave = Leave.CLOSE, *, idle_only: bool = True) -> None:
        self.send(EndConnections(how, idle_only))

    def refuse(self) -> None:
        self.send(Refuse())

    def accept(self) -> None:
        self.send(Accept())

    def release(self) -> None:
        self.send(Release())

    async def push(self, text: str = "", *, close: int = 0) -> None:
        """Returns when the clients have read it; so their loop must run meanwhile."""
        await asyncio.to_thread(self.send, Push(text, close))

    def expire(self) -> None:
        self.send(Expire())

    def forget(self) -> None:
        self.send(Forget())

    def wait(self, count: str, value: int, *, exactly: bool = False, timeout_s: float = WAIT_S) -> Counts:
        """Blocks; see `Wait`. For code on a loop there is `until`."""
        return self.send(Wait(count, value, exactly, timeout_s))

    async def until(
        self, count: str, value: int, *, exactly: bool = False, timeout_s: float = WAIT_S
    ) -> Counts:
        """`wait` without blocking the caller's loop."""
        return await asyncio.to_thread(self.wait, count, value, exactly=exactly, timeout_s=timeout_s)
