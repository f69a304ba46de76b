"""What a bridge saw, and whether a replay is near enough to it."""

from collections.abc import Callable
from typing import Any

import pytest

from proxy.congestion.buckets import index_of
from proxy.tuning.measured import Compared, compared, measured
from proxy.tuning.recording import Recording

Make = Callable[..., dict[str, Any]]


def test_a_queue_delay_weighs_as_long_as_it_held(interval: Make, verdict: Make) -> None:
    told = [
        verdict(10, queue_delay_us=100_000),
        verdict(10.9, queue_delay_us=900_000),
        verdict(10.95, queue_delay_us=900_000),
        verdict(11, queue_delay_us=None),
    ]
    every = [interval(at) for at in range(1, 13)]
    found = measured(Recording.of([*told, *every]), "P1", 5.0)
    assert found["queue_delay_p50.r"] == 0.1
    assert found["queue_delay_p99.r"] == 0.9


def test_bridge_times_of_records_are_merged_and_those_before_do_not_count(interval: Make) -> None:
    slow, quick = str(index_of(90_000)), str(index_of(1_000))
    every = [interval(at, bridge_us={slow: 5} if at <= 5 else {quick: 99, slow: 1}) for at in range(1, 13)]
    found = measured(Recording.of(every), "P1", 5.0)
    assert found["P1.bridge_p99"] == pytest.approx(0.001, rel=0.01)


@pytest.mark.parametrize(
    ("recorded", "replayed", "is_near"),
    [(0.01, 0.059, True), (0.01, 0.061, False), (1.0, 1.19, True), (1.0, 0.79, False)],
)
def test_a_replay_is_near_within_a_fifth_or_50_ms(recorded: float, replayed: float, is_near: bool) -> None:
    assert Compared("x", recorded, replayed, replayed, replayed).is_near is is_near


def test_what_one_replay_did_not_see_is_not_compared() -> None:
    found = compared({"a": 1.0, "b": 2.0}, [{"a": 1.0, "b": 1.0}, {"a": 3.0}, {"a": 2.0}])
    assert [(one.name, one.replayed, one.least, one.most) for one in found] == [("a", 2.0, 1.0, 3.0)]
