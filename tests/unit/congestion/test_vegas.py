"""Vegas for batches: every step of the published law, and the proofs that came with it."""

from collections.abc import Callable
from dataclasses import replace
from math import ceil, inf
from random import Random

import pytest

from proxy.congestion.rate_law import Level, LevelRate
from proxy.congestion.trips import Trip
from proxy.congestion.vegas import MOST, START, Vegas, VegasLimit
from proxy.settings import ClassBudget

IDLE = 0.010
"""Seconds of a trip to an idle broker."""


def limit(
    value: float = START, *, batching: float | None = 1.0, is_capped: bool = False, chance: float = 1.0
) -> VegasLimit:
    """Return one that has seen the idle broker."""
    made = VegasLimit(lambda: chance, is_capped=is_capped, batching=batching)
    made.on_trip(0.0, Trip(IDLE, 1))
    made.value = value
    return made


def after(law: VegasLimit, seconds: float, in_flight: int, *, is_dropped: bool = False) -> float:
    law.on_trip(1.0, Trip(seconds, in_flight, is_dropped))
    return law.value


def test_it_begins_with_20_batches() -> None:
    assert VegasLimit(lambda: 0.0, is_capped=False, batching=None).value == 20


@pytest.mark.parametrize("seconds", [IDLE, 1.5 * IDLE, 2 * IDLE])
def test_no_queue_is_seen_when_a_batch_waited_no_longer_than_the_factor_allows(seconds: float) -> None:
    assert after(limit(50.0), seconds, 50) == 50 + 6


@pytest.mark.parametrize(
    ("queue", "change"), [(1, 6), (2, 1), (3, 0), (6, 0), (7, -1), (40, -1)], ids=lambda value: f"{value}"
)
def test_the_limit_follows_the_queue_when_a_trip_takes_longer(queue: int, change: int) -> None:
    start = 50.0
    # q = ceil(L (1 - rtt0 (1 + BF) / rtt)), turned round in the middle of the step
    seconds = 2 * IDLE / (1 - (queue - 0.5) / start)
    assert after(limit(start), seconds, 50) == start + change


@pytest.mark.parametrize(("start", "step"), [(9.0, 1), (50.0, 1), (100.0, 2), (999.0, 2)])
def test_a_step_is_the_whole_logarithm_of_the_limit(start: float, step: int) -> None:
    assert after(limit(start), IDLE * 1.5, 999) == min(MOST, start + 6 * step)


def test_a_drop_takes_a_step_whatever_the_trip_took() -> None:
    assert after(limit(100.0), IDLE * 1.5, 1, is_dropped=True) == 98


def test_the_limit_stays_when_less_than_half_of_it_is_used() -> None:
    assert after(limit(50.0), IDLE * 9, 24) == 50
    assert after(limit(50.0), IDLE * 9, 25) == 49


def test_a_shorter_trip_is_learnt_and_changes_nothing_else() -> None:
    law = limit(50.0)
    assert after(law, IDLE / 2, 50) == 50
    assert law.shortest == IDLE / 2


def test_the_limit_stays_between_one_and_a_thousand() -> None:
    assert after(limit(1_000.0), IDLE * 1.5, 1_000) == 1_000
    assert after(limit(1.0), 100 * IDLE, 1, is_dropped=True) == 1


def test_the_factor_is_one_over_what_is_on_its_way_when_none_is_set() -> None:
    assert after(limit(50.0, batching=None), 1.02 * IDLE, 50) == 56
    assert after(limit(50.0, batching=None), 1.5 * IDLE, 50) == 49


def probed(value: float, *, is_capped: bool) -> VegasLimit:
    """Return a limit right after its probe: half of 30 trips for each batch, the least that chance allows."""
    law = limit(value, is_capped=is_capped, chance=0.0)
    for _ in range(ceil(0.5 * 30 * value) - 2):
        law.on_trip(1.0, Trip(4 * IDLE, 1))  # less than half is used: nothing else changes
    assert law.shortest == IDLE
    law.on_trip(1.0, Trip(4 * IDLE, 1))
    assert law.shortest == 4 * IDLE
    return law


@pytest.mark.parametrize(
    ("value", "literal", "capped"), [(100.0, 50.0, 50.0), (60.0, 30.0, 30.0), (30.0, 20.0, 20.0), (8.0, 20.0, 8.0)]
)
def test_a_probe_shrinks_the_limit_and_as_written_lifts_a_low_one(value: float, literal: float, capped: float) -> None:
    assert probed(value, is_capped=False).value == literal
    assert probed(value, is_capped=True).value == capped


def test_the_limit_is_frozen_after_a_probe_while_a_shorter_trip_is_still_learnt() -> None:
    law = probed(100.0, is_capped=False)
    frozen = 4 * IDLE * (1 + 1 / 2)
    law.on_trip(1.0 + frozen - 0.001, Trip(9 * IDLE, 50))
    law.on_trip(1.0 + frozen - 0.001, Trip(3 * IDLE, 50))
    assert (law.value, law.shortest) == (50, 3 * IDLE)
    law.on_trip(1.0 + frozen, Trip(3 * IDLE, 50))
    assert law.value == 56


def test_a_probe_comes_after_fifteen_to_thirty_trips_for_each_batch() -> None:
    for chance, trips in ((0.0, 300), (1.0, 600)):
        law = limit(START, chance=chance)
        for _ in range(trips - 2):
            law.on_trip(1.0, Trip(4 * IDLE, 1))
        assert law.shortest == IDLE
        law.on_trip(1.0, Trip(4 * IDLE, 1))
        assert law.shortest == 4 * IDLE


class NeitherShrinkNorHold(VegasLimit):
    """What the proposal says would inflate."""

    def _probe(self, now: float, seconds: float, factor: float) -> None:
        value = self.value
        super()._probe(now, seconds, factor)
        self.value, self._frozen_until = value, -inf


def live(law: VegasLimit, trips: int, *, idle_till: int, wanted: float, chance: Random) -> list[tuple[float, float]]:
    """Let a broker that takes `idle_till` batches at once without a queue answer; return limit and shortest trip.

    The sender's buffer makes a batch wait for up to another trip, as with one request on its way.
    """
    now, seen = 0.0, []
    for _ in range(trips):
        in_flight = max(1, int(min(law.value, wanted)))
        buffered = 1 + (chance.random() if in_flight <= idle_till else 1.0)
        seconds = IDLE * buffered * max(1.0, in_flight / idle_till)
        now += seconds / in_flight
        law.on_trip(now, Trip(seconds, in_flight))
        seen.append((law.value, law.shortest or 0.0))
    return seen


def test_batching_alone_sheds_nothing_with_the_factor_and_does_without() -> None:
    def least(batching: float) -> float:
        law = VegasLimit(Random(1).random, is_capped=False, batching=batching)
        seen = live(law, 5_000, idle_till=100, wanted=60.0, chance=Random(2))
        return min(value for value, _ in seen[2_000:])

    assert least(1.0) >= 60  # as much as is wanted
    assert least(0.0) < 30


def _fifty_probes(make: Callable[..., VegasLimit]) -> list[tuple[float, float]]:
    law = make(Random(1).random, is_capped=False, batching=1.0)
    return live(law, 50 * 30 * 60, idle_till=50, wanted=inf, chance=Random(2))[-30 * 60 :]


def test_fifty_probes_under_load_inflate_nothing_when_a_probe_shrinks_and_holds() -> None:
    seen = _fifty_probes(VegasLimit)
    usual = sorted(seen)[len(seen) // 2]
    assert usual[0] == pytest.approx(50, rel=0.15)
    assert sorted(shortest for _, shortest in seen)[len(seen) // 2] == pytest.approx(IDLE, rel=0.1)


def test_fifty_probes_under_load_inflate_the_limit_when_a_probe_does_neither() -> None:
    seen = _fifty_probes(NeitherShrinkNorHold)
    assert seen[-1][0] > 200
    assert seen[-1][1] > 2 * IDLE


def test_a_surge_is_let_in_up_to_what_the_broker_takes() -> None:
    law, chance = VegasLimit(Random(1).random, is_capped=False, batching=1.0), Random(2)
    live(law, 3_000, idle_till=100, wanted=20.0, chance=chance)
    surge = live(law, 20_000, idle_till=100, wanted=inf, chance=chance)
    assert sorted(surge)[len(surge) // 2][0] == pytest.approx(100, rel=0.15)


def test_a_broker_that_has_become_slow_is_given_way_to_until_a_probe_learns_that_it_is_so() -> None:
    law = limit(100.0)
    values = []
    while law.shortest == IDLE:
        law.on_trip(1.0, Trip(4 * IDLE, int(law.value)))
        values.append(law.value)
    assert min(values) < 20
    law.on_trip(2.0, Trip(6 * IDLE, int(law.value)))
    assert law.value > min(values)


def test_a_queue_deeper_than_the_factor_is_taken_for_usual_when_a_probe_falls_into_it() -> None:
    """What a probe shrinks by is BF; a limit four times too high stays so. The depth of the queues is for that."""
    law, chance = VegasLimit(Random(1).random, is_capped=False, batching=1.0), Random(2)
    law.value, law.shortest = 100.0, 8 * IDLE
    assert live(law, 20_000, idle_till=25, wanted=inf, chance=chance)[-1][0] > 3 * 25


# -- as a law of a level ----------------------------------------------------------------------------------------------


def vegas(start: float = 500.0) -> Vegas:
    return Vegas(ClassBudget(), start=start, chance=lambda: 1.0, is_capped=False)


def test_its_rate_is_what_the_limit_comes_to_when_that_is_less_than_what_the_queues_allow() -> None:
    law = vegas()
    assert law.rate == 500
    law.on_trips(0.0, [Trip(1.0, 20, cost=5.0)] * 200)
    assert law.rate == pytest.approx(law.limit.value * 5 / 1.0)


def test_it_is_cut_like_the_default_law_when_a_queue_is_long() -> None:
    law = vegas()
    law.on_hot(Level(now=0.0, is_hot=True, is_cool=False, target=300.0, drain=300.0))
    assert law.rate == pytest.approx(0.92 * 300)


def test_the_top_level_is_not_limited_when_nothing_else_limits_it() -> None:
    law = vegas(inf)
    law.on_trips(0.0, [Trip(10.0, 20, cost=1.0)] * 200)
    assert law.rate == inf


def test_what_the_limit_holds_back_does_not_grow_unseen() -> None:
    law = vegas()
    law.on_trips(0.0, [Trip(1.0, 20, cost=5.0)] * 200)
    for tick in range(1_000):
        law.on_used(Level(now=tick * 0.05, target=300.0, drain=300.0, is_used=True), 0.05)
    law.on_trips(50.0, [Trip(0.001, 20, cost=5.0)] * 200)
    assert law.rate == 500


def test_the_rate_of_the_queues_is_back_at_once_when_trips_were_long_for_a_moment() -> None:
    law = vegas()
    level = LevelRate(law, is_top=False)
    calm = Level(now=0.0, target=300.0, drain=300.0)
    level.on_tick(calm)
    for now, seconds in ((1.0, 10.0), (2.0, 0.001)):
        level.on_trips(now, [Trip(seconds, 20, cost=5.0)] * 200)
        level.on_tick(replace(calm, now=now))
    assert level.rate == 500
