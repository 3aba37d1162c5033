"""A customer who is connected: frames in, actions of the office, frames out."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from functools import partial
from typing import assert_never

from django.core.exceptions import ValidationError
from django.core.validators import validate_email

from apps.conversations import commands as c
from apps.conversations.selectors import NotFound
from apps.customers.identity import BadToken, Identified, TokenFault, identify
from apps.gateway.beats import Beats
from apps.gateway.origins import foreign_origin
from apps.gateway.peer import Peer
from apps.stores.database import in_database
from apps.telemetry.waterfall import Waterfall
from apps.turns.ahead.drafts import Draft, Drafting
from apps.turns.job import Said
from apps.turns.office import Resume
from apps.wire import client_frames as client
from apps.wire import protocol as wire
from apps.wire import server_frames as server
from apps.wire.publish import Audience, Encoded


class CustomerPeer(Peer):
    """Known by the token or identity of its hello. Shows one conversation at a time."""

    kind = "customer"
    # Stopping an answer must always be possible.
    counted = (
        client.Send,
        client.RequestHandoff,
        client.LeaveContact,
        client.FetchHistory,
        client.NewConversation,
        client.OpenConversation,
        client.ListConversations,
    )
    who: Identified
    origin: str
    conversation = ""
    _shown: set[str]  # what the socket listens to: its conversation, and another while that is changing
    locale = "en"
    _drafting: Drafting
    _beats: Beats

    async def frame(self, text: str) -> None:
        received = Waterfall(started=self.arrived)
        frame = client.parse_customer(text)
        received.add("gateway", self.arrived, time.monotonic())
        await self.carry_out(frame, partial(self._act, frame, received))

    async def hello(self, hello: client.Hello) -> None:
        try:
            who = await in_database(identify, hello.token, hello.identity)
        except BadToken as error:
            self.refuse(wire.ErrorCode.BAD_TOKEN, error.fault.value, hello)
            self.hang_up(wire.CloseCode.LOGIN_AGAIN, f"token {error.fault.value}")
            return
        # A browser names the page; our own frame names the one around it, by which it can only lose.
        origin = foreign_origin(self.scope) or hello.framed_by
        if origin and origin not in who.origins:
            self.refuse(wire.ErrorCode.NOT_ALLOWED, "this origin is not allowed for the site", hello)
            self.hang_up(wire.CloseCode.NEVER_RETRY, "origin not allowed")
            return
        self.who, self.origin, self.locale = who, origin, hello.locale[:16]
        self._drafting = Drafting(self.office.drafts)
        self._beats = Beats(self.heartbeat, self.connections.rhythms, who.site_id)
        self._shown = set()
        await self.office.residents.ensure(who.site_id)
        self.greeted(who.customer_id, who.workspace_id, who.expires_at)
        self.connections.passes.hold_customer(self)
        conversation = await self.office.conversation_for(who.customer_id, self.locale, hello.conversation)
        await self._show(conversation, _resume(hello))
        self.office.preloader.conversation_opened(conversation, who.customer_id, who.site_id)

    async def _show(self, conversation: str, resume: Resume | None = None) -> None:
        """Subscribes, then reads: what happens in between is held and follows the welcome.

        Where that fails, the socket goes on with the conversation it had.
        """
        self.hold()
        self._shown.add(conversation)
        try:
            await self.office.attendance.join(Audience.CUSTOMERS, conversation, self)
            heartbeat_s = self._beats.begin()
            self.tell(
                await self.office.welcome(
                    self.who, conversation, self.locale, resume, heartbeat_s=heartbeat_s
                )
            )
            self.conversation = conversation
        finally:
            self.end_hold()
            for other in self._shown - {self.conversation}:
                await self.office.attendance.leave(Audience.CUSTOMERS, other, self)
                self._shown.discard(other)

    async def _act(self, frame: client.CustomerFrame, received: Waterfall) -> None:  # noqa: C901 - one case a frame
        if isinstance(frame, self.counted):
            self._beats.asked()
        elif not isinstance(frame, client.Ping):
            self._beats.heard()
        match frame:
            case client.Ping():
                await self._beat(frame)
            case client.Send():
                await self._send(frame, received)
            case client.Stop():
                if not await self.office.supervisor.stop(self._mine(frame), frame.turn, frame.painted):
                    self.refuse(wire.ErrorCode.NOTHING_RUNNING, "that answer has ended", frame)
            case client.Painted():
                self._painted(frame)
            case client.RequestHandoff():
                await self._append(
                    frame,
                    c.RequestHandoff(
                        conversation=frame.conversation, customer=self.who.customer_id, at=datetime.now(UTC)
                    ),
                )
            case client.LeaveContact():
                await self._append(
                    frame,
                    c.LeaveContact(
                        conversation=frame.conversation,
                        customer=self.who.customer_id,
                        email=_address(frame),
                        at=datetime.now(UTC),
                    ),
                )
            case client.SetTyping():
                self.office.runtime.switchboard.send(
                    Audience.WATCHERS,
                    self._mine(frame),
                    server.Typing(conversation=self.conversation, author=wire.Author.CUSTOMER, on=frame.on),
                )
            case client.WriteDraft():
                self._draft(frame)
            case client.FetchHistory():
                self.tell(await self.office.customer_history(self.who.customer_id, frame))
            case client.NewConversation():
                await self._show(await self.office.new_conversation(self.who.customer_id, self.locale))
            case client.OpenConversation():
                await self._show(await self._owned(frame.conversation), _resume(frame))
            case client.ListConversations():
                self.tell(await self.office.summaries(self.who.customer_id))
            case client.Hello():
                raise AssertionError("hello is handled before")
            case _:
                assert_never(frame)

    def deliver(self, frame: Encoded) -> None:
        self._beats.busy()
        super().deliver(frame)

    async def _beat(self, ping: client.Ping) -> None:
        if self._beats.sleepy(hidden=ping.hidden) and await self._is_done():
            self.hang_up(wire.CloseCode.ASLEEP, "asleep")
        else:
            self.tell(server.Pong(heartbeat_s=self._beats.ping()))

    async def _is_done(self) -> bool:
        """Whether its conversation is resolved. While it is not, that is asked once in ten minutes."""
        resolved = await self.office.is_resolved(self.who.customer_id, self.conversation)
        if not resolved:
            self._beats.busy()
        return resolved

    async def _send(self, frame: client.Send, received: Waterfall) -> None:
        text = client.clean_text(frame.text, frame.id, "message.send")
        begun = self._drafting.sent(frame.conversation, text, received)
        appended = await self.office.supervisor.customer_message(
            Said(
                conversation=frame.conversation,
                site=self.who.site_id,
                asker=self.who,
                name=self.who.name,
                client_id=frame.id,
                text=text,
                locale=self.locale,
                received=received,
                drafted=begun.search,
                ahead=begun.ahead,
            )
        )
        self.tell(server.Ack(id=frame.id, seq=appended.seq, conversation=frame.conversation, at=appended.at))

    def _draft(self, frame: client.WriteDraft) -> None:
        """Never answered: one that crosses with another conversation's welcome is no error of the client."""
        if frame.conversation == self.conversation:
            self._drafting.heard(
                Draft(
                    conversation=frame.conversation,
                    site=self.who.site_id,
                    asker=self.who,
                    text=frame.text,
                    number=frame.number,
                    locale=self.locale,
                )
            )

    def _painted(self, frame: client.Painted) -> None:
        self._outbound.painted(frame.handle, frame.upto)
        if frame.ms is not None:
            self.office.supervisor.painted(self.conversation, frame.handle, frame.ms)

    async def _append(
        self, frame: client.RequestHandoff | client.LeaveContact, command: c.RequestHandoff | c.LeaveContact
    ) -> None:
        appended = await self.office.runtime.log.append(command)
        self.tell(server.Ack(id=frame.id, seq=appended.seq, conversation=frame.conversation, at=appended.at))

    def _mine(self, frame: client.Stop | client.SetTyping) -> str:
        """The conversation shown on this socket, which was found by its customer. Raises `NotFound` for another."""
        if frame.conversation != self.conversation:
            raise NotFound
        return self.conversation

    async def _owned(self, conversation: str) -> str:
        found = await self.office.conversation_for(self.who.customer_id, self.locale, conversation)
        if found != conversation:
            raise NotFound
        return found

    def revoked(self) -> None:
        if self.leaving:
            return
        self.refuse(wire.ErrorCode.BAD_TOKEN, TokenFault.INVALID.value)
        self.hang_up(wire.CloseCode.LOGIN_AGAIN, f"token {TokenFault.INVALID.value}")

    def left(self) -> None:
        self.connections.passes.drop_customer(self)
        self._drafting.left()
        for conversation in self._shown:
            leaving = self.office.attendance.leave(Audience.CUSTOMERS, conversation, self)
            self.office.runtime.spawn(leaving, "leave")


def _resume(frame: client.Hello | client.OpenConversation) -> Resume | None:
    """What the client holds, where it says so."""
    if frame.conversation is None or frame.epoch is None or frame.seq is None:
        return None
    return Resume(frame.conversation, frame.epoch, frame.seq)


def _address(frame: client.LeaveContact) -> str:
    email = frame.email.strip()
    try:
        validate_email(email)
    except ValidationError as error:
        raise client.FrameError(
            wire.ErrorCode.BAD_EMAIL, "that is not an e-mail address", frame.id, "contact.leave"
        ) from error
    return email
