"""The checker on made-up arrivals: what must pass passes, and every kind of fault is found."""

import pytest

from load.checker import Promise, Tally, Whereabouts, broken, tally, whereabouts
from proxy.model import Order

IN_ORDER = range(10)


def promise(order: Order, *, in_flight: int = 5, duplicates: int = 3, overtaken: int = 0) -> Promise:
    return Promise(order, in_flight, duplicates, overtaken)


def verdict(order: Order, arrivals: list[int], *, overtaken: int = 0) -> list[str]:
    return broken([tally(10, arrivals)], promise(order, overtaken=overtaken))


@pytest.mark.parametrize("order", Order)
def test_nothing_is_broken_when_each_arrives_once_in_order(order: Order) -> None:
    assert verdict(order, list(IN_ORDER)) == []


@pytest.mark.parametrize("order", Order)
def test_a_loss_is_found_wherever_it_is(order: Order) -> None:
    for missing in IN_ORDER:
        assert verdict(order, [n for n in IN_ORDER if n != missing]) == ["1 of 10 events never arrived"]


@pytest.mark.parametrize("order", Order)
def test_everything_is_lost_when_nothing_arrives(order: Order) -> None:
    assert verdict(order, []) == ["10 of 10 events never arrived"]


def test_a_loss_is_not_made_up_for_by_a_duplicate() -> None:
    arrivals = [0, 1, 2, 3, 4, 5, 6, 7, 8, 8]

    assert tally(10, arrivals).lost == 1
    assert verdict(Order.NONE, arrivals) == ["1 of 10 events never arrived"]


def test_a_foreign_arrival_is_found_on_either_side_of_the_numbers_produced() -> None:
    assert verdict(Order.NONE, [*IN_ORDER, 10]) == ["1 arrivals were never produced"]
    assert verdict(Order.NONE, [-1, *IN_ORDER]) == ["1 arrivals were never produced"]


@pytest.mark.parametrize("order", Order)
def test_a_replayed_stretch_breaks_no_order_when_duplicates_are_within_their_bound(order: Order) -> None:
    arrivals = [0, 1, 2, 3, 4, 2, 3, 4, 5, 6, 7, 8, 9]
    found = tally(10, arrivals)

    assert (found.duplicates, found.late, found.replays) == (3, 0, 1)
    assert verdict(order, arrivals) == []


@pytest.mark.parametrize("order", Order)
def test_a_replay_is_found_when_it_exceeds_the_bound(order: Order) -> None:
    arrivals = [0, 1, 2, 3, 4, 1, 2, 3, 4, 5, 6, 7, 8, 9]

    assert verdict(order, arrivals) == ["4 duplicates in one partition, bound 3"]


def test_the_bound_on_duplicates_holds_for_each_partition_by_itself() -> None:
    within, beyond = tally(10, [0, 1, 2, *IN_ORDER]), tally(10, [0, 1, 2, 3, *IN_ORDER])

    assert broken([within, within, within], promise(Order.STRICT)) == []
    assert broken([within, beyond], promise(Order.STRICT)) == ["4 duplicates in one partition, bound 3"]


def test_an_event_that_comes_first_after_a_later_one_breaks_strict_order() -> None:
    assert "order: strict" in verdict(Order.STRICT, [0, 2, 1, 3, 4, 5, 6, 7, 8, 9])[0]


def test_an_event_skipped_until_a_replay_is_late_though_the_replay_is_in_order() -> None:
    found = tally(10, [0, 1, 3, 4, 1, 2, 3, 4, 5, 6, 7, 8, 9])

    assert (found.late, found.reach, found.duplicates) == (1, 2, 3)


def test_partition_order_allows_late_events_when_the_bridges_counted_as_many() -> None:
    arrivals = [0, 2, 3, 1, 4, 5, 6, 7, 8, 9]

    assert verdict(Order.PARTITION, arrivals, overtaken=1) == []
    assert verdict(Order.PARTITION, arrivals) == ["1 events were overtaken, the bridges reported 0"]


def test_partition_order_is_broken_when_an_event_is_overtaken_by_more_than_was_in_flight() -> None:
    arrivals = [1, 2, 3, 4, 5, 0, 6, 7, 8, 9]

    assert verdict(Order.PARTITION, arrivals, overtaken=1) == [
        "an event was overtaken by 5 places, more than the 5 in flight"
    ]


def test_no_order_allows_any_order() -> None:
    assert verdict(Order.NONE, list(reversed(IN_ORDER))) == []


def test_every_broken_promise_is_named_when_there_are_several() -> None:
    assert len(verdict(Order.STRICT, [3, 2, 0, 0, 0, 0, 0, 11])) == 4


def test_tallies_add_up_and_keep_the_widest_reach() -> None:
    whole = tally(4, [1, 0, 2, 2]) + tally(6, [5, 0])

    assert whole == Tally(produced=10, arrived=5, duplicates=1, late=2, reach=5, replays=1, foreign=0)
    assert whole.lost == 5


def test_what_is_neither_delivered_nor_committed_is_in_the_log() -> None:
    assert whereabouts(10, 4, [0, 1, 2, 3]) == Whereabouts(produced=10, delivered=4, in_log=6)


def test_what_is_committed_and_not_delivered_is_lost() -> None:
    assert whereabouts(10, 4, [0, 1, 3]) == Whereabouts(produced=10, delivered=3, in_log=6, lost=1)


def test_what_is_delivered_beyond_the_commit_is_neither_lost_nor_in_the_log() -> None:
    assert whereabouts(10, 4, [0, 1, 2, 3, 4, 5]) == Whereabouts(produced=10, delivered=6, in_log=4)


def test_a_gap_before_a_delivered_event_is_in_the_log_when_it_is_not_committed() -> None:
    assert whereabouts(10, 4, [0, 1, 2, 3, 6]) == Whereabouts(produced=10, delivered=5, in_log=5)


def test_repeated_deliveries_are_counted_beside() -> None:
    assert whereabouts(3, 3, [0, 1, 1, 2, 0]) == Whereabouts(produced=3, delivered=3, duplicates=2)


def test_nothing_committed_at_all_leaves_all_in_the_log() -> None:
    assert whereabouts(5, 0, []) == Whereabouts(produced=5, in_log=5)
