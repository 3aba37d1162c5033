"""Pages are rendered without collected static files, and passwords hashed cheaply."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture(autouse=True)
def plain_static(settings: Any) -> None:
    plain = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
    settings.STORAGES = {**settings.STORAGES, "staticfiles": plain}
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
