"""The agents behind session cookies, for sockets, which no middleware has looked at."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from importlib import import_module
from typing import TypeAlias

from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.sessions.models import Session
from django.http import HttpRequest
from django.utils import timezone

from apps.accounts.agents import AgentIdentity, agent_for_user
from apps.accounts.models import Agent

AgentRow: TypeAlias = tuple[object, ...]


def agent_for_session(cookie_header: str) -> AgentIdentity | None:
    """None without a valid session, or when its user is no active agent. Two to three queries."""
    key = session_key(cookie_header)
    if key is None:
        return None
    request = HttpRequest()
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(key)
    return agent_for_user(get_user(request).pk)


def session_key(cookie_header: str) -> str | None:
    """What the session cookie of a request says, unverified."""
    try:
        cookie = SimpleCookie(cookie_header).get(settings.SESSION_COOKIE_NAME)
    except CookieError:
        return None
    return cookie.value if cookie is not None else None


@dataclass(frozen=True, slots=True)
class Standings:
    """What lets agents act, as it is stored, to be compared with an earlier look: equal means that nothing changed."""

    sessions: dict[str, str]  # key -> its sealed content; those that ended are missing
    rosters: dict[str, dict[str, frozenset[AgentRow]]]  # workspace -> agent -> rows, one for each team


def standings(sessions: Collection[str], workspaces: Collection[str]) -> Standings:
    """How these sessions and all agents of these workspaces stand. Two queries."""
    live = Session.objects.filter(pk__in=sessions, expire_date__gt=timezone.now())
    rows = Agent.objects.filter(workspace_id__in=workspaces).values_list(
        "workspace_id", "pk", "name", "role", "active", "user__is_active", "user__password", "teams__name"
    )
    rosters: dict[str, dict[str, set[AgentRow]]] = defaultdict(lambda: defaultdict(set))
    for workspace, agent, *row in rows:
        rosters[workspace][agent].add(tuple(row))
    return Standings(
        sessions=dict(live.values_list("pk", "session_data")),
        rosters={
            workspace: {agent: frozenset(rows) for agent, rows in agents.items()}
            for workspace, agents in rosters.items()
        },
    )
