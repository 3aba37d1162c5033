"""What is checked before anything starts. Each failure is a `SetupError` that says what to do."""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import IO

from chatsvc.embedded.ports import try_bind
from chatsvc.embedded.problems import SetupError
from chatsvc.files import TooFewFiles, raise_limit

SOCKET_PATH_LIMIT_BYTES = 107
SQLITE_NEEDED = (3, 35)


def make_writable(folder: Path) -> None:
    """Creates the folder, private to its owner, and proves that a file can be written there."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(b"x" * 4096)
    except OSError as error:
        reason = os.strerror(error.errno or errno.EIO)
        line = f"Cannot write in {folder} ({reason}): make it yours, or set CHATSVC_VAR to a folder that is."
        raise SetupError(line) from error


def lock(folder: Path) -> IO[str]:
    """Takes the folder's lock for as long as the returned file is open."""
    file = (folder / "lock").open("a+", encoding="utf-8")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.seek(0)
        holder = file.read().strip() or "unknown"
        file.close()
        line = f"chatsvc is already running here (process {holder}): use it, or end it with Ctrl-C first."
        raise SetupError(line) from error
    file.truncate(0)
    file.write(f"{os.getpid()}\n")
    file.flush()
    return file


def check_port(host: str, port: int) -> None:
    try:
        try_bind(host, port)
    except OSError as error:
        raise SetupError(_port_line(host, port, error.errno)) from error


def _port_line(host: str, port: int, code: int | None) -> str:
    if code == errno.EADDRINUSE:
        return (
            f"Port {port} on {host} is in use: end the other program, or set CHATSVC_BIND={host}:{port + 1}."
        )
    if code == errno.EACCES:
        return f"Port {port} needs root's rights: set CHATSVC_BIND={host}:8000 and put a proxy before it."
    return f"Cannot listen on {host}:{port} ({os.strerror(code or errno.EIO)}): set CHATSVC_BIND in .env."


def raise_open_files() -> None:
    """Lifts the soft limit of open files, one a socket, as far as it may go."""
    try:
        raise_limit()
    except TooFewFiles as error:
        raise SetupError(str(error)) from error


def check_sqlite() -> None:
    if sqlite3.sqlite_version_info < SQLITE_NEEDED:
        line = f"Python's SQLite is {sqlite3.sqlite_version}, 3.35 is needed: use a newer Python or DATABASE_URL."
        raise SetupError(line)


def socket_folder(var_dir: Path, runtime_dir: str | None) -> Path:
    """Where Unix sockets go: `var_dir`, or a short private folder when their path would exceed 107 bytes."""
    if len(os.fsencode(var_dir / "redis.sock")) <= SOCKET_PATH_LIMIT_BYTES:
        return var_dir
    digest = sha256(os.fsencode(var_dir)).hexdigest()[:12]
    folder = Path(runtime_dir or tempfile.gettempdir()) / f"chatsvc-{os.getuid()}-{digest}"
    make_writable(folder)
    if folder.stat().st_uid != os.getuid() or folder.stat().st_mode & 0o077:
        raise SetupError(
            f"{folder} belongs to somebody else: remove it, or set CHATSVC_VAR to a shorter path."
        )
    return folder
