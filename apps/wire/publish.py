"""Who hears a frame: the groups, and a frame encoded once per codec."""

from __future__ import annotations

from enum import StrEnum
from functools import cached_property
from typing import Protocol

from apps.wire.server_frames import ServerFrame, encode_json, encode_msgpack


class Audience(StrEnum):
    """Who may hear a frame."""

    CUSTOMERS = "customers"  # the customer's sockets on one conversation
    WATCHERS = "watchers"  # agents looking at one conversation
    INBOX = "inbox"  # the agents of a workspace
    PROCESS = "process"  # one web process, for what others ask of it


CONVERSATION = (Audience.CUSTOMERS, Audience.WATCHERS)


def group_name(audience: Audience, key: str) -> str:
    """The channel-layer group of an audience. `key` is a conversation, a workspace or a process id.

    Both audiences of a conversation share one, since most of what happens in it is for both.
    """
    return f"conversation.{key}" if audience in CONVERSATION else f"{audience.value}.{key}"


class Outgoing:
    """A frame on its way to any number of sockets; each codec encodes it at most once."""

    def __init__(self, frame: ServerFrame) -> None:
        self.frame = frame

    @cached_property
    def text(self) -> str:
        return encode_json(self.frame)

    @cached_property
    def binary(self) -> bytes:
        return encode_msgpack(self.frame)


class Relayed:
    """A frame encoded by another process."""

    def __init__(self, text: str, binary: bytes) -> None:
        self.text = text
        self.binary = binary


class Encoded(Protocol):
    """A frame that is ready for either codec."""

    @property
    def text(self) -> str: ...
    @property
    def binary(self) -> bytes: ...


class Sink(Protocol):
    """A socket of this process."""

    def deliver(self, frame: Encoded) -> None:
        """Queues the frame for sending. Never blocks, never raises."""
