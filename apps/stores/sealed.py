"""A text field whose value is encrypted at rest with a key derived from `SECRET_KEY`."""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING, Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.db import models

if TYPE_CHECKING:
    _Text = models.TextField[str, str]
else:
    _Text = models.TextField


class SealedText(_Text):
    """Stores a secret encrypted; reads give the plain text, or "" when no current key opens it.

    Rotation: add the old `SECRET_KEY` to `SECRET_KEY_FALLBACKS`, then save each row once.
    """

    def get_prep_value(self, value: Any) -> Any:
        return _keys().encrypt(value.encode()).decode() if value else ""

    def from_db_value(self, value: str | None, *_: object) -> str:
        if not value:
            return ""
        try:
            return _keys().decrypt(value.encode()).decode()
        except InvalidToken:
            return ""


def _keys() -> MultiFernet:
    secrets = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    return MultiFernet([Fernet(_derived(secret)) for secret in secrets])


def _derived(secret: str | bytes) -> bytes:
    raw = secret.encode() if isinstance(secret, str) else secret
    return base64.urlsafe_b64encode(hashlib.blake2b(raw, digest_size=32, person=b"chatsvc-seal").digest())
