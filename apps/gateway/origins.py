"""Which pages may open a socket."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from django.conf import settings


def header(scope: dict[str, Any], name: bytes) -> str:
    """A header's value, or ""."""
    return next((value.decode("latin-1") for key, value in scope["headers"] if key == name), "")


def own_origin(scope: dict[str, Any]) -> bool:
    """The page is ours (the widget's frame, the dashboard), or no browser sent it at all."""
    return not foreign_origin(scope)


def foreign_origin(scope: dict[str, Any]) -> str:
    """The origin of another's page; "" where it is ours."""
    origin = header(scope, b"origin")
    if origin in settings.CSRF_TRUSTED_ORIGINS or urlsplit(origin).netloc == header(scope, b"host"):
        return ""
    return origin
