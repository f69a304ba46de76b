"""Open schedules: due instants are fixed beforehand and add up to what was asked for."""

import random
from itertools import pairwise

import pytest

from load.schedule import Schedule, Stretch, campaign, constant, ramp


def test_events_are_evenly_spaced_when_the_rate_is_constant() -> None:
    assert list(constant(2, 3).due()) == pytest.approx([0, 0.5, 1, 1.5, 2, 2.5])


def test_as_many_events_fall_due_as_the_rate_amounts_to_when_it_rises() -> None:
    due = list(ramp(0, 100, 10).due())

    assert len(due) == 500
    assert sum(second < 5 for second in due) == 125  # a quarter of them in the first half


def test_a_falling_rate_ends_with_its_last_event_inside_the_stretch() -> None:
    due = list(ramp(100, 0, 10).due())

    assert len(due) == 500
    assert due[-1] < 10
    assert sum(second < 5 for second in due) == pytest.approx(375, abs=1)


def test_instants_never_fall_when_stretches_of_different_rates_meet() -> None:
    due = list(campaign(3000, start=5, rise=2, hold=10, seconds=60).due())

    assert all(earlier <= later for earlier, later in pairwise(due))
    assert len(due) == 33_000
    assert min(due) >= 5
    assert max(due) < 17


def test_a_campaign_is_refused_when_it_does_not_fit() -> None:
    with pytest.raises(ValueError, match="does not fit"):
        campaign(10, start=5, rise=2, hold=10, seconds=16)


def test_nothing_falls_due_when_the_rate_is_zero() -> None:
    assert list(constant(0, 10).due()) == []


def test_a_stretch_is_refused_when_it_has_no_length_or_a_negative_rate() -> None:
    for parts in ((0, 1, 1), (1, -1, 1), (1, 1, -1)):
        with pytest.raises(ValueError, match="longer than 0"):
            Stretch(*parts)


def test_chance_keeps_the_rate_and_the_same_seed_gives_the_same_instants() -> None:
    schedule = constant(200, 50)
    due = list(schedule.due(random.Random(1)))

    assert due == list(schedule.due(random.Random(1)))
    assert due != list(schedule.due(random.Random(2)))
    assert len(due) == pytest.approx(schedule.events, rel=0.05)
    gaps = [later - earlier for earlier, later in pairwise(due)]
    assert min(gaps) < 0.001  # evenly spaced ones would all be 0.005
    assert max(gaps) > 0.02


def test_no_event_is_lost_or_doubled_where_two_stretches_meet_off_the_beat() -> None:
    # 2.5 events in the first stretch: the third falls due within the second, half an event after its beginning.
    due = list(Schedule((Stretch(1, 2.5, 2.5), Stretch(1, 5, 5))).due())

    assert due == pytest.approx([0, 0.4, 0.8, 1.1, 1.3, 1.5, 1.7, 1.9])
