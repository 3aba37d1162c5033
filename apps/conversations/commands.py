"""What can be written to a conversation. Each command is decided under the conversation's lock (`decisions.py`)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TypeAlias

from apps.wire.protocol import ErrorCode, Message, MessageState, Owner
from apps.wire.server_frames import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomerMessage:
    """Appends what a customer said and, where the assistant owns the conversation, opens its turn.

    `turn` is the id that turn will have. `supersede` names a live turn that has shown no text yet and gives way.
    """

    conversation: str
    customer: str
    name: str
    client_id: str
    text: str
    at: datetime
    turn: str
    process: str
    assistant: bool
    supersede: str = ""

    @property
    def sender(self) -> str:
        """Who named the message: client ids are unique within it."""
        return f"customer:{self.customer}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _ByAgent:
    """What an agent does to a conversation of the workspace."""

    conversation: str
    workspace: str
    agent: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentMessage(_ByAgent):
    """Refused with NOT_OWNER unless this agent owns the conversation."""

    name: str
    client_id: str
    text: str

    @property
    def sender(self) -> str:
        """Who named the message: client ids are unique within it."""
        return f"agent:{self.agent}"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTurn:
    """Opens a turn for the question `question` when none is live and the assistant owns the conversation."""

    conversation: str
    turn: str
    process: str
    question: int
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Handoff:
    """Puts the conversation into the queue, for a team where one fits."""

    reason: str  # rule | model
    team: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishTurn:
    """Ends the live turn and keeps its text as one message.

    Refused with NOT_OWNER when the fence is old. When a human has taken the conversation meanwhile,
    the text is kept as TAKEN_OVER whatever `state` says.
    """

    conversation: str
    turn: str
    fence: int
    part: int
    text: str
    state: MessageState
    name: str
    at: datetime
    sources: tuple[tuple[str, str], ...] = ()
    handoff: Handoff | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptTurn:
    """Takes a dead process's turn: keeps its text as an interrupted part and opens the next part here.

    `question` is the place of what that part answers, where it may be newer than what the turn was opened for.
    With `retry` false the turn ends, and the assistant says `apology` as its last part, if there is one. It ends
    without a word when the assistant no longer owns the conversation.
    """

    conversation: str
    turn: str
    fence: int
    text: str
    name: str
    process: str
    retry: bool
    at: datetime
    apology: str = ""
    question: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestHandoff:
    """The customer asks for a human. Nothing changes where one is already owed or present."""

    conversation: str
    customer: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Take(_ByAgent):
    """One agent takes the conversation; a second is refused with ALREADY_TAKEN. Reopens a resolved one."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HandBack(_ByAgent):
    """The owning agent leaves the conversation to the assistant. Refused with NOT_OWNER for others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolve(_ByAgent):
    """By its owner, or by any agent while no agent owns it."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reopen(_ByAgent):
    """Undoes a `Resolve`; nothing changes where the conversation is open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveContact:
    """Keeps the customer's address, for replies while the customer is away."""

    conversation: str
    customer: str
    email: str
    at: datetime


class EffectKind(StrEnum):
    """What the outbox delivers."""

    MAIL_REPLY = "mail.reply"


Command: TypeAlias = (
    CustomerMessage
    | AgentMessage
    | OpenTurn
    | FinishTurn
    | AdoptTurn
    | RequestHandoff
    | Take
    | HandBack
    | Resolve
    | Reopen
    | LeaveContact
)


@dataclass(frozen=True, slots=True)
class OpenedTurn:
    """A turn this process now runs. `fence` guards every write of it; `place` is where its text is shown."""

    turn: str
    part: int
    fence: int
    place: int
    question: int


@dataclass(frozen=True, slots=True)
class Standing:
    """The conversation as the commit left it, for publishing and for whoever must react."""

    conversation: str
    workspace: str
    owner: Owner


@dataclass(frozen=True, slots=True)
class Appended:
    """The result of one command. `events` is empty where a repeat returned its first result."""

    seq: int
    at: int
    events: tuple[Event, ...]
    standing: Standing
    message: Message | None = None
    opened: OpenedTurn | None = None


class Refusal(Exception):
    """The command was not carried out and nothing changed."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class LogUnavailable(Exception):
    """The database did not take the command in time. Whether it was stored is unknown; repeat it by its id."""
