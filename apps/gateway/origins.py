"""Which pages may open a socket."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from django.conf import settings

from apps.accounts.sites import site_origins


def header(scope: dict[str, Any], name: bytes) -> str:
    """A header's value, or ""."""
    return next((value.decode("latin-1") for key, value in scope["headers"] if key == name), "")


def own_origin(scope: dict[str, Any]) -> bool:
    """The page is ours (the widget's frame, the dashboard), or no browser sent it at all."""
    origin = header(scope, b"origin")
    if not origin or origin in settings.CSRF_TRUSTED_ORIGINS:
        return True
    return urlsplit(origin).netloc == header(scope, b"host")


def site_allows(site: str, scope: dict[str, Any]) -> bool:
    """The page is on the site's allow-list, for direct use of the protocol. One query."""
    return header(scope, b"origin") in site_origins(site)
