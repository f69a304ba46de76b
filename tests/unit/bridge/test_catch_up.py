"""What is a backlog, where its partition stands, and that its order stays whatever happens meanwhile."""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.bridge.broker import Batch
from proxy.bridge.budget import OBJECTS, OLD_PRESSURE, OWN_SHARE, Budget
from proxy.bridge.catch_up import CatchUp
from proxy.bridge.flow import PartitionFlow
from proxy.bridge.inbox import Inbox
from proxy.bridge.throttle import OpenThrottle
from proxy.model import Event, Order, Outcome, Partition
from proxy.settings import Limits
from tests.support.bridge_fakes import CountingHost
from tests.support.events import ADDRESS, PARTITION, event, events
from tests.support.world import WALL_OFFSET, World, lived

AFTER = 60.0
LIMITS = Limits(inbox_events=10, inbox_bytes=10_000, event_bytes=1000, inboxes_bytes=10_000)
OTHER = Partition(PARTITION.topic, 7)


@pytest.mark.parametrize(
    ("age", "is_old"), [(59.9, False), (60.1, True), (3_600.0, True), (-5.0, False), (None, False)]
)
def test_records_are_old_when_the_first_of_them_is_older_than_the_setting(age: float | None, is_old: bool) -> None:
    wall = 1_000_000.0
    stamp = None if age is None else int((wall - age) * 1000)
    read = [event(0, timestamp_ms=stamp), event(1, timestamp_ms=int(wall * 1000))]
    assert CatchUp(AFTER, OpenThrottle(), 1).is_old(read, wall) is is_old


# -- the partition ----------------------------------------------------------------------------------------------------


def flow(number: int = 0, order: Order = Order.PARTITION) -> PartitionFlow:
    return PartitionFlow(Partition("orders", number), order, ADDRESS, 1, 10**6, CountingHost(), 2)


def test_a_partition_catches_up_until_the_next_event_is_one_that_was_young_when_it_was_read() -> None:
    one = flow()
    one.offer(events(0, 3), 3, is_old=True)
    one.offer(events(3, 5), 2)
    told = []
    while one.waiting:
        told.append(one.catches_up)
        one.take(1, 0.0)
    assert told == [True, True, True, False, False]
    assert not one.catches_up


def test_a_partition_catches_up_again_when_it_is_read_late_again() -> None:
    one = flow()
    one.offer(events(0, 2), 2)
    assert not one.catches_up
    one.offer(events(2, 4), 2, is_old=True)
    assert one.catches_up, "what waits before an old one is no younger"


def test_batches_tell_the_lane_where_they_stand() -> None:
    one = flow()
    one.offer(events(0, 2), 2, is_old=True)
    batches = []
    for is_old in (True, False):
        one.is_old = is_old
        batch = one.take(1, 0.0)
        assert batch is not None
        batches.append((batch.rank, batch.is_old))
    assert batches == [(2, True), (1, False)]


# -- the inbox --------------------------------------------------------------------------------------------------------


class Rows:
    """An inbox with live partition 0 and old partition 1, and what the log pauses."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        self.budget = Budget(limits.inboxes_bytes, 3)
        self.paused: set[Partition] = set()
        self.inbox = Inbox(limits, self.budget, 1, self.paused.update, self.paused.difference_update)
        self.flows = [flow(number) for number in range(3)]
        for one in self.flows:
            self.inbox.open(one)

    def offer(self, number: int, start: int, end: int, *, is_old: bool = False) -> None:
        self.inbox.offer(self.flows[number].partition, events(start, end), is_old=is_old)

    def taken(self, limit: int, *, old: bool) -> list[tuple[int, int]]:
        """Take and settle; return partition and number of events of each batch."""
        batches = self.inbox.take(limit, 0.0, old=old)
        self.finish(batches, old=old)
        return [(batch.partition.number, len(batch.events)) for batch in batches]

    def finish(self, batches: list[Batch], *, old: bool) -> None:
        for batch in batches:
            batch.done = len(batch.events)
            batch.recipient.on_outcome(batch, 0, batch.done, Outcome.CONFIRMED)
        self.inbox.settle(batches, old=old)


def test_a_whole_partition_stands_in_the_row_of_those_that_catch_up() -> None:
    rows = Rows()
    rows.offer(0, 0, 2)
    rows.offer(1, 0, 3, is_old=True)
    rows.offer(1, 3, 5)
    assert [rows.inbox.ready(0.0, old=old)[0] for old in (False, True)] == [2, 5]
    assert rows.inbox.catching_up == 1
    assert rows.taken(10, old=False) == [(0, 2)]
    assert rows.taken(3, old=True) == [(1, 3)]
    assert [rows.inbox.ready(0.0, old=old)[0] for old in (False, True)] == [2, 0], "it has caught up"
    assert rows.inbox.catching_up == 0


def test_a_partition_changes_rows_only_when_the_lane_has_written_all_that_was_taken_of_it() -> None:
    rows = Rows()
    rows.offer(1, 0, 3, is_old=True)
    batches = rows.inbox.take(3, 0.0, old=True)
    rows.offer(1, 3, 5)
    assert [rows.inbox.ready(0.0, old=old)[0] for old in (False, True)] == [0, 2], "it could overtake what the lane has"
    rows.finish(batches, old=True)
    assert [rows.inbox.ready(0.0, old=old)[0] for old in (False, True)] == [2, 0]


def test_a_backlog_fills_half_of_the_inbox_and_leaves_the_other_to_what_is_live() -> None:
    rows = Rows()
    rows.offer(1, 0, 4, is_old=True)
    assert not rows.paused
    rows.offer(1, 4, 5, is_old=True)
    assert rows.paused == {rows.flows[1].partition}
    rows.offer(0, 0, 4)
    assert rows.paused == {rows.flows[1].partition}
    rows.offer(2, 0, 1)
    assert rows.paused == {one.partition for one in rows.flows}, "all of it is full"
    assert rows.inbox.is_paused
    rows.taken(3, old=False)
    assert rows.paused == {rows.flows[1].partition}, "what is live is read again at half of what is left to it"
    rows.taken(3, old=True)
    assert rows.paused == set()


def test_a_backlog_is_not_read_while_what_is_live_fills_the_inbox() -> None:
    rows = Rows()
    rows.offer(1, 0, 1, is_old=True)
    rows.offer(0, 0, 8)
    assert not rows.paused
    rows.offer(0, 8, 9)
    assert rows.paused == {one.partition for one in rows.flows}


def test_a_partition_that_changes_rows_is_read_as_its_new_row_is() -> None:
    rows = Rows()
    rows.offer(1, 0, 5, is_old=True)
    rows.offer(2, 0, 1, is_old=True)
    assert rows.paused == {rows.flows[1].partition, rows.flows[2].partition}
    rows.taken(5, old=True)
    rows.offer(1, 5, 10, is_old=True)
    assert rows.paused == {rows.flows[1].partition, rows.flows[2].partition}
    rows.taken(1, old=True)
    assert rows.paused == {rows.flows[1].partition}, "nothing old waits of the other any more"


def test_backlogs_are_paused_first_when_the_budget_is_short() -> None:
    rows = Rows(LIMITS.model_copy(update={"inbox_events": 100}))
    filler = rows.budget.join(Rows().inbox, 0)
    own = int(OWN_SHARE * LIMITS.inboxes_bytes) // 2
    filler.add(own + int(OLD_PRESSURE * LIMITS.inboxes_bytes) - int(OLD_PRESSURE * 2 * own))
    count = int(OLD_PRESSURE * own) // (1 + OBJECTS) - 1  # one more would exceed it
    for number in range(count):
        rows.offer(1, number, number + 1, is_old=True)
    assert not rows.paused
    rows.offer(1, count, count + 1, is_old=True)
    assert rows.paused == {rows.flows[1].partition}
    filler.add(-filler.used)
    assert not rows.paused


def test_nothing_is_left_of_a_partition_that_catches_up_when_its_epoch_ends() -> None:
    rows = Rows()
    rows.offer(1, 0, 5, is_old=True)
    batches = rows.inbox.take(2, 0.0, old=True)
    rows.inbox.close(rows.flows[1].partition)
    rows.inbox.open(flow(1))
    rows.offer(1, 0, 1)
    rows.inbox.settle(batches, old=True)
    assert [rows.inbox.ready(0.0, old=old)[0] for old in (False, True)] == [1, 0]
    assert (rows.budget.used, rows.inbox.bytes) == (1 + OBJECTS, 1)


# -- the listener -----------------------------------------------------------------------------------------------------


class Shut:
    """A throttle that admits nothing."""

    batch_size = None

    def __init__(self) -> None:
        self.asked = 0
        self.open = asyncio.Event()

    async def admit(self, want: int, *, size: float, again: bool) -> int:
        del size, again
        self.asked += 1
        await self.open.wait()
        return want

    def settle(self, events: int, size: int) -> None:
        """Do nothing."""

    async def admit_letters(self, count: int, *, size: float) -> None:
        """Do nothing."""

    def lift(self, rank: int | None) -> None:
        """There are no classes."""


def old(number: int) -> Event:
    stamp = int((WALL_OFFSET - 3_600) * 1000)
    return event(number, timestamp_ms=stamp + number)


def caught(story: Callable[[World, Shut], Awaitable[None]], **traits: Any) -> None:
    """Live a story whose old events are admitted when the test says so."""
    shut: list[Shut] = []

    def tier() -> CatchUp:
        shut.append(Shut())
        return CatchUp(AFTER, shut[0], 1)

    async def told(world: World) -> None:
        await story(world, shut[0])

    lived(told, catch_up=tier, **traits)


def test_what_is_live_goes_while_what_is_old_of_the_same_type_waits() -> None:
    async def story(world: World, shut: Shut) -> None:
        world.assignment.on_assigned([OTHER])
        await world.feed(old(0), old(1))
        world.log.fetched = {OTHER: [world.recent(0), world.recent(1)]}
        await asyncio.sleep(0.3)
        assert [batch.partition for batch in world.lane.batches] == [OTHER]
        assert (shut.asked, world.listener.stage, world.listener.inbox.catching_up) == (1, "rate", 1)
        shut.open.set()
        await asyncio.sleep(0.1)
        assert [(batch.partition, batch.is_old, batch.rank) for batch in world.lane.batches[1:]] == [
            (PARTITION, True, 1)
        ]
        world.lane.finish()
        assert (world.tally.confirmed, world.tally.old) == (4, 2)

    caught(story)


def test_a_revoked_backlog_ends_at_once_when_it_waits_for_slots() -> None:
    async def story(world: World, shut: Shut) -> None:
        world.lane.room = asyncio.Semaphore(1)
        shut.open.set()
        await world.feed(old(0), old(1), old(2))
        assert len(world.lane.written) == 1
        revoking = asyncio.create_task(world.assignment.on_revoked([PARTITION]))
        await asyncio.sleep(0.1)
        world.lane.finish_written()
        assert list(await revoking) == [PARTITION]
        assert (world.listener.inbox.events, world.listener.stage) == (0, "")

    caught(story)


def test_a_type_that_stops_sends_no_more_of_its_backlog() -> None:
    async def story(world: World, shut: Shut) -> None:
        await world.feed(old(0))
        world.listener.is_stopped = True
        shut.open.set()
        await asyncio.sleep(0.1)
        assert world.lane.written == []

    caught(story)


@pytest.mark.parametrize("order", list(Order))
@given(seed=st.integers(0, 10**6))
@settings(max_examples=20)
def test_every_event_goes_in_its_order_whatever_is_old_and_whatever_fails(order: Order, seed: int) -> None:
    """Batches come old and young, tiers open and shut, slots are short, some are nacked; `none` may invert those."""
    chance = Random(seed)

    async def story(world: World, shut: Shut) -> None:
        world.lane.room = asyncio.Semaphore(0)
        number = 0
        for _ in range(30):
            if chance.random() < 0.6:
                count, is_old = chance.randint(1, 4), chance.random() < 0.5
                fed = [old(at) if is_old else world.recent(at) for at in range(number, number + count)]
                number += count
                await world.feed(*fed)
            (shut.open.set if chance.random() < 0.5 else shut.open.clear)()
            world.lane.give_room(chance.randint(0, 3))
            await asyncio.sleep(0.01)
            if chance.random() < 0.4:
                world.lane.finish(Outcome.NACKED if chance.random() < 0.3 else Outcome.CONFIRMED)
        shut.open.set()
        world.lane.give_room(10**6)
        for _ in range(200):
            if world.tally.confirmed == number:
                break
            world.lane.finish()
            await asyncio.sleep(0.1)
        assert world.tally.confirmed == number
        last = -1
        if order is not Order.NONE:
            for position in [int(str(one.position)[1:]) for one in world.lane.written]:
                assert position <= last + 1, "nothing is sent before what comes before it"
                last = max(last, position)

    caught(story, order=order)
