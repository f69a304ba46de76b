"""The ledger of positions: ranges that follow one another, and what became of all that is in them."""

from collections import Counter
from typing import Any

import pytest

from proxy.bridge.broker import Address
from proxy.bridge.event_log import Beginning
from proxy.bridge.flow import PartitionFlow
from proxy.bridge.move import Direction, Move, Moved
from proxy.model import Event, Order, Partition, Reason
from proxy.recording.books import MOST_LETTER_RANGES, Books
from proxy.records import Assigned, Committed, Record, Rewind, Skip
from proxy.settings import RoutingKey
from tests.support.bridge_fakes import CountingHost
from tests.support.events import PARTITION

OTHER = Partition(PARTITION.topic, 1)


class Kept:
    """Books and what they write; positions are their own places."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.books = Books(self.records.append, lambda position: int(str(position)), "g")

    def begin(self, partition: Partition = PARTITION, first: int = 100, topic_id: str = "id") -> PartitionFlow:
        flow = PartitionFlow(
            partition, Order.PARTITION, Address("x", RoutingKey(constant="q"), ""), 0, 99, CountingHost()
        )
        self.books.on_begun("order", flow, Beginning(topic_id, first, 90, 200))
        return flow

    def letters(self, flow: PartitionFlow, first: int, *positions: int, reason: Reason = Reason.EXPIRED) -> None:
        events = [Event(position, None, None, b"", (), 0) for position in positions]
        self.books.on_dead_lettered(flow, first, events, reason)

    def written(self) -> list[dict[str, Any]]:
        """Write, and return every committed range so far."""
        self.books.write()
        return [told.as_json() for one in self.records if isinstance(one, Committed) for told in one.ranges]


def test_an_assignment_says_where_reading_begins_and_which_epoch_that_is() -> None:
    kept = Kept()
    kept.begin()
    kept.begin(OTHER, first=0, topic_id="")
    first, second = (one for one in kept.records if isinstance(one, Assigned))
    assert (first.type, first.topic, first.partition, first.epoch) == ("order", PARTITION.topic, 0, 1)
    assert (first.topic_id, first.first, first.committed, first.end) == ("id", 100, 90, 200)
    assert (second.partition, second.epoch, second.topic_id) == (1, 2, "")


def test_every_record_of_positions_says_whose_they_are_and_of_which_topic() -> None:
    kept = Kept()
    kept.books.on_committed(kept.begin(), 5, 105)
    kept.books.on_truncated(PARTITION, 7, 112)
    kept.books.write()
    assigned, truncated, committed = (one.as_json() for one in kept.records)
    assert assigned["group"] == truncated["group"] == committed["group"] == "g"
    assert (truncated["topic_id"], truncated["first"], truncated["end"]) == ("id", 105, 112)


def test_ranges_follow_one_another_when_commits_are_written_in_between() -> None:
    kept = Kept()
    flow = kept.begin()
    kept.books.on_committed(flow, 10, 110)
    kept.books.on_committed(flow, 15, 120)
    kept.written()
    kept.books.on_committed(flow, 16, 121)
    ranges = kept.written()
    assert [(one["first"], one["end"], one["commits"], one["delivered"]) for one in ranges] == [
        (100, 120, 2, 15),
        (120, 121, 1, 1),
    ]
    assert {(one["epoch"], one["topic_id"], one["partition"]) for one in ranges} == {(1, "id", 0)}


def test_nothing_is_written_again_when_nothing_was_committed_since() -> None:
    kept = Kept()
    kept.books.on_committed(kept.begin(), 1, 101)
    assert kept.written() == kept.written()


def test_dead_letters_are_booked_in_the_range_that_commits_them_and_not_as_delivered() -> None:
    kept = Kept()
    flow = kept.begin()
    kept.letters(flow, 3, 103, 104)
    kept.letters(flow, 5, 105)
    kept.letters(flow, 6, 106, reason=Reason.REFUSED)
    kept.letters(flow, 20, 125)
    kept.books.on_committed(flow, 10, 112)
    (told,) = kept.written()
    assert (told["delivered"], told["dead_lettered"]) == (6, {"expired": 3, "refused": 1})
    assert told["letters"] == [
        {"first": 103, "end": 106, "count": 3, "reason": "expired"},
        {"first": 106, "end": 107, "count": 1, "reason": "refused"},
    ]
    kept.books.on_committed(flow, 21, 126)
    assert (kept.written()[1]["delivered"], kept.written()[1]["dead_lettered"]) == (10, {"expired": 1})


def test_dead_letters_are_found_when_they_were_confirmed_in_another_order() -> None:
    kept = Kept()
    flow = kept.begin()
    for number in (4, 1, 3, 0):
        kept.letters(flow, number, 100 + number)
    kept.books.on_committed(flow, 5, 105)
    (told,) = kept.written()
    assert [(one["first"], one["end"]) for one in told["letters"]] == [(100, 102), (103, 105)]


def test_ranges_of_dead_letters_end_at_their_bound_and_the_counts_hold_all() -> None:
    kept = Kept()
    flow = kept.begin()
    for number in range(0, 400, 2):
        kept.letters(flow, number, 100 + number)
    kept.books.on_committed(flow, 400, 500)
    (told,) = kept.written()
    assert (len(told["letters"]), told["dead_lettered"]) == (MOST_LETTER_RANGES, Counter(expired=200))


def test_what_comes_late_of_an_epoch_that_has_ended_is_not_booked_in_the_next_one() -> None:
    kept = Kept()
    old = kept.begin()
    kept.books.on_committed(old, 5, 105)
    new = kept.begin(first=105)
    kept.letters(old, 6, 106)
    kept.books.on_committed(old, 9, 109)
    kept.books.on_committed(new, 2, 107)
    assert [(one["epoch"], one["first"], one["end"], one["delivered"]) for one in kept.written()] == [
        (1, 100, 105, 5),
        (2, 105, 107, 2),
    ]


@pytest.mark.parametrize(
    ("direction", "done", "to", "kind"), [(Direction.SKIP, 105, 140, Skip), (Direction.REWIND, 105, 102, Rewind)]
)
def test_a_range_is_recorded_as_moved_over_when_the_log_has_the_move(
    direction: Direction, done: int, to: int, kind: type[Record]
) -> None:
    kept = Kept()
    kept.books.on_moved("order", Moved(PARTITION, Move("1-ab", direction, "id", 90, to, "me", "why"), done, to))
    told = kept.records[-1].as_json()
    assert isinstance(kept.records[-1], kind)
    assert (told["first"], told["end"]) == (min(done, to), max(done, to))
    assert (told["type"], told["topic_id"], told["group"], told["by"], told["why"]) == ("order", "id", "g", "me", "why")


def test_nothing_is_recorded_when_a_move_has_changed_nothing() -> None:
    kept = Kept()
    kept.books.on_moved("order", Moved(PARTITION, Move("1-ab", Direction.SKIP, "id", 90, 105, "me", None), 105, 105))
    assert not kept.records


def test_ranges_are_written_at_once_and_in_one_record_when_their_epochs_end_together() -> None:
    kept = Kept()
    flows = [kept.begin(), kept.begin(OTHER)]
    for flow in flows:
        kept.books.on_committed(flow, 1, 101)
    kept.books.on_ended(flows)
    (told,) = (one for one in kept.records if isinstance(one, Committed))
    assert (told.type, [one.partition for one in told.ranges]) == ("order", [0, 1])
    kept.books.on_committed(flows[0], 2, 102)
    assert len(kept.written()) == 2
