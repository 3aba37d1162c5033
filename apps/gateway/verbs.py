"""What an agent's frame asks of a conversation, as a command of that agent and no other."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TypeAlias, assert_never

from apps.accounts.agents import AgentIdentity
from apps.conversations import commands as c
from apps.wire import client_frames as client

Verb: TypeAlias = client.Send | client.Take | client.HandBack | client.Resolve | client.Reopen


def command_of(frame: Verb, who: AgentIdentity) -> c.Command:
    """Workspace, agent and name come from the session. Raises `FrameError` for a text that cannot be stored."""
    conversation, workspace, at = frame.conversation, who.workspace_id, datetime.now(UTC)
    agent, name = who.id, who.name
    match frame:
        case client.Send():
            return c.AgentMessage(
                conversation=conversation,
                workspace=workspace,
                agent=agent,
                name=name,
                client_id=frame.id,
                text=client.clean_text(frame.text, frame.id, "message.send"),
                at=at,
            )
        case client.Take():
            return c.Take(conversation=conversation, workspace=workspace, agent=agent, name=name, at=at)
        case client.HandBack():
            return c.HandBack(conversation=conversation, workspace=workspace, agent=agent, at=at)
        case client.Resolve():
            return c.Resolve(conversation=conversation, workspace=workspace, agent=agent, name=name, at=at)
        case client.Reopen():
            return c.Reopen(conversation=conversation, workspace=workspace, agent=agent, at=at)
        case _:
            assert_never(frame)
