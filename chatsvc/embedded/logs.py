"""Log files of the children: bounded, and read along for what a person should see."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

LIMIT_BYTES = 20 * 1024 * 1024
TAIL_LINES = 15
_RECORD = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+ (?P<level>[A-Z]+) ")
_PROBLEMS = ("WARNING", "ERROR", "CRITICAL")


class Log:
    """One child's log file. Not shared: one reader, one writing child."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.path.touch(mode=0o600)
        self._read_upto = path.stat().st_size
        self._in_problem = False

    def problems(self) -> Iterator[str]:
        """Lines written since the last call that belong to a warning, an error or a traceback."""
        with self.path.open("rb") as file:
            file.seek(self._read_upto)
            fresh = file.read()
        whole = fresh[: fresh.rfind(b"\n") + 1]
        self._read_upto += len(whole)
        for line in whole.decode(errors="replace").splitlines():
            if record := _RECORD.match(line):
                self._in_problem = record["level"] in _PROBLEMS
            if self._in_problem:
                yield line
        self._bound()

    def tail(self) -> str:
        """See `tail_of`."""
        return tail_of(self.path)

    def _bound(self) -> None:
        # The child appends, so that truncating under it is safe; what it writes in between is lost.
        if self._read_upto > LIMIT_BYTES:
            shutil.copyfile(self.path, self.path.with_suffix(".log.1"))
            with self.path.open("r+b") as file:
                file.truncate(0)
            self._read_upto = 0


def tail_of(path: Path) -> str:
    """The last lines of a log, for the person who reads why something did not start."""
    return "\n".join(path.read_text(encoding="utf-8", errors="replace").splitlines()[-TAIL_LINES:])
