"""A cap of the group falls to its partitions: together never more than the cap, and all of it while it can be used."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.congestion.cap_share import needs, share
from proxy.model import Partition

A, B, C = (Partition("campaign", number) for number in range(3))
wanted = st.dictionaries(
    st.builds(Partition, st.sampled_from(["a", "b"]), st.integers(0, 30)),
    st.floats(0, 1e6) | st.just(inf),
    min_size=1,
)


@given(wanted, st.floats(0.1, 1e6), st.integers(1, 8))
def test_the_parts_of_all_replicas_are_the_cap_whoever_owns_what(
    needed: dict[Partition, float], rate: float, replicas: int
) -> None:
    owned = [[at for at in needed if hash(at) % replicas == replica] for replica in range(replicas)]
    assert sum(share(rate, needed, own) for own in owned) == pytest.approx(rate)


def test_what_one_does_not_need_falls_to_those_with_a_backlog() -> None:
    needed = needs({A: 3, B: 9_000, C: 9_000}, {A: 10.0, B: 500.0, C: 10.0})
    assert needed == {A: pytest.approx(11.0), B: inf, C: inf}
    assert [share(100.0, needed, [at]) for at in (A, B, C)] == pytest.approx([11.0, 44.5, 44.5])


def test_who_has_nothing_keeps_a_little_so_that_what_comes_next_does_not_stand() -> None:
    assert 0 < share(100.0, {A: 0.0, B: inf}, [A]) <= 0.5


def test_equal_needs_get_equal_parts_and_one_alone_gets_all() -> None:
    assert [share(90.0, {A: inf, B: inf, C: inf}, [at]) for at in (A, B, C)] == pytest.approx([30.0] * 3)
    assert share(90.0, {A: inf}, [A]) == share(90.0, {}, []) == 90.0


def test_any_lag_is_a_backlog_when_it_is_not_known_what_comes() -> None:
    assert needs({A: 1, B: 0}, {}) == {A: inf, B: 0.0}
