"""What every `EventLog` does, proved on Nakadi, and where Nakadi's rules differ, what it does instead."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from pydantic import ValidationError

from proxy.bridge.event_log import EventLog, Extent
from proxy.bridge.move import Direction, Move
from proxy.model import Partition
from tests.contract.log_adapters import DEADLINE, Owner, World, poll_until, receive, until
from tests.contract.nakadi_adapter import NakadiWorld
from tests.contract.test_event_log import (
    EventLogContract,
    Join,
    assigned,
    four_of_ten_committed,
    join,
    numbered,
    ten_read_of_a_hundred,
    three_read,
    topic,
)

__all__ = ["join", "topic"]

NEW = [b"new %d" % number for number in range(120)]
"""What is in a topic that was made anew."""
START = "test_reading_begins_where_the_settings_say_when_nothing_was_committed"


async def end_streams(world: World) -> None:
    """Have all streams end as they do every hour."""
    assert isinstance(world, NakadiWorld)
    for found in world.bus.subscriptions.values():
        for stream in list(found.streams.values()):
            stream.ends_at = 0.0
            stream.on_change()


async def both_poll_until(is_so: Callable[[], bool], *replicas: tuple[EventLog, Owner]) -> None:
    """Poll in turn, handing everything to the owners, until the condition holds."""

    async def is_so_now() -> bool:
        for log, owner in replicas:
            owner.take(await log.poll(0.02))
        return is_so()

    await until(is_so_now)


class TestNakadiLog(EventLogContract):
    @pytest.fixture
    async def world(self) -> AsyncIterator[World]:
        async with NakadiWorld.open() as world:
            yield world

    # -- where Nakadi's rules are others ------------------------------------------------------------------------------

    async def test_reading_goes_on_behind_what_is_skipped_once_when_a_cursor_is_moved_forward(
        self, world: World, topic: str, join: Join
    ) -> None:
        assert await self._moved(world, topic, join, to=70) == numbered(30, first=70)

    async def test_reading_goes_back_once_when_a_cursor_is_moved_back(
        self, world: World, topic: str, join: Join
    ) -> None:
        assert await self._moved(world, topic, join, to=10) == numbered(90, first=10)

    async def test_offsets_without_events_at_the_end_are_done_with_and_dropped_untold_when_all_before_them_is(
        self, world: World, topic: str, join: Join
    ) -> None:
        """A stream says nothing of what is no event: it is done with, with the next one that is."""
        partition = Partition(topic, 0)
        log, owner = await three_read(world, topic, join)
        gap = await world.leave_gap(topic)
        assert await log.commit(owner.finish()) == {partition: 3}
        await world.produce(topic, numbered(1, first=3))
        await receive(log, owner, 4)
        assert await log.commit(owner.finish()) == {partition: 4 + gap}
        assert not owner.passed

    # They wait for the next event anyway.
    test_offsets_without_events_at_the_end_wait_for_those_before_them_when_these_are_not_done_with = None
    test_offsets_without_events_are_done_with_when_nothing_else_was_left_for_the_next_member = None

    async def _moved(self, world: World, topic: str, join: Join, to: int) -> list[bytes | None]:
        """Somebody moves the cursor by Nakadi's own call: the streams end, and reading begins anew where it stands.

        Return what comes after that.
        """
        assert isinstance(world, NakadiWorld)
        await world.create(topic)
        partition = Partition(topic, 0)
        await world.produce(topic, numbered(100))
        log, owner = await join()
        await receive(log, owner, 100)
        await log.commit(owner.finish())
        [found] = world.bus.subscriptions.values()
        found.move({(topic, "0"): to}, world.now())
        await receive(log, owner, 100 + 100 - to)
        assert owner.beginnings[-1][1].first == to
        assert not owner.lost
        return owner.values(partition)[100:]

    async def test_nothing_is_moved_when_the_move_is_of_another_topic_or_changes_nothing(
        self, world: World, topic: str, join: Join
    ) -> None:
        """Nor by a plan at all: there is no board on which one could stand."""
        await world.create(topic)
        log, owner = await join()
        await assigned(log, owner)
        assert log.move({Partition(topic, 0): Move("1-ab", Direction.SKIP, "", 0, 9, "me", None)}) == ()

    async def test_a_commit_tells_what_was_taken_when_one_of_its_topics_is_gone(
        self, world: World, topic: str, join: Join
    ) -> None:
        """One that is subscribed to can't be deleted; its subscription can."""
        assert isinstance(world, NakadiWorld)
        other = f"{topic}.other"
        for name in (topic, other):
            await world.create(name)
            await world.produce(name, numbered(5))
        log, owner = await join(topics=frozenset({topic, other}))
        await receive(log, owner, 10)
        gone = next(one for one in world.bus.subscriptions.values() if other in one.event_types)
        world.bus.unsubscribe(gone.id, world.now())
        world.bus.delete(other)
        assert set(await log.commit(owner.finish())) == {Partition(topic, 0)}
        await until(log.doubts_topics)
        assert (await log.survey([other])).missing == {other}

    @pytest.mark.parametrize(("settings", "expected"), [({"start": "earliest"}, 11), ({"start": "latest"}, 1)])
    async def test_reading_begins_where_the_settings_say_when_nothing_was_committed(
        self, world: World, topic: str, join: Join, settings: dict[str, Any], expected: int
    ) -> None:
        await getattr(EventLogContract, START)(self, world, topic, join, settings, expected)

    def test_no_time_can_be_begun_at_when_the_log_is_nakadi(self) -> None:
        with pytest.raises(ValidationError, match="start_timestamp must be left out"):
            NakadiWorld(None, "http://nowhere").log("g", start="timestamp", start_timestamp="2033-11-14T22:13:20Z")  # type: ignore[arg-type]

    async def test_a_loss_is_counted_once_when_nothing_follows_it_and_another_takes_over(
        self, world: World, topic: str, join: Join
    ) -> None:
        """Only what was sent can be committed: until something follows, the loss is told to each that begins there."""
        await world.create(topic)
        log, owner = await ten_read_of_a_hundred(world, topic, join, truncated_to=100)
        await poll_until(log, owner, lambda: bool(owner.lost))
        await log.commit(owner.finish())
        await log.stop()
        log, successor = await join()
        await world.produce(topic, numbered(1, first=100))
        await receive(log, successor, 1)
        assert owner.lost == successor.lost == [(Partition(topic, 0), 90)]
        await log.commit(successor.finish())
        await log.stop()
        log, third = await join()
        await assigned(log, third)
        assert third.lost == []

    async def test_offsets_without_events_count_as_lag_and_are_passed_when_others_are_read(
        self, world: World, topic: str, join: Join
    ) -> None:
        """Nakadi counts events; numbers that are left out were lost, unless the event type is compacted."""
        assert isinstance(world, NakadiWorld)
        partition, compacted = Partition(topic, 0), f"{topic}.compacted"
        await world.create(topic)
        world.bus.create(compacted, cleanup_policy="compact")
        for name in (topic, compacted):
            await world.produce(name, numbered(3))
            gap = await world.leave_gap(name)
            await world.produce(name, numbered(2, first=3))
        log, owner = await join(topics=frozenset({topic, compacted}), nakadi={"batch_events": 50})
        await receive(log, owner, 10)
        assert owner.values(partition) == owner.values(Partition(compacted, 0)) == numbered(5)
        positions = [event.position for event in owner.received[Partition(compacted, 0)]]
        assert positions == [0, 1, 2, 3 + gap, 4 + gap], "each came with a cursor of its own"
        assert [at for at, _ in owner.lost] == [partition]

    async def test_a_new_partition_is_read_from_its_beginning_when_reading_was_to_begin_at_the_end(
        self, world: World, topic: str, join: Join
    ) -> None:
        """From the next stream on."""
        await world.create(topic)
        await world.produce(topic, numbered(10))
        log, owner = await join(start="latest")
        await assigned(log, owner)
        await world.create(topic, 2)
        await world.produce(topic, numbered(10), 1)
        await end_streams(world)
        await receive(log, owner, 10)
        assert owner.values(Partition(topic, 1)) == numbered(10)
        assert Partition(topic, 0) not in owner.received

    async def test_every_event_comes_when_a_topic_was_made_anew_and_refilled_under_its_reader(
        self, world: World, topic: str, join: Join
    ) -> None:
        owner = await self._made_anew(world, topic, join, start="earliest")
        assert owner.values(Partition(topic, 0))[-120:] == NEW

    async def test_every_event_comes_when_a_topic_was_made_anew_with_fewer_partitions_and_read_from_the_latest(
        self, world: World, topic: str, join: Join
    ) -> None:
        owner = await self._made_anew(world, topic, join, start="latest")
        assert owner.values(Partition(topic, 0))[-120:] == NEW

    async def test_every_event_comes_when_a_topic_was_made_anew_and_its_reader_left_after_a_commit(
        self, world: World, topic: str, join: Join
    ) -> None:
        owner = await self._made_anew(world, topic, join, start="earliest", leaves=True)
        assert owner.values(Partition(topic, 0))[-120:] == NEW

    async def _made_anew(self, world: World, topic: str, join: Join, *, start: str, leaves: bool = False) -> Owner:
        """With its subscription, or it could not be deleted: so nothing is committed in the new one.

        Return who reads the new one, once all of it has come.
        """
        assert isinstance(world, NakadiWorld)
        await world.create(topic)
        log, owner = await join(start=start)
        await assigned(log, owner)
        await world.produce(topic, numbered(50))
        await receive(log, owner, 50)
        await log.commit(owner.finish())
        if leaves:
            await log.stop()
        [found] = world.bus.subscriptions.values()
        world.bus.unsubscribe(found.id, world.now())
        world.bus.delete(topic)
        if start == "latest":
            await until(lambda: self._is_missing(log, topic))
        await world.create(topic)
        await world.produce(topic, NEW)
        if leaves:
            log, owner = await join(start=start)
        await poll_until(log, owner, lambda: owner.values(Partition(topic, 0))[-120:] == NEW)
        assert not owner.lost
        return owner

    @staticmethod
    async def _is_missing(log: Any, topic: str) -> bool:
        return topic in (await log.survey([topic])).missing

    async def test_nothing_is_passed_over_when_a_topic_comes_back_and_reading_starts_at_the_latest(
        self, world: World, topic: str, join: Join
    ) -> None:
        owner = await self._made_anew(world, topic, join, start="latest")
        assert owner.values(Partition(topic, 0))[-120:] == NEW

    async def test_progress_tells_what_others_commit_in_whatever_topics_when_they_share_the_group(
        self, world: World, topic: str, join: Join
    ) -> None:
        """In the event types that this replica reads: of other subscriptions it doesn't know."""
        await world.create(topic, 2)
        for number in (0, 1):
            await world.produce(topic, numbered(30), number)
        first, owner = await join()
        await receive(first, owner, 60)
        await first.commit(owner.finish())
        assert await first.progress() == {}
        second, another = await join()
        await both_poll_until(lambda: len(owner.owned) == len(another.owned) == 1, (first, owner), (second, another))
        (theirs,) = another.owned
        before = (await first.progress())[theirs]
        await world.produce(topic, numbered(5, first=30), theirs.number)
        await receive(second, another, 5)
        await second.commit(another.finish())
        assert await first.progress() == {theirs: before + 5}

    async def test_extents_are_the_same_for_all_replicas_when_each_owns_another_part(
        self, world: World, topic: str, join: Join
    ) -> None:
        await world.create(topic, 2)
        first, owner = await join()
        second, another = await join()
        await both_poll_until(lambda: len(owner.owned) == len(another.owned) == 1, (first, owner), (second, another))
        for number in (0, 1):
            await world.produce(topic, numbered(10), number)
        for log, one, done in ((first, owner, 3), (second, another, 9)):
            await receive(log, one, 10)
            (at,) = one.owned
            await log.commit({at: one.received[at][done].position})
        mine, theirs = next(iter(owner.owned)), next(iter(another.owned))
        expected = {mine: Extent(4, 10), theirs: Extent(10, 10)}
        assert await first.extents([topic]) == await second.extents([topic]) == expected
        assert await first.extents(["another"]) == {}

    async def test_the_last_commit_of_an_assignment_counts_as_nobody_elses_progress_when_it_comes_late(
        self, world: World, topic: str, join: Join
    ) -> None:
        log, owner = await four_of_ten_committed(world, topic, join)
        owner.finish()
        owner.revoking = asyncio.Event()
        leaving = asyncio.ensure_future(log.subscribe(frozenset()))
        async with asyncio.timeout(DEADLINE):
            assert await log.progress() == {}
            assert await log.progress() == {}, "asked when the revocation had surely begun"
            owner.revoking.set()
            await leaving
        assert await log.progress() == {}, "of what it does not read it knows nothing"

    # -- Nakadi's own -------------------------------------------------------------------------------------------------

    async def test_a_commit_ends_at_the_border_of_a_batch_when_the_watermark_is_within_one(
        self, world: World, topic: str, join: Join
    ) -> None:
        await world.create(topic)
        partition = Partition(topic, 0)
        await world.produce(topic, numbered(25))
        log, owner = await join(nakadi={"batch_events": 10})
        await receive(log, owner, 25)
        events = owner.received[partition]
        assert [event.position for event in events] == list(range(25))
        assert await log.commit({partition: events[8].position}) == {}
        assert await log.commit({partition: events[21].position}) == {partition: 20}
        assert await log.commit({partition: events[23].position}) == {}
        assert await log.commit({partition: events[24].position}) == {partition: 25}

    async def test_reading_goes_on_without_a_repetition_when_a_stream_ends_by_itself(
        self, world: World, topic: str, join: Join
    ) -> None:
        await world.create(topic)
        partition = Partition(topic, 0)
        await world.produce(topic, numbered(20))
        log, owner = await join(nakadi={"batch_events": 10})
        await receive(log, owner, 20)
        await end_streams(world)
        await world.produce(topic, numbered(10, first=20))
        await log.commit(owner.finish())
        await receive(log, owner, 30)
        assert owner.values(partition) == numbered(30)
        assert len(owner.assignments) == 2

    async def test_nothing_is_told_as_lost_when_a_partition_was_at_another_replica_for_a_moment(
        self, world: World, topic: str, join: Join
    ) -> None:
        """It comes back in the same stream, further on, and nothing says that it was away: no part of what came between
        is this replica's.
        """
        await world.create(topic, 2)
        for number in (0, 1):
            await world.produce(topic, numbered(10), number)
        first, owner = await join()
        await receive(first, owner, 20)
        await first.commit(owner.finish())
        second, another = await join()
        # Before the first has noticed that it has gone.
        await both_poll_until(lambda: bool(another.owned), (first, owner), (second, another))
        assert len(owner.owned) == 2
        (lent,) = another.owned
        await world.produce(topic, numbered(5, first=10), lent.number)
        await receive(second, another, 5)
        await second.commit(another.finish())
        await second.stop()
        await world.produce(topic, numbered(5, first=15), lent.number)
        await receive(first, owner, 25)
        assert owner.values(lent) == numbered(10) + numbered(5, first=15)
        assert owner.lost == []
        begun = [beginning.first for at, beginning in owner.beginnings if at == lent]
        assert begun == [0, 15]
        assert await first.commit(owner.finish()) == {lent: 20}

    @pytest.mark.parametrize("start", ["latest", "earliest"])
    async def test_reading_goes_on_where_it_was_when_somebody_deletes_the_subscription(
        self, world: World, topic: str, join: Join, start: str
    ) -> None:
        """Nothing is passed over, and nothing that was committed comes again."""
        assert isinstance(world, NakadiWorld)
        await world.create(topic, 2)
        log, owner = await join(start=start)
        await assigned(log, owner, 2)
        for number in (0, 1):
            await world.produce(topic, numbered(20), number)
        await receive(log, owner, 40)
        await log.commit(owner.finish())
        [found] = world.bus.subscriptions.values()
        world.bus.unsubscribe(found.id, world.now())
        for number in (0, 1):
            await world.produce(topic, numbered(10, first=20), number)
        await receive(log, owner, 60)
        assert all(owner.values(Partition(topic, number)) == numbered(30) for number in (0, 1))
        assert not owner.lost
        [made] = world.bus.subscriptions.values()
        assert made.id != found.id

    async def test_all_that_is_kept_is_read_when_the_log_has_dropped_what_the_deleted_subscription_stood_at(
        self, world: World, topic: str, join: Join
    ) -> None:
        assert isinstance(world, NakadiWorld)
        await world.create(topic)
        log, owner = await join(start="latest")
        await assigned(log, owner)
        await world.produce(topic, numbered(20))
        await receive(log, owner, 20)
        await log.commit(owner.finish())
        [found] = world.bus.subscriptions.values()
        world.bus.unsubscribe(found.id, world.now())
        await world.produce(topic, numbered(30, first=20))
        await world.truncate(topic, 0, 40)
        await receive(log, owner, 30)
        assert owner.values(Partition(topic, 0))[20:] == numbered(10, first=40)

    async def test_all_of_a_new_partition_is_read_when_the_subscription_was_deleted_as_it_came(
        self, world: World, topic: str, join: Join
    ) -> None:
        assert isinstance(world, NakadiWorld)
        await world.create(topic)
        log, owner = await join(start="latest")
        await assigned(log, owner)
        await world.produce(topic, numbered(20))
        await receive(log, owner, 20)
        await log.commit(owner.finish())
        [found] = world.bus.subscriptions.values()
        await world.create(topic, 2)
        await world.produce(topic, numbered(10), 1)
        world.bus.unsubscribe(found.id, world.now())
        await receive(log, owner, 30)
        assert owner.values(Partition(topic, 1)) == numbered(10)
        assert owner.values(Partition(topic, 0)) == numbered(20)

    async def test_a_type_has_no_stream_and_nothing_comes_twice_when_it_is_paused_and_released(
        self, world: World, topic: str, join: Join
    ) -> None:
        assert isinstance(world, NakadiWorld)
        await world.create(topic)
        partition = Partition(topic, 0)
        await world.produce(topic, numbered(20))
        log, owner = await join(nakadi={"batch_events": 10})
        await receive(log, owner, 20)
        log.pause([partition])
        await log.commit(owner.finish())
        [found] = world.bus.subscriptions.values()
        await poll_until(log, owner, lambda: not found.streams)
        await world.produce(topic, numbered(10, first=20))
        assert await log.poll(0.3) == {}
        assert not found.streams
        log.resume([partition])
        await receive(log, owner, 30)
        assert owner.values(partition) == numbered(30)

    async def test_a_partition_is_given_up_before_nakadi_takes_it_when_nothing_of_it_is_committed(
        self, world: World, topic: str, join: Join
    ) -> None:
        """Then it begins again with one event, of which no connection is kept, and grows once that is committed."""
        assert isinstance(world, NakadiWorld)
        await world.create(topic)
        partition = Partition(topic, 0)
        await world.produce(topic, numbered(40))
        log, owner = await join(nakadi={"batch_events": 10})
        await receive(log, owner, 40)
        [found] = world.bus.subscriptions.values()
        await poll_until(log, owner, lambda: owner.revocations == [{partition}])
        assert (await log.commit({partition: owner.received[partition][9].position})) == {}
        assert await log.lags({}) == {partition: 40}, "it is nobody's, and waits"
        await receive(log, owner, 41)
        assert owner.values(partition)[40:] == numbered(1)
        await until(lambda: all(stream.state == "closing" for stream in found.streams.values()))
        await log.commit({partition: owner.received[partition][-1].position})
        await receive(log, owner, 41 + 16)
        assert owner.values(partition)[41:57] == numbered(16, first=1)

    async def test_a_stream_is_sent_nothing_in_vain_when_its_window_is_unproved(
        self, world: World, topic: str, join: Join
    ) -> None:
        """It ends by itself after its window, whatever was committed meanwhile, and the next one is larger."""
        assert isinstance(world, NakadiWorld)
        await world.create(topic)
        partition = Partition(topic, 0)
        await world.produce(topic, numbered(200))
        log, owner = await join(first_window=20, nakadi={"batch_events": 10})
        await receive(log, owner, 10)
        await log.commit({partition: owner.received[partition][9].position})
        await receive(log, owner, 20)
        [found] = world.bus.subscriptions.values()
        await until(lambda: all(stream.state == "closing" for stream in found.streams.values()))
        assert await log.lags({partition: owner.received[partition][19].position}) == {partition: 180}
        await log.commit({partition: owner.received[partition][19].position})
        await receive(log, owner, 200)
        assert owner.values(partition) == numbered(200)

    async def test_nothing_is_handed_out_twice_when_a_replica_waits_for_a_partition_that_another_has(
        self, world: World, topic: str, join: Join
    ) -> None:
        """It asks again and again, and is told that there is no place."""
        await world.create(topic)
        partition = Partition(topic, 0)
        await world.produce(topic, numbered(20))
        first, owner = await join()
        await receive(first, owner, 20)
        second, another = await join()
        assert await second.poll(0.5) == {}
        await first.commit(owner.finish())
        await first.stop()
        await world.produce(topic, numbered(5, first=20))
        await receive(second, another, 5)
        assert another.values(partition) == numbered(5, first=20)

    async def test_a_log_is_waited_for_when_its_token_is_not_issued_at_first(
        self, world: World, topic: str, join: Join, tmp_path: Any
    ) -> None:
        assert isinstance(world, NakadiWorld)
        await world.create(topic)
        await world.produce(topic, numbered(3))
        world.bus.tokens = {"one": 1e12}
        tried = tmp_path / "tried"
        program = (
            f'[ -e {tried} ] || {{ touch {tried}; exit 3; }}; echo \'{{"access_token": "one", "expires_in": 60}}\''
        )
        log, owner = await join(nakadi={"token": {"command": ["/bin/sh", "-c", program]}})
        await receive(log, owner, 3)
        assert tried.exists()
        assert owner.values(Partition(topic, 0)) == numbered(3)

    async def test_a_replica_is_let_in_again_when_its_token_was_renewed(
        self, world: World, topic: str, join: Join, tmp_path: Any
    ) -> None:
        assert isinstance(world, NakadiWorld)
        file = tmp_path / "token"
        file.write_text('{"access_token": "one", "expires_in": 3600}')
        world.bus.tokens = {"one": 1e12}
        await world.create(topic)
        await world.produce(topic, numbered(5))
        log, owner = await join(nakadi={"token": {"file": str(file)}})
        await receive(log, owner, 5)
        world.bus.tokens = {"two": 1e12}
        file.write_text('{"access_token": "two", "expires_in": 3600}')
        assert await log.commit(owner.finish()) == {Partition(topic, 0): 5}
