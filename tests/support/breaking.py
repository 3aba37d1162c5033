"""Ways to break what processes under test stand on: a Redis of one's own to kill, and a lock on the whole database."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

from chatsvc.embedded.redis_server import answers, find_redis, redis_command
from tests.services import init_postgres
from tests.support.processes import RunningProcess


class Redis(RunningProcess):
    """A Redis of a test's own, ready. `url` stays the same over restarts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._socket = folder / "breakable.sock"
        self.url = f"unix://{self._socket}"
        command = redis_command(find_redis(), folder, self._socket)
        super().__init__(list(command), {}, folder / "breakable-redis.log")
        self.wait_ready()

    def wait_ready(self) -> None:
        self.wait_until(lambda: answers(self._socket))

    def lose_everything(self) -> None:
        """kill -9, and a start with no data. Call it on the main thread, as `start`."""
        self.kill()
        shutil.rmtree(self._folder / "appendonlydir")
        self.start()
        self.wait_ready()

    @contextmanager
    def silent(self) -> Iterator[None]:
        """It takes connections and commands and answers none; afterwards it goes on with all of them."""
        os.kill(self.process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.process.pid, signal.SIGCONT)


class Postgres(RunningProcess):
    """A PostgreSQL of a test's own, with its log synced, so that a kill loses nothing that was committed."""

    def __init__(self, folder: Path) -> None:
        self._cluster = init_postgres(folder)
        self.url = self._cluster.url
        super().__init__(list(self._cluster.command), {}, folder / "postgres.log", user=self._cluster.user)
        self.wait_ready()

    def wait_ready(self) -> None:
        self.wait_until(lambda: self.running and self._cluster.says_ready())

    def end_sessions(self) -> None:
        """Fast shutdown: every session is ended, every transaction rolled back."""
        self.signal(signal.SIGINT)
        self.process.wait(20)


@contextmanager
def locked_database(url: str) -> Iterator[None]:
    """Somebody outside holds a lock that no write passes; on PostgreSQL no read of conversations either."""
    if url.startswith("postgres"):
        with psycopg.connect(url, connect_timeout=10, options="-c lock_timeout=10s") as connection:
            connection.execute("LOCK TABLE conversations_conversation IN ACCESS EXCLUSIVE MODE")
            yield
        return
    file = sqlite3.connect(urlsplit(url).path[1:], isolation_level=None, check_same_thread=False)
    try:
        file.execute("BEGIN EXCLUSIVE")
        yield
    finally:
        file.close()


@contextmanager
def frozen_database(url: str) -> Iterator[None]:
    """The database says nothing any more: on PostgreSQL to no connection it has, on SQLite to no writer."""
    if not url.startswith("postgres"):
        with locked_database(url):
            yield
        return
    with psycopg.connect(url, connect_timeout=10) as connection:
        # Those of the leader that may run in parallel are not among them, nor is this one.
        sessions = connection.execute(_SESSIONS).fetchall()
        for (pid,) in sessions:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for (pid,) in sessions:
                os.kill(pid, signal.SIGCONT)


_SESSIONS = (
    "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    " AND backend_type = 'client backend'"
)


@contextmanager
def full_disk(url: str, writer: RunningProcess) -> Iterator[None]:
    """What `writer` says finds no room any more."""
    if url.startswith("postgres"):
        with psycopg.connect(url, connect_timeout=10, autocommit=True) as connection:
            connection.execute(_NO_ROOM)
            try:
                yield
            finally:
                connection.execute("DROP FUNCTION no_room CASCADE")
        return
    before = resource.prlimit(writer.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(writer.process.pid, resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.prlimit(writer.process.pid, resource.RLIMIT_FSIZE, before)


# As PostgreSQL itself says it where a file cannot grow. What finds room in the pages that are there it takes all the
# same, as the renewal of a lease.
_NO_ROOM = """
CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = 'disk_full'; END $$;
CREATE TRIGGER no_room BEFORE INSERT ON conversations_message EXECUTE FUNCTION no_room();
"""


def end_sessions(url: str) -> None:
    """Every connection of this PostgreSQL database is ended, as by its restart."""
    with psycopg.connect(url, connect_timeout=10, autocommit=True) as connection:
        for session in connection.execute(_SESSIONS).fetchall():
            connection.execute("SELECT pg_terminate_backend(%s)", session)
