"""The one action a model may choose: bringing a human in. As every API offers it, and as it comes back. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from apps.engine.events import HandoffCall

HANDOFF = "handoff"
DESCRIPTION = (
    "Bring a human colleague into this conversation. Use it when the customer asks for a "
    "person, or when you cannot help with what you were given."
)


def parameters(teams: tuple[str, ...]) -> dict[str, Any]:
    """The action's JSON schema: the same bytes for the same teams."""
    team: dict[str, Any] = {
        "type": "string",
        "description": "The team that fits best; leave out when unsure.",
    }
    if teams:
        team["enum"] = list(teams)
    reason = {"type": "string", "description": "One sentence for the colleague: what is wanted."}
    return {"type": "object", "properties": {"reason": reason, "team": team}, "required": ["reason"]}


class _Arguments(msgspec.Struct):
    reason: str = ""
    team: str | None = None


_arguments = msgspec.json.Decoder(_Arguments)


def call_of(arguments: str, teams: tuple[str, ...]) -> HandoffCall:
    """The wish for a human counts even when its details are garbled."""
    try:
        call = _arguments.decode(arguments or "{}")
    except msgspec.MsgspecError:
        call = _Arguments()
    known = {team.casefold(): team for team in teams}
    return HandoffCall(call.reason[:500], known.get((call.team or "").casefold(), ""))
