"""An agent who is connected: the inbox, one watched conversation, and the verbs."""

from __future__ import annotations

import time
from functools import partial
from typing import assert_never

from apps.accounts.agents import AgentIdentity
from apps.accounts.sessions import agent_for_session, session_key
from apps.engine.types import FactsState
from apps.gateway.origins import header, own_origin
from apps.gateway.peer import Peer
from apps.gateway.verbs import Verb, command_of
from apps.inbox.presence import RENEW_S
from apps.stores.database import in_database
from apps.stores.ids import new_id
from apps.wire import client_frames as client
from apps.wire import protocol as wire
from apps.wire import server_frames as server
from apps.wire.publish import Audience


class AgentPeer(Peer):
    """Known by its session's cookie. Hears the workspace's inbox, and one conversation while it is watched."""

    kind = "agent"
    counted = (
        client.Watch,
        client.Send,
        client.Take,
        client.HandBack,
        client.Resolve,
        client.Reopen,
        client.SetPresence,
        client.FetchHistory,
    )
    agent: AgentIdentity
    session = ""  # the key of the cookie
    watched = ""
    _seen: set[str]  # what the socket listens to: what is watched, and another while that is changing

    def may_connect(self) -> bool:
        # The session cookie travels with any page's socket: a foreign origin must not even be accepted.
        return own_origin(self.scope)

    def knows(self, cookie: str) -> bool:
        return session_key(cookie) == session_key(header(self.scope, b"cookie"))

    async def frame(self, text: str) -> None:
        frame = client.parse_agent(text)
        await self.carry_out(frame, partial(self._act, frame))

    async def hello(self, hello: client.Hello) -> None:
        agent = await in_database(agent_for_session, header(self.scope, b"cookie"))
        if agent is None:
            self.refuse(wire.ErrorCode.BAD_TOKEN, "log in again", hello)
            self.hang_up(wire.CloseCode.LOGIN_AGAIN, "no agent is logged in")
            return
        self.agent, self.socket_id = agent, new_id()
        self.session = session_key(header(self.scope, b"cookie")) or ""
        self._seen = set()
        self.greeted(agent.id, agent.workspace_id)
        self.connections.passes.hold_agent(self)
        await self._renew()
        self.hold()
        await self.office.runtime.switchboard.join(Audience.INBOX, agent.workspace_id, self)
        self.release(await self.office.inbox(agent.id, agent.workspace_id))
        self.office.runtime.spawn(self.office.show_presence(agent.workspace_id), "show presence")

    async def _act(self, frame: client.AgentFrame) -> None:
        match frame:
            case client.Ping():
                self.tell(server.Pong())
                if time.monotonic() - self._renewed >= RENEW_S:
                    await self._renew()
            case client.Watch():
                await self._watch(frame.conversation)
            case client.Send() | client.Take() | client.HandBack() | client.Resolve() | client.Reopen():
                await self._change(frame)
            case client.SetTyping():
                if frame.conversation == self.watched:
                    typing = server.Typing(
                        conversation=self.watched, author=wire.Author.AGENT, name=self.agent.name, on=frame.on
                    )
                    self.office.runtime.switchboard.send(Audience.CUSTOMERS, self.watched, typing)
            case client.SetPresence():
                workspace = self.agent.workspace_id
                await self.office.runtime.presence.set_away(workspace, self.agent.id, not frame.online)
                await self.office.show_presence(workspace)
            case client.FetchHistory():
                self.tell(await self.office.agent_history(self.agent.workspace_id, frame))
            case client.Hello():
                raise AssertionError("hello is handled before")
            case _:
                assert_never(frame)

    async def _change(self, frame: Verb) -> None:
        if not await self._still_logged_in(frame):
            return
        appended = await self.office.runtime.log.append(command_of(frame, self.agent))
        self.tell(server.Ack(id=frame.id, seq=appended.seq, conversation=frame.conversation, at=appended.at))

    async def _watch(self, conversation: str | None) -> None:
        await self._look_away(but=conversation)
        if conversation is None:
            return
        state = await self._joined(conversation)
        self.watched = conversation
        self.release(state)
        if state.panel.facts_state == FactsState.UNAVAILABLE:
            self.office.runtime.spawn(self._fill_panel(conversation), "panel")

    async def _look_away(self, but: str | None = None) -> None:
        self.watched = ""
        for conversation in self._seen - {but}:
            await self.office.attendance.leave(Audience.WATCHERS, conversation, self)
            self._seen.discard(conversation)

    async def _joined(self, conversation: str) -> server.Watching:
        """Joins only what the workspace owns; what is published while the state is read follows it."""
        self.hold()
        self._seen.add(conversation)
        try:
            await self.office.attendance.join(Audience.WATCHERS, conversation, self)
            return await self.office.watching(self.agent.workspace_id, conversation)
        except BaseException:
            self.end_hold()
            await self._look_away()
            raise

    async def _fill_panel(self, conversation: str) -> None:
        panel = await self.office.fresh_panel(self.agent.workspace_id, conversation)
        if self.watched == conversation:
            self.tell(panel)

    async def check_session(self) -> None:
        """Whoever has logged out or was let go since is shown nothing further."""
        await self._still_logged_in()

    async def _still_logged_in(self, frame: client.AgentFrame | None = None) -> bool:
        """Whether the session is still the same agent's; else hangs up. Raises `DatabaseError`."""
        agent = await in_database(agent_for_session, header(self.scope, b"cookie"))
        if agent is not None and (agent.id, agent.workspace_id) == (self.agent.id, self.agent.workspace_id):
            self.agent = agent
            return True
        self.refuse(wire.ErrorCode.BAD_TOKEN, "log in again", frame)
        self.hang_up(wire.CloseCode.LOGIN_AGAIN, "no agent is logged in")
        return False

    async def _renew(self) -> None:
        self._renewed = time.monotonic()
        await self.office.runtime.presence.renew(self.agent.workspace_id, self.agent.id, self.socket_id)

    def left(self) -> None:
        self.connections.passes.drop_agent(self)
        office, agent = self.office, self.agent
        spawn = office.runtime.spawn
        spawn(office.runtime.switchboard.leave(Audience.INBOX, agent.workspace_id, self), "leave inbox")
        spawn(office.runtime.presence.leave(agent.workspace_id, agent.id, self.socket_id), "leave presence")
        for conversation in self._seen:
            spawn(office.attendance.leave(Audience.WATCHERS, conversation, self), "leave")
