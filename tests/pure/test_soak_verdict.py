"""What a soak takes for a leak."""

from __future__ import annotations

import pytest

from bench.soak.verdict import judge, slope_per_min


def leaks(figure: str, before: float, *rest: float) -> bool:
    """Whether the figure leaks, looked at once a minute from the base line on."""
    looks = [(float(minute), {figure: value}) for minute, value in enumerate(rest)]
    [verdict] = judge({figure: before}, looks, [])
    return verdict.leaks


@pytest.mark.parametrize("figure", ["authenticated clients", "audiences listened to", "lanes busy"])
def test_what_a_client_holds_is_gone_with_it(figure: str) -> None:
    assert not leaks(figure, 2, 40, 50, 45, 2)
    assert leaks(figure, 2, 2, 2, 2, 3)


def test_pools_may_open_what_a_peak_needs_and_no_more() -> None:
    assert not leaks("web: file descriptors", 60, 90, 100, 95, 98)
    assert leaks("web: file descriptors", 60, 90, 100, 110, 120)


def test_memory_leaks_by_its_slope_and_its_end() -> None:
    flat = [400, 403, 399, 402, 401, 404]
    assert not leaks("web: heap in use MiB", 300, *flat)
    assert not leaks("web: heap in use MiB", 300, 400, 420, 401, 400, 402, 401)
    assert leaks("web: heap in use MiB", 300, *(400 + 5 * minute for minute in range(6)))
    assert not leaks("web: RSS MiB", 300, *(400 + 5 * minute for minute in range(6)))
    assert leaks("web: RSS MiB", 300, *(400 + 10 * minute for minute in range(6)))


def test_what_bounded_caches_have_taken_in_is_no_leak() -> None:
    objects, kept = "web: Python objects, thousands", "contexts MiB"
    filling = [(float(n), {objects: 2_000.0 + 15 * n, kept: 4.0 + n}) for n in range(6)]
    growing = [(float(n), {objects: 2_000.0 + 40 * n, kept: 4.0 + n}) for n in range(6)]
    idle = [(float(n), {objects: 2_000.0 + 15 * n, kept: 4.0}) for n in range(6)]
    said = [judge({}, looks, [])[0].leaks for looks in (filling, growing, idle)]
    assert said == [False, True, True]


def test_a_key_without_an_end_may_not_stay() -> None:
    assert not leaks("Redis keys without an end", 3, 4, 5, 6, 4)
    assert leaks("Redis keys without an end", 3, 4, 5, 6, 7)
    assert not leaks("Redis keys live", 0, 100, 200, 300, 400)


def test_one_odd_look_does_not_bend_the_slope() -> None:
    assert slope_per_min([(0, 10), (1, 11), (2, 90), (3, 13), (4, 14)]) == 1.0
