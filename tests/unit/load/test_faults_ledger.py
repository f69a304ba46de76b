"""The checker's books, on made-up histories of one partition."""

import pytest

from load.faults.ledger import Counts, Ledger


def kept(count: int) -> Ledger:
    """A ledger of events that Kafka has."""
    ledger = Ledger()
    ledger.keep(ledger.send(count), count, 0)
    return ledger


def test_an_event_that_kafka_has_and_that_is_nowhere_is_missing() -> None:
    ledger = kept(4)
    for number in (0, 1, 3):
        ledger.arrive(number)

    assert ledger.missing(4) == [2]
    ledger.arrive(2)
    assert ledger.missing(4) == []


def test_an_event_that_kafka_never_acknowledged_is_not_missing_but_may_arrive() -> None:
    ledger = Ledger()
    ledger.send(2)
    ledger.arrive(1)

    assert ledger.missing(2) == []
    assert ledger.counts == Counts(sent=2, arrived=1)


def test_what_kafka_acknowledges_late_is_missing_from_then_on() -> None:
    ledger = Ledger()
    first = ledger.send(2)
    assert ledger.missing(2) == []

    ledger.keep(first, 2, 0)
    assert ledger.missing(2) == [0, 1]


def test_an_event_is_late_when_it_first_arrives_after_a_later_one() -> None:
    ledger = kept(10)
    for number in (0, 5, 2, 5, 2, 6):
        if not ledger.arrive(number):
            ledger.repeat()

    assert (ledger.counts.late, ledger.counts.duplicates, ledger.reach) == (1, 2, 3)


def test_a_dead_letter_is_accounted_for_and_its_delivery_a_duplicate() -> None:
    ledger = kept(1)
    assert ledger.bury(0)
    assert not ledger.arrive(0)
    assert ledger.missing(1) == []
    assert ledger.counts == Counts(sent=1, kept=1, dead=1)


def test_only_what_was_not_committed_goes_with_a_deleted_topic() -> None:
    ledger = kept(10)
    for number in range(3):
        ledger.arrive(number)

    assert ledger.drop(committed=5) == 5
    assert ledger.missing(10) == [3, 4]


def test_only_what_lies_before_the_cut_goes_with_a_truncated_log() -> None:
    ledger = kept(10)

    assert ledger.drop(committed=2, before=6) == 4
    assert ledger.missing(10) == [0, 1, 6, 7, 8, 9]


def test_what_was_thought_gone_and_arrives_all_the_same_has_arrived() -> None:
    ledger = kept(2)
    ledger.drop(committed=0)
    ledger.arrive(1)

    assert ledger.counts == Counts(sent=2, kept=2, arrived=1, gone=1)


def test_offsets_of_a_recreated_topic_begin_anew() -> None:
    ledger = kept(10)
    assert ledger.end == 10
    ledger.begin_anew()
    assert ledger.end == 0
    ledger.keep(ledger.send(3), 3, 0)

    assert ledger.end == 3
    assert ledger.drop(committed=1) == 2
    assert ledger.missing(13) == [*range(10), 10]


def test_an_event_that_was_never_sent_is_no_event() -> None:
    with pytest.raises(IndexError):
        kept(1).arrive(1)


def test_what_was_given_out_before_to_a_broken_connection_is_never_late() -> None:
    ledger = Ledger()
    ledger.keep(ledger.send(3), 3, 0)
    ledger.arrive(2)

    ledger.arrive(0, in_turn=False)
    assert ledger.counts.late == 0
    ledger.arrive(1)
    assert ledger.counts.late == 1
