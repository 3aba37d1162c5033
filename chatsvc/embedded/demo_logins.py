"""The demo's log-ins: made by the seed, shown by `make run`, kept in `var/` for their owner alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

_FILE = "demo-logins.json"


def keep_demo_logins(var_dir: Path, made: Mapping[str, str]) -> None:
    """Adds passwords by log-in name to those kept."""
    path = var_dir / _FILE
    known = read_demo_logins(var_dir)
    path.touch(mode=0o600)
    path.chmod(0o600)
    path.write_text(json.dumps(known | dict(made), indent=2), encoding="utf-8")


def read_demo_logins(var_dir: Path) -> dict[str, str]:
    """Passwords by log-in name; empty before the first demo."""
    try:
        read = json.loads((var_dir / _FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return {str(name): str(password) for name, password in read.items()}
