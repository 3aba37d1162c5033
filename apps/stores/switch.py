"""A field that is on or off, whose column knows what it is by default."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models

if TYPE_CHECKING:
    from django.utils.functional import _StrOrPromise


def switch(
    label: _StrOrPromise, explained: _StrOrPromise, *, on: bool = False
) -> models.BooleanField[bool, bool]:
    """`on` unless somebody chooses otherwise, also in rows of processes of the version before, which do not know it."""
    return models.BooleanField(label, default=on, db_default=on, help_text=explained)
