"""Fresh, migrated databases for processes under test: copies of one template, on SQLite or PostgreSQL."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
from django.db import connections

from chatsvc.environment import BASE_DIR

_numbers = count(1)


class Databases:
    """Makes databases where `server` or `DATABASE_URL` says: SQLite files in `folder`, or databases of a PostgreSQL.

    Processes may share the folder. The first makes the template there, and collects static files, for all of them.
    """

    def __init__(self, folder: Path, server: str = "") -> None:
        self._folder = folder
        self.static = folder / "static"
        self._server = server or os.environ["DATABASE_URL"]
        self.is_postgres = self._server.startswith("postgres")
        self._template = self._url(f"template_{folder.name.replace('-', '_')}")
        with (folder / "template").open("a+") as made:
            fcntl.flock(made, fcntl.LOCK_EX)
            if os.fstat(made.fileno()).st_size == 0:
                if self.is_postgres:
                    self._execute(f"CREATE DATABASE {_name(self._template)}")
                prepare(DATABASE_URL=self._template, CHATSVC_VAR=str(folder))
                made.write(self._template)

    @contextmanager
    def fresh(self) -> Iterator[str]:
        """The URL of a new database with all migrations and no rows; gone at the end."""
        url = self._url(f"test_{os.getpid()}_{next(_numbers)}")
        if not self.is_postgres:
            shutil.copyfile(_name(self._template), _name(url))
            yield url
            return
        self._execute(f"CREATE DATABASE {_name(url)} TEMPLATE {_name(self._template)}")
        try:
            yield url
        finally:
            self._execute(f"DROP DATABASE {_name(url)} WITH (FORCE)")

    def copy_to(self, path: Path) -> None:
        """The same as a SQLite file at this path, where the template is one."""
        shutil.copyfile(_name(self._template), path)

    def _url(self, name: str) -> str:
        if self.is_postgres:
            return urlunsplit(urlsplit(self._server)._replace(path=f"/{name}"))
        return f"sqlite:///{self._folder / name}.sqlite3"

    def _execute(self, statement: str) -> None:
        with psycopg.connect(self._server, autocommit=True, connect_timeout=10) as connection:
            connection.execute(statement.encode())


def prepare(**variables: str) -> None:
    """What `make run` does before it starts services: catalogs, migrations, static files, demo data if asked."""
    command = [sys.executable, "-m", "chatsvc.embedded.prepare"]
    done = subprocess.run(
        command, cwd=BASE_DIR, env={**os.environ, **variables}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@contextmanager
def django_on(url: str) -> Iterator[None]:
    """Points this process's ORM, in every thread, at another database of the same engine."""
    before = connections.settings["default"]
    options = {name: value for name, value in before["OPTIONS"].items() if name != "pool"}
    _configure({**before, "NAME": _name(url), "OPTIONS": options})
    try:
        yield
    finally:
        _configure(before)


def _configure(settings: dict[str, Any]) -> None:
    connections["default"].close()
    del connections["default"]
    connections.settings["default"] = settings


def _name(url: str) -> str:
    """What Django calls NAME: a database, or a file's absolute path."""
    path = urlsplit(url).path
    return path[1:]
