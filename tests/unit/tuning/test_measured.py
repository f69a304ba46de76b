"""What a bridge saw, and whether a replay is near enough to it."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from proxy.congestion.buckets import index_of
from proxy.tuning.measured import Compared, chance, compared, measured
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


@pytest.mark.parametrize(
    ("recorded", "replays", "is_near"),
    [
        # The median is off by a third, and so are the replays from one another.
        (1.6, [0.9, 1.0, 1.2, 1.5, 1.7], True),
        # The same distance, where replays are alike.
        (1.6, [1.19, 1.2, 1.2, 1.2, 1.21], False),
        # However wide they lie: twice of what happened is not what happened.
        (1.0, [0.5, 1.0, 2.1, 4.0, 9.0], False),
        # One run tells nothing of chance.
        (1.6, [1.2], False),
    ],
)
def test_a_replay_is_near_within_what_one_more_run_would_differ_by(
    recorded: float, replays: list[float], is_near: bool
) -> None:
    (one,) = compared({"a": recorded}, [{"a": value} for value in replays])
    assert one.is_near is is_near


def test_of_runs_of_one_model_all_but_one_in_a_hundred_are_near_whatever_the_number_of_replays() -> None:
    chance_of = Random(1)
    for replays in (2, 3, 5, 10, 30):
        far = 0
        for _ in range(2_000):
            recorded, *others = (chance_of.gauss(100.0, 30.0) for _ in range(replays + 1))
            mean = sum(others) / replays
            far += abs(recorded - mean) > chance(others)
        assert far <= 40, replays


def test_what_one_replay_did_not_see_is_not_compared() -> None:
    found = compared({"a": 1.0, "b": 2.0}, [{"a": 1.0, "b": 1.0}, {"a": 3.0}, {"a": 2.0}])
    assert [(one.name, one.replayed, one.least, one.most) for one in found] == [("a", 2.0, 1.0, 3.0)]
