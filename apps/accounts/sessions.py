"""The agent behind a session cookie, for a socket, which no middleware has looked at."""

from __future__ import annotations

from http.cookies import CookieError, SimpleCookie
from importlib import import_module

from django.conf import settings
from django.contrib.auth import get_user
from django.http import HttpRequest

from apps.accounts.agents import AgentIdentity, agent_for_user


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
