"""What the server says to its clients: every frame, its code, and both encodings. Pure."""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec
from msgspec import Struct

from apps.wire.protocol import (
    AgentView,
    Author,
    Availability,
    ErrorCode,
    EventKind,
    InboxRow,
    LiveTurn,
    Message,
    Owner,
    Panel,
    Stage,
    Status,
    Summary,
    TurnEnd,
)


class Event(Struct, frozen=True, omit_defaults=True, tag="event"):
    """A durable event, by its number in the conversation."""

    conversation: str
    seq: int
    kind: EventKind
    at: int
    message: Message | None = None
    owner: Owner | None = None
    status: Status | None = None
    turn: str | None = None  # turn_opened only
    part: int | None = None


class Page(Struct, frozen=True, omit_defaults=True):
    """Events in order of seq. Applying it brings the reader to `upto` exactly.

    A message is given once, as it stands now, at its place. With `after`, the page holds what came after that
    seq and is added to what the reader has; without it, the page is the newest and replaces what the reader has.
    `earlier` says whether older events exist before the first one given.
    """

    conversation: str
    epoch: str
    upto: int
    events: tuple[Event, ...]
    earlier: bool = False
    after: int | None = None


class Delta(Struct, frozen=True, omit_defaults=True, tag="delta"):
    """More text of the live turn `handle`, starting at `offset` UTF-16 code units."""

    handle: int
    offset: int
    text: str
    conversation: str | None = None  # agents only: a customer's socket carries one conversation


class Pong(Struct, frozen=True, omit_defaults=True, tag="pong"):
    """Answers a ping."""

    heartbeat_s: int | None = None  # from now on, where it is another than before


class Ack(Struct, frozen=True, omit_defaults=True, tag="ack"):
    """The message or action with this client id is stored; `seq` is its number."""

    id: str
    seq: int
    conversation: str
    at: int


class Refused(Struct, frozen=True, omit_defaults=True, tag="refused"):
    """Nothing was changed by the client's frame of type `of` with this id."""

    code: ErrorCode
    message: str
    id: str | None = None
    of: str | None = None
    retry_after_s: float | None = None
    conversation: str | None = None


class TurnStarted(Struct, frozen=True, omit_defaults=True, tag="turn.started"):
    """An answer begins. `handle` names it in the frames that follow; it grows within a conversation."""

    conversation: str
    turn: str
    part: int
    handle: int
    place: int


class Activity(Struct, frozen=True, omit_defaults=True, tag="turn.activity"):
    """What the assistant is doing before its first token: `order` with its number, `knowledge`, `thinking`."""

    handle: int
    activity: str
    subject: str = ""
    conversation: str | None = None


class TurnEnded(Struct, frozen=True, omit_defaults=True, tag="turn.ended"):
    """No delta of this handle follows. The durable message, where text was kept, comes as an event."""

    handle: int
    end: TurnEnd
    conversation: str | None = None
    length: int = 0  # UTF-16 code units kept


class Typing(Struct, frozen=True, omit_defaults=True, tag="typing"):
    """The other side writes. May be lost: a client forgets it after some seconds."""

    conversation: str
    author: Author
    name: str = ""
    on: bool = True


class Queue(Struct, frozen=True, omit_defaults=True, tag="queue"):
    """Where a waiting customer stands."""

    conversation: str
    position: int
    availability: Availability


class Welcome(Struct, frozen=True, omit_defaults=True, tag="welcome"):
    """The answer to a customer's hello, and to opening or starting a conversation."""

    conversation: str
    customer: str
    name: str
    verified: bool
    status: Status
    owner: Owner
    page: Page
    assistant: bool
    availability: Availability
    heartbeat_s: int
    now: int
    live: LiveTurn | None = None
    queue_position: int | None = None
    contact: bool = False  # an address was left


class History(Struct, frozen=True, omit_defaults=True, tag="history"):
    """The answer to history.fetch and to a resume."""

    page: Page
    after: int | None = None  # the gap fetch this answers: events with seq > after
    before: int | None = None  # an older page: events with seq < before
    live: LiveTurn | None = None


class Conversations(Struct, frozen=True, omit_defaults=True, tag="conversations"):
    """The customer's conversations, newest first."""

    items: tuple[Summary, ...]


class Inbox(Struct, frozen=True, omit_defaults=True, tag="inbox"):
    """The answer to an agent's hello: everything open that this agent may see."""

    me: AgentView
    rows: tuple[InboxRow, ...]
    agents: tuple[AgentView, ...]
    heartbeat_s: int
    now: int


class InboxChanged(Struct, frozen=True, omit_defaults=True, tag="inbox.row"):
    """A row as it stands now. Older than the one shown (by `seq`) means: drop it."""

    row: InboxRow


class Watching(Struct, frozen=True, omit_defaults=True, tag="watching"):
    """The answer to conversation.watch: the whole state of one conversation for an agent."""

    row: InboxRow
    page: Page
    panel: Panel
    live: LiveTurn | None = None
    stages: tuple[Stage, ...] = ()
    marks: dict[str, str] = {}
    turn: str | None = None  # whose stages these are
    part: int | None = None
    painted_ms: float | None = None
    added_ms: float | None = None


class Waterfall(Struct, frozen=True, omit_defaults=True, tag="waterfall"):
    """Stages of a turn that has ended; `marks` says what was warm, such as {"profile": "warm"}.

    It comes again when the customer's client reports the paint after the end.
    """

    conversation: str
    turn: str
    stages: tuple[Stage, ...]
    marks: dict[str, str] = {}
    part: int = 1
    painted_ms: float | None = None  # what the customer saw: submit to the first visible text
    added_ms: float | None = None  # what we added to the model's own time


class PresenceChanged(Struct, frozen=True, omit_defaults=True, tag="presence"):
    """All active agents of the workspace, as they are now."""

    agents: tuple[AgentView, ...]


class PanelChanged(Struct, frozen=True, omit_defaults=True, tag="panel"):
    """The shop has answered after `watching` was sent."""

    conversation: str
    panel: Panel


ServerFrame: TypeAlias = (
    Event
    | Delta
    | Pong
    | Ack
    | Refused
    | TurnStarted
    | Activity
    | TurnEnded
    | Typing
    | Queue
    | Welcome
    | History
    | Conversations
    | Inbox
    | InboxChanged
    | Watching
    | Waterfall
    | PresenceChanged
    | PanelChanged
)

# The first element of a MessagePack frame. Numbers are never reused.
CODES: Final[dict[type[Struct], int]] = {
    Event: 1, Delta: 2, Pong: 3, Ack: 4, Refused: 5, TurnStarted: 6, Activity: 7, TurnEnded: 8, Typing: 9,
    Queue: 10, Welcome: 11, History: 12, Conversations: 13, Inbox: 14, InboxChanged: 15, Watching: 16,
    Waterfall: 17, PresenceChanged: 18, PanelChanged: 19,
}  # fmt: skip


_json = msgspec.json.Encoder()
_msgpack = msgspec.msgpack.Encoder()


def encode_json(frame: ServerFrame) -> str:
    """Fields that have their default are left out."""
    return _json.encode(frame).decode()


def encode_msgpack(frame: ServerFrame) -> bytes:
    """`[code, field, …]`, trailing nulls left off. Shapes inside are maps, without their defaults."""
    values: list[object] = [CODES[type(frame)], *msgspec.structs.astuple(frame)]
    while values[-1] is None:
        values.pop()
    return _msgpack.encode(values)


def fields_by_code() -> dict[int, tuple[str, tuple[str, ...]]]:
    """Code → (type, field names): what the JavaScript mirror must say too."""
    return {
        code: (str(frame.__struct_config__.tag), tuple(frame.__struct_fields__))
        for frame, code in CODES.items()
    }
