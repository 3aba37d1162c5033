"""What `make run` checks and writes before it starts anything, and the line a person reads when it cannot."""

from __future__ import annotations

import os
import re
import resource
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from chatsvc.embedded import preflight, reset
from chatsvc.embedded.demo_shop import ensure_demo_shop, read_demo_shop
from chatsvc.embedded.env_file import ensure_env_file
from chatsvc.embedded.logs import LIMIT_BYTES, Log
from chatsvc.embedded.ports import free_port
from chatsvc.embedded.problems import SetupError
from chatsvc.environment import BASE_DIR, SettingError, read_environment

FIND_PYTHON = BASE_DIR / "chatsvc" / "embedded" / "find_python.sh"


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_the_env_file_is_private_and_its_secret_random(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    assert ensure_env_file(first)
    assert ensure_env_file(second)
    assert stat.S_IMODE(first.stat().st_mode) == 0o600
    secrets = [re.search(r"^SECRET_KEY=(.+)$", path.read_text(), re.MULTILINE) for path in (first, second)]
    assert all(found and len(found[1]) >= 32 for found in secrets)
    assert first.read_text() != second.read_text()


def test_an_existing_env_file_is_kept(tmp_path: Path) -> None:
    path = tmp_path / ".env"
    path.write_text("SECRET_KEY=mine\n")
    assert not ensure_env_file(path)
    assert path.read_text() == "SECRET_KEY=mine\n"


def test_the_env_file_names_every_setting_and_reads_back_as_the_defaults(tmp_path: Path) -> None:
    path = tmp_path / ".env"
    ensure_env_file(path)
    pairs = dict(
        line.split("=", 1) for line in path.read_text().splitlines() if line and not line.startswith("#")
    )
    assert set(pairs) == {
        *(
            "SECRET_KEY",
            "CHATSVC_DEMO",
            "CHATSVC_BIND",
            "ALLOWED_HOSTS",
            "TRUSTED_ORIGINS",
            "BEHIND_TLS_PROXY",
        ),
        *(
            "DATABASE_URL",
            "REDIS_URL",
            "LLM_BASE_URL",
            "LLM_API_KEY",
            "LLM_MODEL",
            "LLM_CA_FILE",
            "DURABILITY",
        ),
        *("MAIL_HOST", "MAIL_PORT", "MAIL_USER", "MAIL_PASSWORD", "MAIL_FROM"),
    }
    written, bare = (
        read_environment(pairs),
        read_environment({"SECRET_KEY": pairs["SECRET_KEY"], "CHATSVC_DEMO": "1"}),
    )
    assert written == bare


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("CHATSVC_DEMO", "yes", "CHATSVC_DEMO is 'yes': write 0 or 1"),
        ("DURABILITY", "high", "DURABILITY is 'high': write normal or full"),
        ("MAIL_PORT", "0", "MAIL_PORT is '0': write a port, 1 to 65535"),
        ("CHATSVC_BIND", "8000", "write HOST:PORT"),
        ("SECRET_KEY", "short", "shorter than 32 characters"),
    ],
)
def test_a_setting_out_of_range_is_named_with_what_to_write(name: str, value: str, told: str) -> None:
    with pytest.raises(SettingError) as refused:
        read_environment({"SECRET_KEY": "x" * 32, name: value})
    assert told in str(refused.value)


def test_an_env_file_that_cannot_be_written_says_where(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"Cannot write .*missing"):
        ensure_env_file(tmp_path / "missing" / ".env")


def test_a_folder_that_cannot_be_written_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SetupError, match=r"Cannot write in .*set CHATSVC_VAR"):
        preflight.make_writable(tmp_path / "file" / "var")


def test_a_taken_port_says_what_to_set(taken_port: int) -> None:
    with pytest.raises(
        SetupError, match=rf"Port {taken_port} .* in use: .*CHATSVC_BIND=127.0.0.1:{taken_port + 1}"
    ):
        preflight.check_port("127.0.0.1", taken_port)


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(SetupError, match=r"Cannot listen on 192\.0\.2\.1"):
        preflight.check_port("192.0.2.1", free_port())


def test_a_second_instance_learns_who_is_running(tmp_path: Path) -> None:
    with (
        preflight.lock(tmp_path),
        pytest.raises(SetupError, match=rf"already running here \(process {os.getpid()}\)"),
    ):
        preflight.lock(tmp_path)
    with preflight.lock(tmp_path):
        pass


def test_too_few_open_files_say_what_to_raise() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    few = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256));"
    code = f"{few} from chatsvc.embedded.preflight import raise_open_files; raise_open_files()"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=BASE_DIR, check=False
    )
    assert "Only 256 open files are allowed, 1024 are needed" in done.stderr
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == before


def test_a_socket_path_that_is_too_long_moves_to_a_private_short_folder(tmp_path: Path) -> None:
    deep = tmp_path / ("deep" * 30)
    folder = preflight.socket_folder(deep, str(tmp_path))
    assert folder.parent == tmp_path
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert preflight.socket_folder(deep, str(tmp_path)) == folder
    assert preflight.socket_folder(Path("/short"), str(tmp_path)) == Path("/short")


def test_a_short_folder_of_somebody_else_is_refused(tmp_path: Path) -> None:
    deep = tmp_path / ("deep" * 30)
    preflight.socket_folder(deep, str(tmp_path)).chmod(0o777)
    with pytest.raises(SetupError, match="belongs to somebody else"):
        preflight.socket_folder(deep, str(tmp_path))


def test_reset_clears_everything_and_refuses_while_running(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").touch()
    with preflight.lock(tmp_path), pytest.raises(SetupError, match="already running"):
        reset.reset(tmp_path)
    assert (tmp_path / "folder" / "file").exists()
    assert reset.reset(tmp_path) == 0
    assert list(tmp_path.iterdir()) == []


def test_the_demo_shop_keeps_its_key_and_leaves_a_taken_port(tmp_path: Path, taken_port: int) -> None:
    first = ensure_demo_shop(tmp_path)
    assert ensure_demo_shop(tmp_path) == first == read_demo_shop(tmp_path)
    path = tmp_path / "demo-shop.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_text(path.read_text().replace(str(first.port), str(taken_port)))
    moved = ensure_demo_shop(tmp_path)
    assert moved.key == first.key
    assert moved.port != taken_port


def test_an_old_python_gets_one_line(tmp_path: Path) -> None:
    for name in ("python", "python3"):
        fake = tmp_path / name
        fake.write_text('#!/bin/sh\n[ "$1" = -V ] && echo "Python 3.8.1" && exit\nexit 1\n')
        fake.chmod(0o755)
    done = subprocess.run(
        ["/bin/sh", FIND_PYTHON], env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith(
        "chatsvc needs Python 3.11, 3.12 or 3.13 and found Python 3.8.1: install one"
    )
    assert done.stderr.count("\n") == 1


def test_problems_are_read_with_their_tracebacks_and_only_once(tmp_path: Path) -> None:
    path = tmp_path / "web.log"
    path.write_text("2026-01-02 03:04:05,678 ERROR before the start\n")
    log = Log(path)
    stamp = "2026-01-02 03:04:05,678"
    with path.open("a") as file:
        file.write(
            f"{stamp} INFO all is well\n{stamp} ERROR it broke\nTraceback …\n{stamp} INFO again\nunfini"
        )
    assert list(log.problems()) == [f"{stamp} ERROR it broke", "Traceback …"]
    assert list(log.problems()) == []


def test_a_log_does_not_grow_without_bound(tmp_path: Path) -> None:
    path = tmp_path / "web.log"
    path.write_bytes(b"x" * LIMIT_BYTES + b"\n")
    log = Log(path)
    assert list(log.problems()) == []
    assert path.stat().st_size == 0
    assert (tmp_path / "web.log.1").stat().st_size == LIMIT_BYTES + 1
