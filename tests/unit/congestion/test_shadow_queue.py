"""The queue that would be there, against a plain model of both worlds."""

import pytest

from proxy.congestion.shadow_queue import QueueLook, ShadowQueue

TICK = 0.05


def test_it_is_the_real_queue_when_nothing_is_held() -> None:
    queue = ShadowQueue()
    for tick, ready in enumerate([0, 10, 400, 3, 0]):
        assert queue.look(QueueLook(tick * TICK, ready, 500.0 * tick, 0.0), held=0) == ready


def test_what_is_held_is_not_in_it_when_both_are_long() -> None:
    queue = ShadowQueue()
    assert queue.look(QueueLook(0.0, 1_000, 1_000, 0.0), held=900) == 100
    assert queue.look(QueueLook(TICK, 1_040, 1_055, 0.0), held=950) == 90


@pytest.mark.parametrize("others", [0.0, 50.0])
def test_it_is_as_long_as_in_the_other_world_when_that_world_is_lived_through(others: float) -> None:
    """Consumers take 300 a second; 600 come in the first 10 s, 60 after; the gate lets 280 through, then 250, 320."""
    queue, capacity = ShadowQueue(), 300 * TICK
    real = there = log = 0.0
    own = 0.0
    for tick in range(2_000):
        at = tick * TICK
        seen = queue.look(QueueLook(at, round(real), own, others), held=log)
        if tick > 20:
            assert seen == pytest.approx(there, abs=20), at
        came = (600 if at < 10 else 60) * TICK
        gate = (280 if at < 5 else 230 if at < 20 else 320) * TICK
        passed = min(log + came, gate)
        own += came
        real = max(0.0, real + came + others * TICK - capacity)
        there = max(0.0, there + passed + others * TICK - capacity)
        log += came - passed
    assert log == 0


def test_what_the_real_consumers_had_done_is_gone_when_they_were_never_seen_to_be_busy() -> None:
    queue = ShadowQueue()
    queue.look(QueueLook(0.0, 0, 30.0, 0.0), held=30)
    assert queue.look(QueueLook(TICK, 0, 30.0, 0.0), held=0) == 0


def test_time_does_not_pass_twice_when_the_same_depth_is_looked_at_again() -> None:
    queue = ShadowQueue()
    for tick in range(3):
        queue.look(QueueLook(tick * TICK, 1_000 - 10 * tick, 0.0, 0.0), held=0)
    look = QueueLook(3 * TICK, 970, 0.0, 0.0)
    assert [queue.look(look, held=0) for _ in range(3)] == [970, 970, 970]
