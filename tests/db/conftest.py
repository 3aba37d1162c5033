"""A site, and two workspaces with a row of everything. Pages without collected files, passwords hashed cheaply."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from apps.accounts.models import Site, Workspace
from tests.db.admin_world import Corner, corner, logged_in


@pytest.fixture(autouse=True)
def plain_static(settings: Any) -> None:
    plain = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
    settings.STORAGES = {**settings.STORAGES, "staticfiles": plain}
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture
def site() -> Site:
    return Site.objects.create(workspace=Workspace.objects.create(name="Lantern"), name="Lantern")


@pytest.fixture
def ours() -> Corner:
    return corner("ours")


@pytest.fixture
def theirs() -> Corner:
    return corner("theirs")


@pytest.fixture
def boss(ours: Corner) -> Client:
    """An admin agent of `ours`."""
    return logged_in(ours.admin.user)
