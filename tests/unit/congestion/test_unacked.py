"""Consumers that stopped are told from those that start, catch up or are busy, by statistics in steps of 5 s."""

import pytest

from proxy.congestion.unacked import STEP_MESSAGES, UnackedGrowth


def judged(*readings: tuple[float, int, int]) -> list[bool]:
    growth = UnackedGrowth()
    said = []
    for at, unacked, acked in readings:
        growth.add(at, unacked, acked)
        said.append(growth.is_growing)
    return said


def stalled(stall_at: float, *, rate: int, poll: float, queue_phase: float, channel_phase: float) -> float | None:
    """Return when a stall is told: queue and channel statistics change every 5 s, each at its own phase."""
    growth = UnackedGrowth()

    def told(at: float, phase: float) -> float:
        return at - (at - phase) % 5

    at = 0.0
    while at < stall_at + 60:
        unacked = 30 + round(max(0.0, told(at, queue_phase) - stall_at) * rate)
        acked = round(max(0.0, min(told(at, channel_phase), stall_at)) * rate)
        growth.add(at, unacked, acked)
        if growth.is_growing:
            return at
        at += poll
    return None


@pytest.mark.parametrize("rate", [10, 50, 300, 3_000])
def test_a_stall_is_told_within_fifteen_seconds_whatever_the_phases(rate: int) -> None:
    delays = []
    for tenth in range(50):
        for queue_phase in (0.0, 1.3, 4.1):
            for channel_phase in (0.0, 2.2, 4.9):
                begun = 60 + tenth / 10
                at = stalled(begun, rate=rate, poll=1.0, queue_phase=queue_phase, channel_phase=channel_phase)
                assert at is not None
                delays.append(at - begun)
    assert min(delays) > 4
    assert max(delays) <= 15


def test_nothing_is_told_when_consumers_keep_up() -> None:
    readings = [(at, 40 + (at * 7919) % 90, 300 * at) for at in range(0, 600, 2)]
    assert not any(judged(*readings))


def test_nothing_is_told_when_no_message_ever_comes() -> None:
    assert not any(judged(*[(at, 0, 0) for at in range(0, 100, 2)]))


def test_nothing_is_told_when_consumers_start_with_a_large_prefetch() -> None:
    assert not any(judged((0, 0, 0), (2, 0, 0), (4, 1000, 90), (6, 1000, 90), (8, 1000, 1500), (10, 1000, 1500)))


def test_a_growth_in_one_step_is_not_enough_when_it_is_read_twice() -> None:
    assert not any(judged((0, 0, 0), (2, 500, 0), (2.5, 900, 0), (4, 900, 0), (60, 900, 0)))


def test_little_growth_is_noise_when_it_goes_on() -> None:
    assert not any(judged(*[(at, min(at, STEP_MESSAGES * 2 - 1), 0) for at in range(0, 100, 2)]))


def test_consumers_too_slow_by_more_than_half_are_told() -> None:
    assert judged((0, 10, 0), (5, 1010, 600), (10, 2010, 1200)) == [False, False, True]


def test_it_stays_told_when_nothing_is_sent_any_more() -> None:
    assert judged((0, 0, 0), (5, 500, 0), (10, 900, 0), (15, 900, 0), (600, 900, 3)) == [False, False, True, True, True]


@pytest.mark.parametrize(
    "after", [(15, 850, 50), (15, 900, 900), (15, 0, 0)], ids=["falls", "acknowledged", "requeued"]
)
def test_it_ends_when_consumers_work_again_or_are_gone(after: tuple[float, int, int]) -> None:
    assert judged((0, 0, 0), (5, 500, 0), (10, 900, 0), after)[-1] is False


def test_counting_begins_anew_when_the_broker_was_restarted() -> None:
    assert judged((0, 0, 9000), (5, 500, 9000), (10, 700, 20), (15, 800, 20), (20, 900, 20)) == [False] * 4 + [True]
