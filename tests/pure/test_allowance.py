"""What somebody may do, counted by several processes that tell each other now and then."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from apps.gateway.allowance import BUCKETS, Allowances, Bound
from apps.stores.addresses import neighbourhood, public_neighbourhood

MIA = Bound("person", "mia", burst=5, a_second=2.0)
SHOP = Bound("workspace", "shop", burst=8, a_second=4.0)


def test_a_burst_passes_and_then_one_an_interval() -> None:
    allowances = Allowances()
    assert [allowances.take((MIA,), 0.0) for _ in range(5)] == [None] * 5
    wait = allowances.take((MIA,), 0.0)
    assert wait is not None
    assert (wait.of, wait.seconds) == ("person", 0.5)
    assert allowances.take((MIA,), 0.5) is None
    assert allowances.take((MIA,), 0.5) is not None


def test_what_one_bound_refuses_costs_the_others_nothing() -> None:
    allowances = Allowances()
    for _ in range(20):
        allowances.take((MIA, SHOP), 0.0)
    assert allowances.to_tell() == {MIA: 5, SHOP: 5}
    ana = Bound("person", "ana", burst=5, a_second=2.0)
    assert [allowances.take((ana, SHOP), 0.0) is None for _ in range(5)] == [True, True, True, False, False]


def test_what_others_took_is_taken_here() -> None:
    allowances = Allowances()
    allowances.take((MIA,), 0.0)
    assert allowances.to_tell() == {MIA: 1}
    allowances.take((MIA,), 0.0)  # on its way to the others when they answer
    allowances.heard([(MIA, 2.0)], 0.0)
    assert allowances.take((MIA,), 0.0) is None
    assert allowances.take((MIA,), 0.0) is not None


def test_memory_is_bounded_and_who_acted_last_is_remembered() -> None:
    allowances = Allowances()
    for _ in range(5):
        allowances.take((MIA,), 0.0)
    for n in range(BUCKETS - 1):
        allowances.take((Bound("person", f"v{n}", 5, 2.0),), 0.0)
    assert allowances.take((MIA,), 0.0) is not None
    for n in range(BUCKETS):
        allowances.take((Bound("person", f"w{n}", 5, 2.0),), 0.0)
    assert allowances.take((MIA,), 0.0) is None


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.floats(0, 0.3, allow_nan=False), st.booleans()),
        min_size=1,
        max_size=200,
    )
)
def test_processes_together_let_pass_what_one_would_and_what_they_could_not_know(
    steps: list[tuple[int, float, bool]],
) -> None:
    """A step: who acts, after how long, and whether that process tells the others behind it."""
    processes = [Allowances() for _ in range(3)]
    now, passed, together, told_at = 0.0, 0, 5.0, 0.0
    waiting = [0, 0, 0]
    for which, after, tells in steps:
        now += after
        if processes[which].take((MIA,), now) is None:
            passed += 1
            waiting[which] += 1
        if tells:
            together = max(-5.0, min(5.0, together + (now - told_at) * 2.0) - waiting[which])
            told_at, waiting[which] = now, 0
            processes[which].to_tell()
            processes[which].heard([(MIA, together)], now)
    # Each process may spend what it believes in before it has heard of the others: a burst, and what came since.
    assert passed <= 3 * (5 + now * 2.0)
    alone = Allowances()
    at, allowed = 0.0, 0
    for _, after, _ in steps:
        at += after
        allowed += alone.take((MIA,), at) is None
    if len({which for which, _, _ in steps}) == 1:
        assert passed <= allowed


def test_an_address_stands_for_its_neighbourhood() -> None:
    assert neighbourhood("2001:4860:1:2:aaaa::1") == neighbourhood("2001:4860:1:2:bbbb::9")
    assert neighbourhood("2001:4860:1:2::1") != neighbourhood("2001:4860:1:3::1")
    assert neighbourhood("::ffff:8.8.8.8") == "8.8.8.8"
    assert public_neighbourhood("8.8.8.8") == "8.8.8.8"
    for inside in (
        "127.0.0.1",
        "10.1.2.3",
        "172.18.0.2",
        "192.168.1.9",
        "::1",
        "fe80::1",
        "fd00::1",
        "",
        "unknown",
    ):
        assert public_neighbourhood(inside) == ""
