"""Bounds of one inbox, and the budget over all of them."""

import tracemalloc
from collections.abc import Callable, Collection
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.bridge.broker import Batch
from proxy.bridge.budget import OBJECTS, Budget
from proxy.bridge.flow import PartitionFlow
from proxy.bridge.inbox import OLD_SHARE, Inbox
from proxy.model import Event, Order, Outcome, Partition
from proxy.settings import Limits
from tests.support.bridge_fakes import CountingHost
from tests.support.events import ADDRESS, event, events

LIMITS = Limits(inbox_events=10, inbox_bytes=1000, event_bytes=1000, inboxes_bytes=1000)
Made: TypeAlias = tuple[Inbox, set[Partition]]


def partition(number: int) -> Partition:
    return Partition("orders", number)


def flow(number: int) -> PartitionFlow:
    return PartitionFlow(partition(number), Order.PARTITION, ADDRESS, 0, 10**6, CountingHost())


@pytest.fixture
def budget() -> Budget:
    return Budget(1000, 3)


@pytest.fixture
def make(budget: Budget) -> Callable[[int], Made]:
    """Return what makes an inbox of a rank with one partition, and the set of its paused partitions."""

    def made(rank: int) -> Made:
        paused: set[Partition] = set()

        def pause(partitions: Collection[Partition]) -> None:
            assert not paused & set(partitions)
            paused.update(partitions)

        inbox = Inbox(LIMITS, budget, rank, pause, paused.difference_update)
        inbox.open(flow(rank))
        return inbox, paused

    return made


def test_a_type_is_paused_exactly_at_its_bound_in_events_and_resumed_exactly_at_the_low_mark(
    budget: Budget, make: Callable[[int], Made]
) -> None:
    budget.go_by(100 * (1 + OBJECTS))
    inbox, paused = make(0)
    inbox.offer(partition(0), events(0, 9))
    assert not paused
    inbox.offer(partition(0), events(9, 10))
    assert paused == {partition(0)}
    for batch in inbox.take(4, 0.0):
        batch.done = len(batch.events)
    assert (inbox.events, paused) == (6, {partition(0)})
    inbox.take(1, 0.0)
    assert (inbox.events, paused) == (5, set())


@pytest.mark.parametrize(("mark", "paused_at", "resumed_at"), [(4.0, 4, 2), (1.0, 1, 0), (50.0, 10, 5)])
def test_a_type_is_paused_at_its_mark_when_that_is_below_its_bound(
    budget: Budget, mark: float, paused_at: int, resumed_at: int
) -> None:
    budget.go_by(10_000)
    paused: set[Partition] = set()
    inbox = Inbox(LIMITS, budget, 0, paused.update, paused.difference_update, lambda: mark)
    inbox.open(flow(0))
    for number in range(10):
        inbox.offer(partition(0), events(number, number + 1))
        assert bool(paused) == (inbox.events >= paused_at)
    while inbox.events:
        inbox.take(1, 0.0)
        assert bool(paused) == (inbox.events > resumed_at)


def test_a_type_is_paused_at_its_bound_in_bytes_when_its_events_are_few_and_large(
    budget: Budget, make: Callable[[int], Made]
) -> None:
    budget.go_by(10_000)
    inbox, paused = make(0)
    big = [event(n, value=b"x" * 400) for n in range(3)]
    inbox.offer(partition(0), big)
    assert (inbox.bytes, paused) == (1200, {partition(0)})
    inbox.take(1, 0.0)
    assert (inbox.bytes, bool(paused)) == (800, True)
    inbox.take(1, 0.0)
    assert (inbox.bytes, bool(paused)) == (400, False)


def test_a_type_flows_only_when_no_cause_is_left(budget: Budget, make: Callable[[int], Made]) -> None:
    inbox, paused = make(2)
    inbox.offer(partition(2), events(0, 10))
    inbox.press("another", on=True)
    batches = inbox.take(10, 0.0)
    batches[0].done = 10
    inbox.settle(batches)
    assert paused == {partition(2)}
    inbox.press("another", on=False)
    assert (paused, budget.used) == (set(), 0)


def test_a_type_is_paused_and_resumed_by_the_budget_when_it_holds_more_than_its_own(
    budget: Budget, make: Callable[[int], Made]
) -> None:
    inbox, paused = make(2)
    inbox.offer(partition(2), [event(0, value=b"x" * (649 - OBJECTS))])  # of 500 that are its own, and 80 % of 500 more
    assert paused == set()  # of which 250 are kept for the next fetch
    inbox.offer(partition(2), [event(1, value=b"x")])
    assert paused == {partition(2)}
    inbox.close(partition(2))
    inbox.leave()
    assert (budget.used, inbox.held) == (0, 0)


def test_the_budget_gets_back_what_a_partition_held_when_it_is_closed_or_opened_anew(
    budget: Budget, make: Callable[[int], Made]
) -> None:
    inbox, _ = make(0)
    inbox.open(flow(1))
    inbox.offer(partition(0), events(0, 4))
    inbox.offer(partition(1), events(0, 3))
    inbox.open(flow(1))
    assert (budget.used, inbox.events) == (4 * (1 + OBJECTS), 4)
    inbox.close(partition(0))
    inbox.close(partition(9))
    assert (budget.used, inbox.events, inbox.bytes) == (0, 0, 0)


def test_the_budget_is_used_up_by_objects_when_events_are_small(budget: Budget, make: Callable[[int], Made]) -> None:
    inbox, paused = make(2)
    inbox.offer(partition(2), events(0, 2))
    assert not paused
    inbox.offer(partition(2), events(2, 3))
    assert paused == {partition(2)}
    assert (budget.used, inbox.bytes) == (3 + 3 * OBJECTS, 3)


def test_an_event_takes_no_more_memory_than_the_budget_counts() -> None:
    number, size, stamp = 1_000, 200, 1_763_700_000_000
    tracemalloc.start()
    try:
        read = [
            Event(2**31 + one, stamp + one, b"k%07d" % one, b"%0200d" % one, (), 2 * 100 + 8 + one // number)
            for one in range(number)
        ]
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    own = sum(one.size for one in read)
    assert own == number * (size + 8)
    assert 0.8 * OBJECTS < (taken - own) / number < OBJECTS


def test_partitions_are_served_in_turn_when_all_have_events(make: Callable[[int], Made]) -> None:
    inbox, _ = make(0)
    for number in (1, 2):
        inbox.open(flow(number))
    for number in range(3):
        inbox.offer(partition(number), events(0, 3))
    served = []
    for _ in range(6):
        (batch,) = inbox.take(1, 0.0)
        served.append(batch.partition.number)
    assert served == [0, 1, 2, 0, 1, 2]


def test_the_oldest_front_counts_when_partitions_wait(make: Callable[[int], Made]) -> None:
    inbox, _ = make(0)
    assert inbox.oldest_ms() is None
    inbox.open(flow(1))
    inbox.offer(partition(0), [event(0, timestamp_ms=None), event(1, timestamp_ms=5)])
    assert inbox.oldest_ms() is None
    inbox.offer(partition(1), [event(0, timestamp_ms=30)])
    assert inbox.oldest_ms() == 30
    inbox.take(1, 0.0)
    assert inbox.oldest_ms() == 5


def test_the_next_one_ready_is_the_first_whose_pause_ends(make: Callable[[int], Made]) -> None:
    inbox, _ = make(0)
    inbox.open(flow(1))
    for number in range(2):
        inbox.offer(partition(number), events(0, 1))
    assert inbox.next_ready(0.0) is None
    batches = inbox.take(2, 0.0)
    for batch in batches:
        batch.done = 1
    inbox.settle(batches)
    for batch in batches:
        batch.recipient.on_outcome(batch, 0, 1, Outcome.NACKED)
    assert inbox.ready(0.0) == (0, False)
    assert inbox.next_ready(0.0) == pytest.approx(0.05)
    assert inbox.next_ready(0.06) is None
    assert inbox.ready(0.06) == (2, True)


def test_the_budget_counts_what_the_lane_was_handed_until_it_is_through_with_it(
    budget: Budget, make: Callable[[int], Made]
) -> None:
    inbox, paused = make(2)
    inbox.offer(partition(2), events(0, 4))
    batches = inbox.take(4, 0.0)
    assert (inbox.events, budget.used, paused) == (0, 4 * (1 + OBJECTS), {partition(2)})
    batches[0].done = 2
    inbox.settle(batches)
    assert (budget.used, paused) == (0, set())
    batches[0].recipient.on_outcome(batches[0], 0, 2, Outcome.CONFIRMED)
    inbox.recount()
    assert (inbox.events, budget.used) == (2, 2 * (1 + OBJECTS))


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(-400, 400)), max_size=60))
def test_sums_agree_whatever_comes_and_goes(steps: list[tuple[int, int]]) -> None:
    budget = Budget(3000, 3)
    inboxes = []
    taken: list[list[Batch]] = [[], [], []]
    for rank in range(3):
        inbox = Inbox(LIMITS, budget, rank, lambda _: None, lambda _: None)
        inbox.open(flow(rank))
        inboxes.append(inbox)
    for rank, size in steps:
        if size > 0:
            inboxes[rank].offer(partition(rank), [event(0, value=b"x" * size)])
        elif size < -200:
            taken[rank] += inboxes[rank].take(-size // 100 - 1, 0.0)
        else:
            for batch in taken[rank]:
                batch.done = len(batch.events)
            inboxes[rank].settle(taken[rank])
            taken[rank] = []
        waiting = sum(inbox.bytes + OBJECTS * inbox.events for inbox in inboxes)
        away = [one for batches in taken for batch in batches for one in batch.events]
        assert budget.used == waiting + sum(OBJECTS + one.size for one in away)
        assert [inbox.held for inbox in inboxes] == [
            inbox.bytes + OBJECTS * inbox.events + sum(OBJECTS + one.size for batch in out for one in batch.events)
            for inbox, out in zip(inboxes, taken, strict=True)
        ]


class Thorough(Inbox):
    """Weighs both rows at every change, also where nothing is near a bound."""

    def _bound(self) -> None:
        limits = self._limits
        most = min(limits.inbox_events, self._mark())
        self._weigh(self._live, self._old, 1.0, most)
        self._weigh(self._old, self._live, OLD_SHARE, most)


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("offer"), st.integers(0, 2), st.integers(1, 6)),
            st.tuples(st.just("offer old"), st.integers(0, 2), st.integers(1, 6)),
            st.tuples(st.just("take"), st.integers(0, 1), st.integers(1, 8)),
            st.tuples(st.just("mark"), st.just(0), st.integers(1, 12)),
            st.tuples(st.just("bytes"), st.just(0), st.integers(1, 12)),
        ),
        max_size=40,
    )
)
def test_the_same_partitions_are_paused_when_rows_are_weighed_only_near_their_bounds(
    steps: list[tuple[str, int, int]],
) -> None:
    made: list[tuple[Inbox, set[Partition], list[float]]] = []
    for kind in (Inbox, Thorough):
        paused: set[Partition] = set()
        marks = [10.0]
        inbox = kind(LIMITS, Budget(10**6, 3), 0, paused.update, paused.difference_update, lambda marks=marks: marks[0])
        for number in range(3):
            inbox.open(flow(number))
        made.append((inbox, paused, marks))
    position = 0
    for what, which, amount in steps:
        position += amount
        for inbox, _, marks in made:
            if what.startswith("offer"):
                inbox.offer(partition(which), events(position, position + amount), is_old=what == "offer old")
            elif what == "take":
                batches = inbox.take(amount, 0.0, old=bool(which))
                for batch in batches:
                    batch.done = len(batch.events)
                inbox.settle(batches, old=bool(which))
            elif what == "mark":
                marks[0] = float(amount)
            else:
                inbox.go_by(LIMITS.model_copy(update={"inbox_bytes": 20 * amount}))
        assert made[0][1] == made[1][1]
