"""What an acknowledgement costs: the group-commit writer beside one-row ORM writes. `python -m bench.log`.

A Markdown table on standard output, in less than a minute. SQLite in a folder of its own, and PostgreSQL when
`DATABASE_URL` names one (in a database of its own there). `DURABILITY=full` waits for the disk at every commit.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit, urlunsplit

import psycopg


def main() -> None:
    durability = os.environ.setdefault("DURABILITY", "normal")
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores, DURABILITY={durability}\n")
    print("| database | written by | acknowledged, median ms | P99 ms | messages/s, median (least–most) |")
    print("|---|---|---|---|---|", flush=True)
    server = os.environ.get("DATABASE_URL", "")
    with tempfile.TemporaryDirectory(prefix="chatsvc-bench-") as folder:
        _measure(f"sqlite:///{folder}/bench.sqlite3", folder)
        if server.startswith("postgres"):
            with _new_database(server) as url:
                _measure(url, folder)


def _measure(database_url: str, folder: str) -> None:
    # Django's settings name one database: each has a process of its own.
    variables = {"DATABASE_URL": database_url, "CHATSVC_VAR": folder, "SECRET_KEY": "only-for-the-bench" * 3}
    subprocess.run([sys.executable, "-m", "bench.log_ways"], env={**os.environ, **variables}, check=True)


@contextmanager
def _new_database(server: str) -> Iterator[str]:
    name = f"chatsvc_bench_{os.getpid()}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
        try:
            yield urlunsplit(urlsplit(server)._replace(path=f"/{name}"))
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


if __name__ == "__main__":
    main()
