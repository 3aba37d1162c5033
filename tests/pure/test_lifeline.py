"""When a free lock means that its process is dead."""

from __future__ import annotations

from apps.turns.rescue.lifeline import LOOKS_IN_A_ROW, Watch


def looks(watch: Watch, *held: set[str], processes: tuple[str, ...] = ("a", "b")) -> list[str]:
    """Who was found dead over these looks."""
    return [process for found in held for process in watch.saw(processes, found)[0]]


def test_a_lock_that_stays_free_is_a_dead_processs_and_is_told_once() -> None:
    both, one = {"a", "b"}, {"a"}
    assert looks(Watch(), both, *[one] * (LOOKS_IN_A_ROW - 1)) == []
    assert looks(Watch(), both, *[one] * 10) == ["b"]


def test_a_process_that_takes_its_lock_again_lives() -> None:
    both, one = {"a", "b"}, {"a"}
    almost = [one] * (LOOKS_IN_A_ROW - 1)
    assert looks(Watch(), both, *almost, both, *almost, both) == []


def test_a_lock_that_was_never_seen_held_says_nothing() -> None:
    assert looks(Watch(), *[{"a"}] * 10) == []


def test_a_process_that_gave_up_its_lease_has_left() -> None:
    watch = Watch()
    watch.saw(("a", "b"), {"a", "b"})
    assert watch.saw(("a",), {"a"}) == ([], ["b"])
    assert watch.saw(("a",), {"a"}) == ([], [])
