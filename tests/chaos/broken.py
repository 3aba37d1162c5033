"""The product with one promise taken out, to see the judge notice: `python -m tests.chaos.broken WAY serve …`.

Nothing of the product knows of this: the parts are replaced in the process that is started here.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatsvc.settings")

import django

django.setup()

from django.core.management import execute_from_command_line  # noqa: E402 - the models need the setup
from django.db import InterfaceError, OperationalError, connection, transaction  # noqa: E402

from apps.conversations import decisions, log, selectors  # noqa: E402
from apps.turns.between import buffer  # noqa: E402
from apps.wire.server_frames import Page  # noqa: E402


class Way(StrEnum):
    NO_GAP_FETCH = "no-gap-fetch"
    NO_FENCE = "no-fence"
    PUBLISH_BEFORE_COMMIT = "publish-before-commit"


def without_gaps() -> None:
    """Whoever comes back, or asks for what is missing, is told that nothing is."""

    def nothing_missed(snapshot: selectors.Snapshot, after: int) -> Page:
        return selectors.up_to_date(snapshot)

    selectors.catch_up = nothing_missed


def without_fence() -> None:
    """A process that was taken for dead goes on where it was: whoever ever had a turn may write it and end it."""
    for name in ("_BEGIN", "_APPEND", "_END"):
        lines = getattr(buffer, name).splitlines()
        setattr(buffer, name, "\n".join(line for line in lines if "tonumber(fence) >" not in line))
    finish: Callable[..., Any] = decisions._finish_turn

    def finish_whatever(state: Any, command: Any, stored: Any) -> Any:
        if stored is None and state.turn != command.turn:
            state.turn, state.turn_part, state.turn_place = command.turn, command.part, state.last_seq + 1
        return finish(state, replace(command, fence=state.fence), stored)

    decisions._finish_turn = finish_whatever


def publishing_before_commit() -> None:
    """Acknowledges and tells everybody first, and stores it 50 ms later, if it still can."""

    def write(self: Any, batch: list[Any]) -> None:
        try:
            with transaction.atomic():
                log._commit(batch)
                self._settle(list(batch))
                batch.clear()
                time.sleep(0.05)
        except (OperationalError, InterfaceError):
            connection.close()

    log.Log._write = write  # type: ignore[assignment,method-assign]


BREAK = {
    Way.NO_GAP_FETCH: without_gaps,
    Way.NO_FENCE: without_fence,
    Way.PUBLISH_BEFORE_COMMIT: publishing_before_commit,
}


if __name__ == "__main__":
    BREAK[Way(sys.argv[1])]()
    execute_from_command_line(["manage.py", *sys.argv[2:]])
