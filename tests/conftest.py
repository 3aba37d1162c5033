"""Fixtures that every folder may use.

`redis_url`   a running Redis for code in this process; the same URL as `settings.REDIS_URL`.
`deployment`  per test module: a fresh migrated database, a Redis and a folder of its own.
`web`         `manage.py serve` on it, ready; a module's tests share it, and one that a test killed is started again.
`web_pair`    the same and a second process on the same database and Redis.
`worker`      a Celery worker on it.
`orm`         this process's ORM on the same database, also in threads: `await asyncio.to_thread(make_site)`.

The fakes of a model endpoint and of a shop are fixtures too: `tests/fakes/fixtures.py`.
Processes read no `.env`. Databases are on SQLite, or on PostgreSQL where `DATABASE_URL` names a server.
The sockets' client is `tests.support.client.connected`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from pytest_django import DjangoDbBlocker

from tests.environment import RUN_DIR, VAR_DIR
from tests.fakes.fixtures import plain_upstream, shop, upstream
from tests.services import private_folder, running_redis
from tests.support.database import Databases, django_on
from tests.support.processes import Deployment, Web, Worker, ended_after

__all__ = ["plain_upstream", "shop", "upstream"]


# A file stays in one worker: what takes longest begins first, else a worker sits alone with it in the end.
_LONGEST = ("test_worker.py", "test_task_deaths.py", "test_journey.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.name not in _LONGEST)


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    url = os.environ["REDIS_URL"]
    if url != f"unix://{VAR_DIR / 'redis.sock'}":
        yield url  # given from outside
        return
    with running_redis(VAR_DIR):
        yield url


@pytest.fixture(scope="session")
def databases() -> Databases:
    return Databases(RUN_DIR)


@pytest.fixture(scope="module")
def deployment(databases: Databases) -> Iterator[Deployment]:
    with (
        private_folder("chatsvc-var-") as folder,
        databases.fresh() as database_url,
        running_redis(folder) as url,
    ):
        (folder / "static").symlink_to(databases.static)
        yield Deployment(database_url, url, folder)


@pytest.fixture(scope="module")
def _web_process(deployment: Deployment) -> Iterator[Web]:
    process = Web(deployment)
    with ended_after(process):
        yield process


@pytest.fixture(scope="module")
def _second_web_process(deployment: Deployment) -> Iterator[Web]:
    process = Web(deployment, "second-web")
    with ended_after(process):
        yield process


@pytest.fixture(scope="module")
def _worker_process(deployment: Deployment) -> Iterator[Worker]:
    process = Worker(deployment)
    with ended_after(process):
        yield process


@pytest.fixture
def web(_web_process: Web) -> Web:
    _web_process.revive()
    return _web_process


@pytest.fixture
def web_pair(web: Web, _second_web_process: Web) -> tuple[Web, Web]:
    _second_web_process.revive()
    return web, _second_web_process


@pytest.fixture
def worker(_worker_process: Worker) -> Worker:
    _worker_process.revive()
    return _worker_process


@pytest.fixture
def orm(deployment: Deployment, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    with ExitStack() as stack:
        stack.enter_context(django_db_blocker.unblock())
        stack.enter_context(django_on(deployment.database_url))
        yield
