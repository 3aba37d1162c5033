"""What a process keeps of its sites, while sites come."""

from __future__ import annotations

import asyncio
import threading

import pytest

from apps.accounts.models import Site, Workspace
from apps.stores.database import in_database
from apps.turns.residents import Residents

pytestmark = pytest.mark.django_db(transaction=True)


class Slow:
    """A resident that takes its time over one site, once."""

    def __init__(self, slow: str) -> None:
        self._slow = slow
        self._loaded: dict[str, int] = {}
        self.begun, self.go_on = threading.Event(), threading.Event()

    def refresh(self, site_id: str, version: int) -> None:
        if site_id == self._slow and not self.begun.is_set():
            self.begun.set()
            assert self.go_on.wait(10)
        self._loaded[site_id] = version

    def loaded_version(self, site_id: str) -> int:
        return self._loaded.get(site_id, 0)

    def forget(self, site_id: str) -> None:
        del self._loaded[site_id]


def new_site() -> str:
    return Site.objects.create(workspace=Workspace.objects.create(name="Lantern"), name="Lantern").pk


async def test_a_site_that_came_while_others_were_loaded_stays_known() -> None:
    slow = Slow(await in_database(new_site))
    residents = Residents((slow,), (), (), ())
    loading = asyncio.create_task(residents.load())
    await asyncio.to_thread(slow.begun.wait, 10)
    newer = await in_database(new_site)
    await residents.ensure(newer)
    slow.go_on.set()
    await loading
    assert residents.knows(newer)
    await in_database(Site.objects.filter(pk=newer).delete)
    await residents.load()
    assert not residents.knows(newer)
