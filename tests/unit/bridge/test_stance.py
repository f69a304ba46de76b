"""What a person has said of an event type: it waits, or what waits is discarded."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.bridge.budget import Budget
from proxy.bridge.catch_up import CatchUp
from proxy.bridge.event_log import Beginning
from proxy.bridge.flow import PartitionFlow
from proxy.bridge.inbox import Inbox
from proxy.bridge.throttle import OpenThrottle
from proxy.model import Mode, Order, Outcome, Stance
from proxy.records import Committed, Discard
from proxy.settings import Limits
from tests.support.bridge_fakes import CountingHost
from tests.support.events import ADDRESS, PARTITION, event, events
from tests.support.world import World, lived

PAUSE, DISCARD, RUN = Stance(Mode.PAUSE, "ann"), Stance(Mode.DISCARD, "ann", "a flood"), Stance()


def positions(start: int, end: int) -> list[str]:
    return [f"p{number}" for number in range(start, end)]


def recorded(world: World) -> int:
    """Return how many events are recorded as discarded."""
    world.assignment._account.write()  # type: ignore[attr-defined]  # books
    return sum(one.count for one in world.recorded if isinstance(one, Discard))


def delivered(world: World) -> int:
    """Return how many events are recorded as delivered."""
    return sum(told.delivered for one in world.recorded if isinstance(one, Committed) for told in one.ranges)


def test_nothing_is_written_while_a_type_is_paused_and_all_of_it_in_order_when_it_runs_again() -> None:
    async def story(world: World) -> None:
        world.listener.take(PAUSE)
        await world.feed(*events(0, 20))
        await asyncio.sleep(30)
        assert (world.written, world.log.committed) == ([], {})
        world.listener.take(RUN)
        await asyncio.sleep(1)
        world.lane.finish()
        await asyncio.sleep(1)
        assert world.written == positions(0, 20)
        assert world.log.committed == {PARTITION: "p19"}

    lived(story)


def test_what_the_lane_has_not_written_waits_too_when_a_type_is_paused() -> None:
    async def story(world: World) -> None:
        world.lane.room = asyncio.Semaphore(3)
        await world.feed(*events(0, 20))
        world.listener.take(PAUSE)
        world.lane.give_room(1000)
        await asyncio.sleep(5)
        assert world.written == positions(0, 3)
        world.lane.finish_written()
        world.listener.take(RUN)
        await asyncio.sleep(1)
        assert world.written == positions(0, 20)

    lived(story)


def test_nothing_is_written_when_a_type_is_paused_while_its_throttle_makes_it_wait() -> None:
    async def story(world: World) -> None:
        await world.feed(*events(0, 100))
        sent = len(world.written)
        world.listener.take(PAUSE)
        await asyncio.sleep(5)
        assert 15 <= len(world.written) == sent < 100

    lived(story, policy="per_type")


@pytest.mark.parametrize("order", list(Order))
def test_what_waits_is_committed_unsent_when_a_type_discards(order: Order) -> None:
    async def story(world: World) -> None:
        world.listener.take(DISCARD)
        await world.feed(*events(0, 50))
        await asyncio.sleep(2)
        assert world.written == []
        assert world.log.committed == {PARTITION: "p49"}
        world.listener.take(RUN)
        await world.feed(*events(50, 52))
        world.lane.finish()
        await asyncio.sleep(1)
        assert world.written[0] == "p50"

    lived(story, order=order)


def test_a_type_discards_on_when_the_lane_takes_nothing() -> None:
    async def story(world: World) -> None:
        world.lane.room = asyncio.Semaphore(0)
        await world.feed(*events(0, 50))
        world.listener.take(DISCARD)
        await world.feed(*events(50, 90))
        await asyncio.sleep(2)
        assert world.log.committed == {PARTITION: "p89"}

    lived(story)


def test_what_is_in_flight_keeps_its_place_when_what_is_behind_it_is_discarded() -> None:
    async def story(world: World) -> None:
        world.assignment.on_begun(PARTITION, Beginning("id", 0, None, None))
        await world.feed(*events(0, 1))
        await world.feed(*events(1, 3))
        world.listener.take(DISCARD)
        await world.feed(*events(3, 6))
        first, *others = world.lane.batches
        world.lane.batches = [first]
        world.lane.finish()
        world.lane.batches = others
        await asyncio.sleep(2)
        assert world.log.committed == {PARTITION: "p0"}, "two have no outcome yet"
        assert recorded(world) == 0
        world.lane.finish()
        await asyncio.sleep(1)
        assert world.written == positions(0, 3)
        assert world.log.committed == {PARTITION: "p5"}
        assert recorded(world) == 3

    lived(story)


def test_what_was_sent_in_vain_is_discarded_when_it_comes_back() -> None:
    async def story(world: World) -> None:
        await world.feed(*events(0, 3))
        world.listener.take(DISCARD)
        world.lane.finish(Outcome.NACKED)
        await asyncio.sleep(2)
        assert world.written == positions(0, 3)
        assert world.log.committed == {PARTITION: "p2"}

    lived(story)


def test_what_catches_up_is_discarded_too() -> None:
    async def story(world: World) -> None:
        world.listener.take(DISCARD)
        await world.feed(*(event(number, timestamp_ms=1) for number in range(30)))
        await asyncio.sleep(2)
        assert world.log.committed == {PARTITION: "p29"}

    lived(story, catch_up=lambda: CatchUp(10.0, OpenThrottle(), 2))


def test_what_was_discarded_and_committed_is_told_with_who_asked_for_it() -> None:
    async def story(world: World) -> None:
        world.assignment.on_begun(PARTITION, Beginning("id", 0, None, None))
        await world.feed(*events(0, 4))
        world.listener.take(DISCARD)
        world.lane.finish()
        for fetch in range(1, 5):
            await world.feed(*events(4 * fetch, 4 * fetch + 4))
            await asyncio.sleep(1)
        world.listener.take(RUN)
        await world.feed(*events(20, 24))
        world.lane.finish()
        await asyncio.sleep(1)
        world.listener.take(DISCARD)
        await world.feed(*events(24, 28))
        await asyncio.sleep(1)
        world.assignment._account.write()  # type: ignore[attr-defined]  # books
        told = [one for one in world.recorded if isinstance(one, Discard)]
        assert [(one.first, one.end, one.count) for one in told] == [(4, 20, 16), (24, 28, 4)]
        assert {(one.by, one.why) for one in told} == {("ann", "a flood")}
        assert delivered(world) == 8

    lived(story)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("offer"), st.integers(1, 5)),
        st.tuples(st.just("take"), st.integers(1, 5)),
        st.tuples(st.just("discard"), st.integers(1, 5)),
        st.tuples(st.just("end"), st.sampled_from([Outcome.CONFIRMED, Outcome.NACKED, Outcome.UNKNOWN])),
    ),
    max_size=40,
)


@given(STEPS, st.sampled_from(list(Order)))
def test_every_event_is_confirmed_or_discarded_and_never_both_whatever_comes_between(
    steps: list[tuple[str, object]], order: Order
) -> None:
    inbox = Inbox(Limits(), Budget(1 << 30, 1), 0, lambda _: None, lambda _: None)
    flow = PartitionFlow(PARTITION, order, ADDRESS, 0, 1_000, CountingHost())
    inbox.open(flow)
    offered, now = 0, 0.0
    out, confirmed, discarded = [], [], []
    for step, what in steps:
        now += 1.0
        if step == "offer":
            inbox.offer(PARTITION, events(offered, offered + int(str(what))))
            offered += int(str(what))
        elif step == "take":
            for batch in inbox.take(int(str(what)), now):
                batch.done = len(batch.events)
                out.append(batch)
            inbox.settle(out[-1:])
        elif step == "discard":
            inbox.discard(int(str(what)), now, lambda f, b: (discarded.extend(b.events), f.be_done(b))[0])
        elif out:
            batch = out.pop(0)
            if what is Outcome.CONFIRMED:
                confirmed += batch.events
            flow.on_outcome(batch, 0, len(batch.events), Outcome(what))
    while out or flow.waiting:
        now += 1.0
        for batch in out:
            confirmed += batch.events
            flow.on_outcome(batch, 0, len(batch.events), Outcome.CONFIRMED)
        out = []
        inbox.discard(100, now, lambda f, b: (discarded.extend(b.events), f.be_done(b))[0])
    assert sorted(int(str(one.position)[1:]) for one in (*confirmed, *discarded)) == list(range(offered))
    assert flow.watermark.resolved == offered
    assert inbox.events == 0
