"""What both directions share: versions, limits, codes, words, and the shapes inside frames. Pure.

Client to server (`client_frames.py`) is JSON text. Server to client (`server_frames.py`) is JSON objects
(`chatsvc.v1.json`) or MessagePack arrays (`chatsvc.v1.msgpack`): `[code, field, …]` in the order of the struct's
fields, trailing nulls left off. Times are milliseconds since 1970 in UTC; offsets are UTF-16 code units, which is what
JavaScript counts.
"""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Final

from msgspec import Struct

JSON_SUBPROTOCOL: Final = "chatsvc.v1.json"
MSGPACK_SUBPROTOCOL: Final = "chatsvc.v1.msgpack"
SUBPROTOCOLS: Final = (MSGPACK_SUBPROTOCOL, JSON_SUBPROTOCOL)

FRAME_LIMIT_BYTES: Final = 1024 * 1024
TEXT_LIMIT_CHARACTERS: Final = 8_000
CLIENT_ID_LIMIT: Final = 64
REFUSAL_LIMIT: Final = 200  # characters of the reason, which may quote the frame
HELLO_DEADLINE_S: Final = 5.0
HEARTBEAT_S: Final = 30
PAGE_EVENTS: Final = 50
CATCH_UP_LIMIT: Final = 500
PROMPT_PIECES: Final = 3
DELTA_INTERVAL_S: Final = 0.05
WATCH_INTERVAL_S: Final = 0.22
PAINTED_INTERVAL_S: Final = 0.25
DRAFT_LIMIT_CHARACTERS: Final = 500
DRAFT_PAUSE_S: Final = 0.2


class CloseCode(IntEnum):
    """What a client does: see docs/protocol.md. 1012 means restarting: retry after a spread."""

    RESTARTING = 1012
    PROTOCOL = 4400
    LOGIN_AGAIN = 4401
    NEVER_RETRY = 4403
    UNKNOWN_SUBPROTOCOL = 4406
    ASLEEP = 4408
    REPLACED = 4409
    SLOW_DOWN = 4429


class ErrorCode(StrEnum):
    """Why a frame changed nothing. When each is told: see docs/protocol.md."""

    BAD_FRAME = "bad_frame"
    UNKNOWN_TYPE = "unknown_type"
    TOO_LONG = "too_long"
    EMPTY_TEXT = "empty_text"
    BAD_TEXT = "bad_text"
    ID_REUSED = "id_reused"
    NOT_FOUND = "not_found"
    NOT_ALLOWED = "not_allowed"
    ALREADY_TAKEN = "already_taken"
    NOT_OWNER = "not_owner"
    NOTHING_RUNNING = "nothing_running"
    BAD_EMAIL = "bad_email"
    BAD_TOKEN = "bad_token"  # noqa: S105 - an error code, not a credential
    HELLO_MISSING = "hello_missing"
    UNKNOWN_SUBPROTOCOL = "unknown_subprotocol"
    SLOW_DOWN = "slow_down"
    UNAVAILABLE = "unavailable"


class Author(StrEnum):
    """Who has written a message."""

    CUSTOMER = "customer"
    ASSISTANT = "assistant"
    AGENT = "agent"


class Status(StrEnum):
    """Of a conversation. Its customer's next message, or an agent, opens a resolved one again."""

    OPEN = "open"
    RESOLVED = "resolved"


class OwnerKind(StrEnum):
    """Who speaks next in a conversation."""

    ASSISTANT = "assistant"
    QUEUE = "queue"
    AGENT = "agent"


class MessageState(StrEnum):
    """How a message came to its end."""

    COMPLETE = "complete"
    STOPPED = "stopped"  # the customer pressed stop
    TAKEN_OVER = "taken_over"  # a human took the conversation mid-answer
    INTERRUPTED = "interrupted"  # the process or the model broke off; a further part may follow
    REMOVED = "removed"


class EventKind(StrEnum):
    """What happened. A client passes over kinds that it does not know, and counts them."""

    MESSAGE = "message"
    MESSAGE_REMOVED = "message_removed"
    TURN_OPENED = "turn_opened"
    OWNER = "owner"
    STATUS = "status"
    CONTACT = "contact"
    HIDDEN = "hidden"  # keeps the numbering whole where the reader may not see the event


class TurnEnd(StrEnum):
    """How a part of an answer ended."""

    FINISHED = "finished"
    STOPPED = "stopped"
    SUPERSEDED = "superseded"
    TAKEN_OVER = "taken_over"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


class Source(Struct, frozen=True, omit_defaults=True):
    """An article behind an answer."""

    title: str
    url: str = ""


class Message(Struct, frozen=True, omit_defaults=True):
    """A message as it stands now. `place` orders the screen and never changes."""

    id: str
    place: int
    author: Author
    name: str
    text: str
    at: int
    state: MessageState = MessageState.COMPLETE
    client_id: str | None = None  # as the sender named it
    turn: str | None = None
    part: int | None = None
    sources: tuple[Source, ...] = ()


class Owner(Struct, frozen=True, omit_defaults=True):
    """Who speaks next, and how it came to that. `version` grows with every change."""

    kind: OwnerKind
    name: str = ""
    agent: str | None = None
    reason: str = ""  # button | rule | model | agent | assistant_off
    team: str | None = None
    version: int = 0


class LiveTurn(Struct, frozen=True, omit_defaults=True):
    """A turn in progress, with all of its text so far."""

    turn: str
    part: int
    handle: int
    place: int
    text: str = ""
    activity: str = ""
    subject: str = ""


class Summary(Struct, frozen=True, omit_defaults=True):
    """A conversation in a list."""

    id: str
    status: Status
    last_line: str
    at: int
    owner: Owner


class Availability(Struct, frozen=True, omit_defaults=True):
    """Whether a human can answer, and if not, when."""

    online: bool
    opens_at: int | None = None
    hours: tuple[str, ...] = ()  # seven entries from Monday, "09:00-17:30" or ""
    timezone: str = "UTC"


class OrderView(Struct, frozen=True, omit_defaults=True):
    """An order as the shop tells it. Days are ISO days."""

    number: str
    status: str
    placed_on: str
    items: tuple[str, ...] = ()
    total: str = ""
    carrier: str = ""
    tracking: str = ""
    eta: str = ""


class Panel(Struct, frozen=True, omit_defaults=True):
    """What an agent sees beside the conversation."""

    customer: str
    name: str
    verified: bool
    email: str = ""
    attributes: dict[str, str] = {}
    orders: tuple[OrderView, ...] = ()
    earlier: tuple[Summary, ...] = ()
    facts_state: str = "none"  # warm | cold | none | unavailable


class InboxRow(Struct, frozen=True, omit_defaults=True):
    """A conversation in an agent's inbox. Of two rows the one with the higher `seq` is newer."""

    conversation: str
    seq: int
    customer: str
    verified: bool
    status: Status
    owner: Owner
    last_line: str
    last_author: str
    at: int
    locale: str
    site: str
    waiting_since: int | None = None  # since when a human is owed an answer


class AgentView(Struct, frozen=True, omit_defaults=True):
    """An agent as others see them. `teams` are names."""

    id: str
    name: str
    online: bool
    teams: tuple[str, ...] = ()


class Stage(Struct, frozen=True, omit_defaults=True):
    """One bar of the waterfall: milliseconds from the receipt of the question."""

    name: str
    start_ms: float
    ms: float
