"""What the checker's books say of every position, on made-up partitions."""

from load.faults import truth
from load.faults.ledger import Ledger
from load.faults.truth import Loss, Sample


def kept(count: int, offset: int = 0) -> Ledger:
    """A ledger of events that Kafka has."""
    ledger = Ledger()
    ledger.keep(ledger.send(count), count, offset)
    return ledger


def sample(at: float, offset: int, topic_id: str = "one") -> Sample:
    """One that took a tenth of a second."""
    return Sample(at, at + 0.1, {("topic", 0): (topic_id, offset)})


def test_each_position_has_the_fate_of_its_event() -> None:
    ledger = kept(7)
    for number in (0, 1, 3):
        ledger.arrive(number)
    for number in (2, 3):
        ledger.bury(number)
    ledger.drop(4, 5)
    ledger.excuse([5])

    assert truth.ranges(ledger, range(7), 7, {}) == [
        (0, 2, "delivered"),
        (2, 3, "dead_lettered"),
        (3, 4, "delivered and dead_lettered"),
        (4, 5, "dropped"),
        (5, 6, "with_queue"),
        (6, 7, "nowhere"),
    ]


def test_the_log_tells_where_an_event_stands_that_kafka_never_acknowledged() -> None:
    ledger = kept(2)
    ledger.send(1)
    for number in range(3):
        ledger.arrive(number)

    assert truth.ranges(ledger, range(3), 3, {}) == [(0, 2, "delivered"), (2, 3, "unknown")]
    assert truth.ranges(ledger, range(3), 3, {2: 2}) == [(0, 3, "delivered")]


def test_positions_begin_again_when_the_topic_is_made_anew() -> None:
    ledger = kept(3)
    ledger.arrive(0)
    ledger.drop(1)
    ledger.begin_anew()
    ledger.keep(ledger.send(2), 2, 0)
    ledger.arrive(3)

    before, now = ledger.lives()
    assert truth.ranges(ledger, before, 3, {}) == [(0, 1, "delivered"), (1, 3, "dropped")]
    assert truth.ranges(ledger, now, 2, {}) == [(0, 1, "delivered"), (1, 2, "nowhere")]


def test_what_was_committed_meanwhile_lies_between_the_last_look_before_and_the_first_look_behind() -> None:
    samples = [sample(at, 10 * at) for at in range(10)]

    # The look at 3 may be of any instant until 3.1; that at 5 was asked for too early to hold all up to 5.05.
    assert truth.windows(samples, Loss("killed", 3.05, 5.05)) == [("one", 0, 20, 60)]


def test_a_loss_that_nobody_looked_behind_takes_all_that_was_committed_since() -> None:
    samples = [sample(0, 5), sample(1, 7)]

    assert truth.windows(samples, Loss("killed", 0.5, 2)) == [("one", 0, 5, 7)]
    assert truth.windows(samples, Loss("killed", -1, 2)) == [("one", 0, 0, 7)]
    assert truth.windows(samples, Loss("killed", 1.5, 2)) == []


def test_both_topics_have_a_window_when_one_is_made_anew_in_it() -> None:
    samples = [sample(0, 5), sample(1, 9), sample(2, 3, "two")]

    assert truth.windows(samples, Loss("killed", 0.5, 2)) == [("one", 0, 5, 9), ("two", 0, 0, 3)]


def test_a_commit_that_goes_back_is_told() -> None:
    samples = [sample(0, 5), sample(1, 9), sample(2, 7), sample(3, 12), sample(4, 3, "two")]

    assert truth.committed(samples, "topic", "one", 0) == (12, [(7, 9)])
    assert truth.committed(samples, "topic", "two", 0) == (3, [])
    assert truth.committed(samples, "topic", "three", 0) == (0, [])
