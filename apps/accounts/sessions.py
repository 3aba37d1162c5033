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
    try:
        cookie = SimpleCookie(cookie_header).get(settings.SESSION_COOKIE_NAME)
    except CookieError:
        return None
    if cookie is None:
        return None
    request = HttpRequest()
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(cookie.value)
    return agent_for_user(get_user(request).pk)
