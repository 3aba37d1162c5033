"""When a Celery worker takes itself for stuck."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from chatsvc.worker import HANGING_S, LOOK_INTERVAL_S, STUCK_S, Look, Watch

LOOKS = int(max(STUCK_S, HANGING_S) / LOOK_INTERVAL_S) + 5
HELD = frozenset({"task"})


def judged(looks: Iterable[tuple[float, int | None, int, frozenset[str]]]) -> list[str]:
    watch = Watch()
    return [watch.stuck(Look(at_s, waiting, received, held)) for at_s, waiting, received, held in looks]


def times(count: int = LOOKS) -> list[float]:
    return [1000 + n * LOOK_INTERVAL_S for n in range(count)]


def test_one_that_stands_idle_beside_waiting_tasks_is_stuck() -> None:
    said = judged((at_s, 3, 7, frozenset()) for at_s in times())
    first = next(at_s for at_s, why in zip(times(), said, strict=True) if why)
    assert STUCK_S <= first - 1000 <= STUCK_S + 2 * LOOK_INTERVAL_S
    assert next(filter(None, said)) == "3 tasks wait, and it takes none"


@pytest.mark.parametrize(
    "looks",
    [
        [(at_s, 0, 7, frozenset()) for at_s in times()],
        [(at_s, None, 7, frozenset()) for at_s in times()],
        [(at_s, 3, n, frozenset()) for n, at_s in enumerate(times())],
        [(at_s, 1000 - n, 7, frozenset()) for n, at_s in enumerate(times())],
        [(at_s, 3, 7, frozenset({str(n // 50)})) for n, at_s in enumerate(times())],
        [(at_s * 20, 3, 7, HELD) for at_s in times()],
    ],
    ids=["nothing waits", "no broker", "it takes tasks", "it drops what expired", "it is busy", "it slept"],
)
def test_one_that_works_or_has_no_work_is_not(
    looks: list[tuple[float, int | None, int, frozenset[str]]],
) -> None:
    assert not any(judged(looks))


def test_one_that_holds_a_task_beyond_every_limit_is_stuck() -> None:
    assert judged((at_s, 0, 7, HELD) for at_s in times())[-1].startswith("a task has run for 30")
