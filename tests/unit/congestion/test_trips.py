"""How long batches are on their way."""

from dataclasses import dataclass

from proxy.congestion.trips import MOST, Trip, Trips


@dataclass(eq=False)
class Handed:
    done: int = 0


def heard() -> Trips:
    trips = Trips()
    trips.is_heard = True
    return trips


def test_a_trip_ends_with_the_last_outcome_when_all_is_written() -> None:
    trips, batch = heard(), Handed(done=5)
    trips.begin([batch], 1.0, 2.0)
    trips.settle([batch], 1.1)
    trips.on_outcome(batch, 4, 1.2, is_dropped=False)
    assert trips.take() == ()
    trips.on_outcome(batch, 1, 1.5, is_dropped=False)
    assert trips.take() == (Trip(0.5, 1, is_dropped=False, cost=10.0),)
    assert trips.take() == ()


def test_a_trip_ends_with_the_writing_when_outcomes_come_before_it() -> None:
    trips, batch = heard(), Handed(done=3)
    trips.begin([batch], 1.0, 1.0)
    trips.on_outcome(batch, 3, 1.2, is_dropped=False)
    assert trips.take() == ()
    trips.settle([batch], 1.5)
    assert trips.take() == (Trip(0.5, 1, is_dropped=False, cost=3.0),)


def test_what_was_withdrawn_belongs_to_no_trip() -> None:
    trips, half, nothing = heard(), Handed(done=2), Handed(done=0)
    trips.begin([half, nothing], 1.0, 1.0)
    trips.settle([half, nothing], 1.1)
    trips.on_outcome(half, 2, 1.4, is_dropped=True)
    assert [(trip.in_flight, trip.is_dropped, trip.cost) for trip in trips.take()] == [(1, True, 2.0)]


def test_batches_on_their_way_are_counted_with_the_one_that_comes_back() -> None:
    trips, batches = heard(), [Handed(done=1) for _ in range(3)]
    trips.begin(batches, 0.0, 1.0)
    trips.settle(batches, 0.0)
    for batch in batches:
        trips.on_outcome(batch, 1, 1.0, is_dropped=False)
    assert [trip.in_flight for trip in trips.take()] == [3, 2, 1]


def test_nothing_is_noted_when_nobody_asks() -> None:
    trips, batch = Trips(), Handed(done=1)
    trips.begin([batch], 0.0, 1.0)
    trips.on_outcome(batch, 1, 1.0, is_dropped=False)
    trips.settle([batch], 1.0)
    assert trips.take() == ()


def test_no_more_than_a_thousand_are_kept_between_two_ticks() -> None:
    trips, batches = heard(), [Handed(done=1) for _ in range(MOST + 10)]
    trips.begin(batches, 0.0, 1.0)
    trips.settle(batches, 0.0)
    for batch in batches:
        trips.on_outcome(batch, 1, 1.0, is_dropped=False)
    assert len(trips.take()) == MOST


def test_what_took_no_time_was_no_trip() -> None:
    trips, batch = heard(), Handed(done=1)
    trips.begin([batch], 1.0, 1.0)
    trips.on_outcome(batch, 1, 1.0, is_dropped=False)
    trips.settle([batch], 1.0)
    assert trips.take() == ()
