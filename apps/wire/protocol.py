"""Every frame, kind, version, limit and close code of the socket; parse and encode. Pure: no Django, no I/O.

Client to server is JSON text. Server to client is JSON objects (`chatsvc.v1.json`) or MessagePack arrays
(`chatsvc.v1.msgpack`): `[code, field, …]` in the order of the struct's fields, trailing nulls left off.
Times are milliseconds since 1970 in UTC; offsets are UTF-16 code units, which is what JavaScript counts.
"""

from __future__ import annotations

import json
from enum import IntEnum, StrEnum
from typing import Annotated, Final, TypeAlias, TypeVar

import msgspec
from msgspec import Struct

T = TypeVar("T")

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
    CUSTOMER = "customer"
    ASSISTANT = "assistant"
    AGENT = "agent"


class Status(StrEnum):
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


# From the server to its clients.


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


# From clients to the server.


# What JavaScript counts exactly; databases and Redis hold it too.
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**53 - 1)]


class ClientFrame(Struct, frozen=True, tag_field="type"):
    pass


class Hello(ClientFrame, frozen=True, tag="hello"):
    """Must be the first frame. Customers give a token; agents are known by their session.

    `conversation`, `epoch`, `seq` resume: the page then holds only what came after `seq`,
    or a full first page when the epoch differs or the gap is longer than CATCH_UP_LIMIT.
    """

    token: str = ""
    identity: str = ""  # the site's signed JWT of a known customer
    locale: str = "en"
    conversation: str | None = None
    epoch: str | None = None
    seq: Count | None = None


class Ping(ClientFrame, frozen=True, tag="ping"):
    hidden: bool = False  # whether nobody can see the page


class Send(ClientFrame, frozen=True, tag="message.send"):
    """`id` is the sender's for ever: a repeat stores nothing, another text under it is refused."""

    id: str
    conversation: str
    text: str


class Stop(ClientFrame, frozen=True, tag="turn.stop"):
    """Ends the live turn and keeps the text up to `painted` UTF-16 code units."""

    conversation: str
    turn: str
    painted: Count


class Painted(ClientFrame, frozen=True, tag="turn.painted"):
    """What the customer sees of a turn: `upto` code units, at first with the ms since the question was submitted.

    Sent at most every PAINTED_INTERVAL_S while text appears. Changes nothing but what is measured and sent next.
    """

    handle: Count
    upto: Count
    ms: float | None = None  # left out where the page was hidden meanwhile, or another one asked


class RequestHandoff(ClientFrame, frozen=True, tag="handoff.request"):
    """Asks for a person. Nothing changes where one is owed or present."""

    id: str
    conversation: str


class LeaveContact(ClientFrame, frozen=True, tag="contact.leave"):
    id: str
    conversation: str
    email: str


class SetTyping(ClientFrame, frozen=True, tag="typing.set"):
    conversation: str
    on: bool


class WriteDraft(ClientFrame, frozen=True, tag="draft"):
    """What the customer is writing, where the site wants it: it is prepared for, and never stored, logged or shown.

    `number` grows with every draft of the client; "" says that nothing is written any more.
    """

    conversation: str
    text: str
    number: Count


class FetchHistory(ClientFrame, frozen=True, tag="history.fetch"):
    """`after` fills a gap; `before` asks for the page of older events; both are seqs, exactly one is given."""

    conversation: str
    after: Count | None = None
    before: Count | None = None


class NewConversation(ClientFrame, frozen=True, tag="conversation.new"):
    """Shows the customer's one empty conversation."""


class OpenConversation(ClientFrame, frozen=True, tag="conversation.open"):
    """Shows another conversation of the same customer on this socket, or the same one to another of its pages.

    `epoch` and `seq` resume, as those of a hello.
    """

    conversation: str
    epoch: str | None = None
    seq: Count | None = None


class ListConversations(ClientFrame, frozen=True, tag="conversation.list"):
    pass


class Watch(ClientFrame, frozen=True, tag="conversation.watch"):
    """Agents: show this conversation live. Replaces the one watched before; null watches nothing."""

    conversation: str | None


class Take(ClientFrame, frozen=True, tag="conversation.take"):
    """The first to take it owns it; the next is refused with ALREADY_TAKEN."""

    id: str
    conversation: str


class HandBack(ClientFrame, frozen=True, tag="conversation.hand_back"):
    """Gives it to the assistant, which answers what is open."""

    id: str
    conversation: str


class Resolve(ClientFrame, frozen=True, tag="conversation.resolve"):
    """By the owner, or by any agent while none owns it."""

    id: str
    conversation: str


class Reopen(ClientFrame, frozen=True, tag="conversation.reopen"):
    """Open again, with the owner that it had."""

    id: str
    conversation: str


class SetPresence(ClientFrame, frozen=True, tag="presence.set"):
    """Away is kept until chosen otherwise; a new socket does not undo it."""

    online: bool


CustomerFrame: TypeAlias = (
    Hello
    | Ping
    | Send
    | Stop
    | Painted
    | RequestHandoff
    | LeaveContact
    | SetTyping
    | WriteDraft
    | FetchHistory
    | NewConversation
    | OpenConversation
    | ListConversations
)
AgentFrame: TypeAlias = (
    Hello | Ping | Send | SetTyping | FetchHistory | Watch | Take | HandBack | Resolve | Reopen | SetPresence
)


class FrameError(Exception):
    """A client frame that cannot be accepted. The socket lives; nothing was changed."""

    def __init__(
        self, code: ErrorCode, message: str, frame_id: str | None = None, of: str | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.frame_id = frame_id
        self.of = of

    def as_frame(self) -> Refused:
        """What the sender is told."""
        return Refused(code=self.code, message=self.message, id=self.frame_id, of=self.of)


_customer = msgspec.json.Decoder(CustomerFrame)
_agent = msgspec.json.Decoder(AgentFrame)


def parse_customer(text: str) -> CustomerFrame:
    """One customer frame. Raises `FrameError`, naming the frame's id and type where they can be read."""
    return _parse(_customer, text)


def parse_agent(text: str) -> AgentFrame:
    """One agent frame. Raises `FrameError`."""
    return _parse(_agent, text)


def too_fast(text: str, wait_s: float) -> Refused:
    """The refusal of a frame that came too soon, whatever it holds."""
    explained = _explained(text, ValueError())
    return Refused(
        code=ErrorCode.SLOW_DOWN,
        message="too many frames at once",
        id=explained.frame_id,
        of=explained.of,
        retry_after_s=round(wait_s, 3),
    )


def clean_text(text: str, frame_id: str | None = None, of: str | None = None) -> str:
    """The text as stored. Raises `FrameError` for NUL, lone surrogates, emptiness and excess length."""
    if len(text) > TEXT_LIMIT_CHARACTERS:
        limit = f"{TEXT_LIMIT_CHARACTERS:,} characters at most; this has {len(text):,}"
        raise FrameError(ErrorCode.TOO_LONG, limit, frame_id, of)
    if _unstorable(text):
        raise FrameError(ErrorCode.BAD_TEXT, "the text holds characters that cannot be stored", frame_id, of)
    if not text.translate(_INVISIBLE).strip():
        raise FrameError(ErrorCode.EMPTY_TEXT, "there is nothing to send", frame_id, of)
    return text.strip()


def _unstorable(text: str) -> bool:
    """NUL, which PostgreSQL refuses, and lone surrogates, which no encoding has."""
    return "\x00" in text or any("\ud800" <= character <= "\udfff" for character in text)


# Zero-width and formatting characters: a text of these alone shows nothing.
_INVISIBLE = dict.fromkeys([
    0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180E, 0x3164, 0xFEFF, 0xFFA0,
    *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070), *range(0xFE00, 0xFE10),
])  # fmt: skip


def storable(text: str) -> str:
    """The text without what no database and no encoding takes: what a model says is repaired, never refused."""
    return text.translate(_UNSTORABLE) if _unstorable(text) else text


_UNSTORABLE = {0: None, **dict.fromkeys(range(0xD800, 0xE000), "\ufffd")}


def utf16_length(text: str) -> int:
    """Length in UTF-16 code units."""
    return len(text) + sum(character > "\uffff" for character in text)


def utf16_prefix(text: str, units: int) -> str:
    """The longest prefix of at most `units` UTF-16 code units that splits no character."""
    taken = 0
    for index, character in enumerate(text):
        taken += 2 if character > "\uffff" else 1
        if taken > units:
            return text[:index]
    return text


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


def _parse(decoder: msgspec.json.Decoder[T], text: str) -> T:
    if len(text) > FRAME_LIMIT_BYTES:
        raise FrameError(ErrorCode.TOO_LONG, "the frame is larger than 1 MiB")
    try:
        frame = decoder.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise _explained(text, error) from error
    _check(frame)
    return frame


def _check(frame: object) -> None:
    """Ids fit and no field, of whatever use, holds what a database refuses; the text is judged by `clean_text`."""
    values = msgspec.structs.asdict(frame)  # type: ignore[arg-type]  # every client frame is a struct
    of = str(type(frame).__struct_config__.tag)  # type: ignore[attr-defined]
    frame_id = values.get("id")
    if frame_id is not None and not 0 < len(frame_id) <= CLIENT_ID_LIMIT:
        raise FrameError(ErrorCode.BAD_FRAME, f"an id has 1 to {CLIENT_ID_LIMIT} characters", None, of)
    for name, value in values.items():
        if name != "text" and isinstance(value, str) and "\x00" in value:
            raise FrameError(ErrorCode.BAD_FRAME, f"{name} holds a NUL", _echoed(frame_id), of)


def _explained(text: str, error: Exception) -> FrameError:
    # The standard library reads what msgspec refuses (lone surrogates): the sender learns which frame failed.
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        read = None
    if not isinstance(read, dict) or not isinstance(read.get("type"), str):
        return FrameError(ErrorCode.BAD_FRAME, "the frame is not a JSON object with a type")
    frame_id, of = _echoed(read.get("id")), _echoed(read["type"])
    if any(_unstorable(value) for value in read.values() if isinstance(value, str)):
        return FrameError(ErrorCode.BAD_TEXT, "the text holds characters that cannot be stored", frame_id, of)
    code = ErrorCode.UNKNOWN_TYPE if "$.type" in str(error) else ErrorCode.BAD_FRAME
    return FrameError(code, str(error)[:REFUSAL_LIMIT], frame_id, of)


def _echoed(value: object) -> str | None:
    """What a refusal may repeat of the frame: short, and of characters that can be encoded."""
    fits = isinstance(value, str) and len(value) <= CLIENT_ID_LIMIT and not _unstorable(value)
    return str(value) if fits else None
