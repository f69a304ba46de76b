"""What came: what was done with and what is left, however much was read."""

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from proxy.tuning.arrivals import arrivals
from proxy.tuning.recording import Recording

Make = Callable[..., dict[str, Any]]


def test_what_came_is_what_was_done_and_what_the_lag_grew_by(interval: Make) -> None:
    records = [interval(at, confirmed=10, received=30, received_bytes=6_000, lag=20 * at) for at in range(1, 11)]
    came = arrivals(Recording.of(records), "P1")
    assert came is not None
    assert came.rates[1:] == (30.0,) * 9
    assert came.size == 200


def test_dead_letters_came_too_and_what_is_ahead_is_not_left(interval: Make) -> None:
    records = [
        interval(at, confirmed=6, dead_lettered={"expired": 4}, lag=10 + at % 2 * 5, ahead=at % 2 * 5)
        for at in range(1, 11)
    ]
    came = arrivals(Recording.of(records), "P1")
    assert came is not None
    assert came.rates[1:] == (10.0,) * 9


def test_a_lag_that_was_not_asked_anew_counts_for_nothing(interval: Make) -> None:
    records = [
        interval(0.3 * tick, interval_s=0.3, confirmed=15, lag=120 * (tick // 4)) for tick in range(1, 41)
    ]  # asked every 1.2 s, recorded four times
    came = arrivals(Recording.of(records), "P1")
    assert came is not None
    assert [round(rate) for rate in came.rates[2:]] == [150] * (len(came.rates) - 2)


def test_what_lay_in_the_log_for_long_is_a_backlog(interval: Make) -> None:
    records = [interval(at, confirmed=10, lag=5_000 - 10 * at, lag_age_s=90.0) for at in range(1, 11)]
    came = arrivals(Recording.of(records), "P1")
    assert came is not None
    assert (came.backlog, came.backlog_age, sum(came.rates)) == (5_000, 90.0, 0.0)


def test_what_one_replica_leaves_to_another_came_once(interval: Make) -> None:
    first = [interval(at, instance="one", confirmed=10, lag=1_000) for at in range(1, 11)]
    second = [interval(at, instance="two", confirmed=10, lag=1_000) for at in range(11, 21)]
    came = arrivals(Recording.of(first + second), "P1")
    assert came is not None
    assert abs(came.backlog + sum(came.rates) - 1_200) < 20


def test_nothing_is_known_of_a_class_whose_lag_never_was(interval: Make) -> None:
    assert arrivals(Recording.of([interval(at, lag=None) for at in range(1, 11)]), "P1") is None


@given(st.lists(st.tuples(st.integers(0, 500), st.integers(0, 500)), min_size=20, max_size=40))
def test_all_that_came_is_counted_once_whatever_was_held_back(seconds: list[tuple[int, int]]) -> None:
    left, records, total = 0, [], 0
    for at, (new, able) in enumerate(seconds, start=1):
        done = min(left + new, able)
        left += new - done
        total += new
        records.append(
            {"kind": "class", "instance": "one", "at_ms": 1000 * at, "interval_s": 1.0, "class": "P1", "received": 0}
            | {"received_bytes": 0, "confirmed": done, "dead_lettered": {}, "lag": left, "lag_age_s": 0.1}
        )
    came = arrivals(Recording.of(records), "P1")
    assert came is not None
    assert round(came.backlog + sum(came.rates)) == total
