"""`make reset`: clears the data of a checkout. Refuses while it runs; asks first on a terminal. `.env` stays."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from chatsvc.embedded import preflight
from chatsvc.embedded.problems import SetupError
from chatsvc.environment import BASE_DIR, SettingError, read_environment


def main() -> int:
    try:
        return reset(_var_dir())
    except SetupError as error:
        sys.stderr.write(f"{error}\n")
        return 1


def reset(var_dir: Path) -> int:
    """Removes everything in `var_dir`. Raises `SetupError` while a supervisor holds its lock."""
    if not var_dir.exists():
        sys.stdout.write("Nothing to clear.\n")
        return 0
    with preflight.lock(var_dir):
        if (
            sys.stdin.isatty()
            and input(f"Remove all conversations and data in {var_dir}? [y/N] ").lower() != "y"
        ):
            sys.stdout.write("Nothing was removed.\n")
            return 1
        for path in var_dir.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
    sys.stdout.write(f"Cleared {var_dir}.\n")
    return 0


def _var_dir() -> Path:
    try:
        return read_environment().var_dir.resolve()
    except SettingError:
        return BASE_DIR / "var"  # before the first run there is no .env


if __name__ == "__main__":
    sys.exit(main())
