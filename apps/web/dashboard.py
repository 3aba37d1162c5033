"""The agents' pages: dashboard shell, log-in, log-out. The dashboard itself lives behind `/ws/agent`."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache, wraps
from http import HTTPStatus
from typing import Any, TypeAlias

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.utils.decorators import method_decorator
from django.utils.translation import get_language
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from apps.accounts.login import PacedLogin
from apps.accounts.models import Agent
from apps.engine.languages import Language, language_of
from apps.web.policy import SELF, content_security_policy

View: TypeAlias = Callable[..., HttpResponseBase]
Words: TypeAlias = dict[str, dict[str, Any]]

SCRIPTS = settings.BASE_DIR / "static" / "js"
# `theme.js` comes before the first paint, a shared line is for customers; the others where WebSockets fail.
NOT_AT_ONCE = {
    "theme.js",
    "event-reader.js",
    "fallback.js",
    "fetch-stream.js",
    "http-line.js",
    "hub.js",
    "locks.js",
    "long-poll.js",
    "one-held.js",
    "posts.js",
    "shared-line.js",
}


def strict_policy(view: View) -> View:
    """Lets the page load and call nothing but this origin, run no inline code, and be framed by nobody."""

    @wraps(view)
    def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        response = view(request, *args, **kwargs)
        response["Content-Security-Policy"] = content_security_policy(request, forms=SELF)
        return response

    return wrapped


@require_GET
@never_cache
@login_required
@strict_policy
def dashboard(request: HttpRequest) -> HttpResponse:
    """The dashboard's shell. A user who is no active agent is told so and by whom it can be changed. One query."""
    agent = Agent.objects.filter(user=request.user.pk, active=True).select_related("workspace").first()
    if agent is None:
        return _no_agent(request)
    return render(request, "dashboard/shell.html", {**_context(), "agent": agent, "modules": modules()})


@method_decorator([never_cache, strict_policy], name="dispatch")
class Login(LoginView):
    """Log-in of agents and administrators; a wrong name and a wrong password read the same."""

    template_name = "dashboard/login.html"
    authentication_form = PacedLogin
    redirect_authenticated_user = True

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        """The form again; 429 and `Retry-After` where the attempt came too soon to be judged."""
        response = super().form_invalid(form)
        if isinstance(form, PacedLogin) and form.wait_s:
            response.status_code = HTTPStatus.TOO_MANY_REQUESTS
            response["Retry-After"] = str(form.wait_s)
        return response

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return {**super().get_context_data(**kwargs), **_context()}


class Logout(LogoutView):
    """Ends the session. POST only."""

    http_method_names = ["post", "options"]


def _no_agent(request: HttpRequest) -> HttpResponse:
    context = _context()
    body: str = context["words"]["no_agent"]["body"]
    context["explanation"] = body.replace("{user}", request.user.get_username())
    return render(request, "dashboard/no_agent.html", context, status=403)


@cache
def catalog(language: str) -> Words:
    """The words of the agents' pages, shared with the scripts. Read once a process."""
    words: Words = json.loads(
        (SCRIPTS / "dashboard" / "locale" / f"{language}.json").read_text(encoding="utf-8")
    )
    return words


@cache
def modules() -> tuple[str, ...]:
    """The scripts that the page asks for at once, instead of one level of imports after the other.

    Not those that are imported only where they are needed.
    """
    files = sorted([*SCRIPTS.glob("wire/*.js"), *SCRIPTS.glob("dashboard/*.js")])
    return tuple(f"js/{file.parent.name}/{file.name}" for file in files if file.name not in NOT_AT_ONCE)


def _context() -> dict[str, Any]:
    language = "zh-hans" if language_of(get_language() or "") is Language.CHINESE else "en"
    return {
        "words": catalog(language),
        "language": language,
        "catalog_path": f"js/dashboard/locale/{language}.json",
    }
