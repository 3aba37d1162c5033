"""What clients say to the server: every frame, parsed once or refused. Pure."""

from __future__ import annotations

import json
from typing import Annotated, TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from apps.wire.protocol import (
    CLIENT_ID_LIMIT,
    FRAME_LIMIT_BYTES,
    REFUSAL_LIMIT,
    TEXT_LIMIT_CHARACTERS,
    ErrorCode,
)
from apps.wire.server_frames import Refused
from apps.wire.texts import unstorable

T = TypeVar("T")

# What JavaScript counts exactly; databases and Redis hold it too.
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**53 - 1)]


class ClientFrame(Struct, frozen=True, tag_field="type"):
    """Any of them; its `type` says which."""


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
    framed_by: str = ""  # the origin of the page around the widget's frame, as the frame knows it


class Ping(ClientFrame, frozen=True, tag="ping"):
    """A sign of life, answered with a pong."""

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
    """Where an agent's reply is mailed to once the customer is gone."""

    id: str
    conversation: str
    email: str


class SetTyping(ClientFrame, frozen=True, tag="typing.set"):
    """Told to the other side, and kept nowhere."""

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
    """Asks for the customer's conversations."""


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
    if unstorable(text):
        raise FrameError(ErrorCode.BAD_TEXT, "the text holds characters that cannot be stored", frame_id, of)
    if not text.translate(_INVISIBLE).strip():
        raise FrameError(ErrorCode.EMPTY_TEXT, "there is nothing to send", frame_id, of)
    return text.strip()


# Zero-width and formatting characters: a text of these alone shows nothing.
_INVISIBLE = dict.fromkeys([
    0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180E, 0x3164, 0xFEFF, 0xFFA0,
    *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070), *range(0xFE00, 0xFE10),
])  # fmt: skip


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
    if any(unstorable(value) for value in read.values() if isinstance(value, str)):
        return FrameError(ErrorCode.BAD_TEXT, "the text holds characters that cannot be stored", frame_id, of)
    code = ErrorCode.UNKNOWN_TYPE if "$.type" in str(error) else ErrorCode.BAD_FRAME
    return FrameError(code, str(error)[:REFUSAL_LIMIT], frame_id, of)


def _echoed(value: object) -> str | None:
    """What a refusal may repeat of the frame: short, and of characters that can be encoded."""
    fits = isinstance(value, str) and len(value) <= CLIENT_ID_LIMIT and not unstorable(value)
    return str(value) if fits else None
