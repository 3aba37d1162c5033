"""The known providers: every module of this package holds the `QUIRKS` of one. A new provider is a new file."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from django.utils.translation import gettext_lazy as _

from apps.llm.providers.quirks import Quirks

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise as StrPromise

GENERIC = Quirks("generic", "Other")
_FOUND = [import_module(f"{__name__}.{module.name}").QUIRKS for module in pkgutil.iter_modules(__path__)]
_KNOWN: tuple[Quirks, ...] = (*sorted(_FOUND, key=lambda quirks: quirks.label.casefold()), GENERIC)
BY_NAME = {quirks.name: quirks for quirks in _KNOWN}


def choices() -> list[tuple[str, str | StrPromise]]:
    """For the admin: by address, or one of the known ones by hand."""
    by_hand = [(quirks.name, quirks.label) for quirks in _KNOWN if quirks is not GENERIC]
    return [("auto", _("Recognise by address")), *by_hand, (GENERIC.name, _("Other"))]


def quirks_of(dialect: str, base_url: str) -> Quirks:
    """The chosen dialect, or for `auto` the one its address tells; unknown servers are `generic`."""
    if dialect != "auto":
        return BY_NAME.get(dialect, GENERIC)
    parts = urlsplit(base_url)
    host = parts.hostname or ""
    for quirks in _KNOWN:
        if any(host == known or host.endswith(f".{known}") for known in quirks.hosts):
            return quirks
        if quirks.port and parts.port == quirks.port:
            return quirks
    return GENERIC
