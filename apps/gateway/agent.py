"""The agent's socket: the inbox, one watched conversation, and the verbs."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import assert_never

from apps.accounts.agents import AgentIdentity
from apps.accounts.sessions import agent_for_session
from apps.conversations import commands as c
from apps.conversations.selectors import NotFound
from apps.engine.types import FactsState
from apps.gateway.origins import header, own_origin
from apps.gateway.socket import Socket
from apps.inbox.presence import RENEW_S
from apps.stores.database import in_database
from apps.stores.ids import new_id
from apps.wire import protocol as wire
from apps.wire.publish import Audience


class AgentSocket(Socket):
    """Known by its session's cookie. Hears the workspace's inbox, and one conversation while it is watched."""

    kind = "agent"
    agent: AgentIdentity
    watched = ""

    def may_connect(self) -> bool:
        # The session cookie travels with any page's socket: a foreign origin must not even be accepted.
        return own_origin(self.scope)

    async def frame(self, text: str) -> None:
        frame = wire.parse_agent(text)
        if isinstance(frame, wire.Hello):
            await self._hello(frame)
        elif not self._greeted:
            self.refuse(wire.ErrorCode.HELLO_MISSING, "the first frame must be a hello", frame)
            self.hang_up(wire.CloseCode.PROTOCOL, "no hello")
        else:
            await self.answered(frame, self._act(frame))

    async def _hello(self, hello: wire.Hello) -> None:
        if self._greeted:
            self.refuse(wire.ErrorCode.BAD_FRAME, "hello was said before", hello)
            return
        agent = await in_database(agent_for_session, header(self.scope, b"cookie"))
        if agent is None:
            self.refuse(wire.ErrorCode.BAD_TOKEN, "log in again", hello)
            self.hang_up(wire.CloseCode.LOGIN_AGAIN, "no agent is logged in")
            return
        self.agent, self.socket_id = agent, new_id()
        self.greeted()
        await self._renew()
        self.hold()
        await self.office.runtime.switchboard.join(Audience.INBOX, agent.workspace_id, self)
        self.release(await self.office.inbox(agent.id, agent.workspace_id))
        self.office.runtime.spawn(self.office.show_presence(agent.workspace_id), "show presence")

    async def _act(self, frame: wire.AgentFrame) -> None:  # noqa: C901 - one case a frame
        match frame:
            case wire.Ping():
                self.tell(wire.Pong())
                if time.monotonic() - self._renewed >= RENEW_S:
                    await self._renew()
            case wire.Watch():
                await self._watch(frame.conversation)
            case wire.Send():
                await self._append(frame, self._message(frame))
            case wire.Take() | wire.HandBack() | wire.Resolve() | wire.Reopen():
                await self._append(frame, self._command(frame))
            case wire.SetTyping():
                if frame.conversation == self.watched:
                    typing = wire.Typing(
                        conversation=self.watched, author=wire.Author.AGENT, name=self.agent.name, on=frame.on
                    )
                    self.office.runtime.switchboard.send(Audience.CUSTOMERS, self.watched, typing)
            case wire.SetPresence():
                workspace = self.agent.workspace_id
                await self.office.runtime.presence.set_away(workspace, self.agent.id, not frame.online)
                await self.office.show_presence(workspace)
            case wire.FetchHistory():
                self.tell(await self.office.agent_history(self.agent.workspace_id, frame))
            case wire.Hello():
                raise AssertionError("hello is handled before")
            case _:
                assert_never(frame)

    async def _watch(self, conversation: str | None) -> None:
        before, self.watched = self.watched, ""
        if before and before != conversation:
            await self.office.attendance.leave(Audience.WATCHERS, before, self)
        if conversation is None:
            return
        state = await self._joined(conversation)
        self.watched = conversation
        self.release(state)
        if state.panel.facts_state == FactsState.UNAVAILABLE:
            self.office.runtime.spawn(self._fill_panel(conversation), "panel")

    async def _joined(self, conversation: str) -> wire.Watching:
        """Joins only what the workspace owns; what is published while the state is read follows it."""
        self.hold()
        await self.office.attendance.join(Audience.WATCHERS, conversation, self)
        try:
            return await self.office.watching(self.agent.workspace_id, conversation)
        except NotFound:
            await self.office.attendance.leave(Audience.WATCHERS, conversation, self)
            self.end_hold()
            raise

    async def _fill_panel(self, conversation: str) -> None:
        panel = await self.office.fresh_panel(self.agent.workspace_id, conversation)
        if self.watched == conversation:
            self.tell(panel)

    def _message(self, frame: wire.Send) -> c.AgentMessage:
        return c.AgentMessage(
            conversation=frame.conversation,
            workspace=self.agent.workspace_id,
            agent=self.agent.id,
            name=self.agent.name,
            client_id=frame.id,
            text=wire.clean_text(frame.text, frame.id, "message.send"),
            at=datetime.now(UTC),
        )

    def _command(self, frame: wire.Take | wire.HandBack | wire.Resolve | wire.Reopen) -> c.Command:
        conversation, workspace, at = frame.conversation, self.agent.workspace_id, datetime.now(UTC)
        agent, name = self.agent.id, self.agent.name
        match frame:
            case wire.Take():
                return c.Take(conversation=conversation, workspace=workspace, agent=agent, name=name, at=at)
            case wire.HandBack():
                return c.HandBack(conversation=conversation, workspace=workspace, agent=agent, at=at)
            case wire.Resolve():
                return c.Resolve(
                    conversation=conversation, workspace=workspace, agent=agent, name=name, at=at
                )
            case wire.Reopen():
                return c.Reopen(conversation=conversation, workspace=workspace, agent=agent, at=at)

    async def _append(
        self, frame: wire.Send | wire.Take | wire.HandBack | wire.Resolve | wire.Reopen, command: c.Command
    ) -> None:
        appended = await self.office.runtime.log.append(command)
        self.tell(wire.Ack(id=frame.id, seq=appended.seq, conversation=frame.conversation, at=appended.at))

    async def _renew(self) -> None:
        self._renewed = time.monotonic()
        await self.office.runtime.presence.renew(self.agent.workspace_id, self.agent.id, self.socket_id)

    def left(self) -> None:
        office, agent = self.office, self.agent
        spawn = office.runtime.spawn
        spawn(office.runtime.switchboard.leave(Audience.INBOX, agent.workspace_id, self), "leave inbox")
        spawn(office.runtime.presence.leave(agent.workspace_id, agent.id, self.socket_id), "leave presence")
        if self.watched:
            spawn(office.attendance.leave(Audience.WATCHERS, self.watched, self), "leave")
