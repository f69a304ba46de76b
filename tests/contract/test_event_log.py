"""What every `EventLog` does, proved on the one in memory and on Kafka."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import pairwise
from typing import Any
from uuid import uuid4

import pytest

from load.stack import Stack
from proxy.bridge.event_log import EventLog, Extent
from proxy.bridge.move import Direction, Move, Moved
from proxy.errors import AssignmentLostError
from proxy.model import Partition
from tests.contract.log_adapters import (
    DEADLINE,
    KafkaWorld,
    MemoryWorld,
    Owner,
    ScriptedWorld,
    World,
    poll_until,
    receive,
    until,
)

Join = Callable[..., Awaitable[tuple[EventLog, Owner]]]


@pytest.fixture
def topic() -> str:
    return f"orders.{uuid4().hex[:8]}"


@pytest.fixture
async def join(world: World, topic: str) -> AsyncIterator[Join]:
    """Start a member of the group `group` that reads the topic; all are stopped at the end."""
    logs: list[EventLog] = []
    group = f"group-{uuid4().hex[:8]}"

    async def start(owner: Owner | None = None, **settings: Any) -> tuple[EventLog, Owner]:
        topics = settings.pop("topics", frozenset({topic}))
        log, owner = world.log(settings.pop("group", group), **settings), owner or Owner()
        logs.append(log)
        await log.start(owner)
        await log.subscribe(topics)
        return log, owner

    yield start
    for log in logs:
        await log.stop()


def numbered(count: int, first: int = 0) -> list[bytes]:
    return [b"event %d" % number for number in range(first, first + count)]


async def assigned(log: EventLog, owner: Owner, partitions: int = 1) -> None:
    await poll_until(log, owner, lambda: len(owner.owned) == partitions)


async def ten_read_of_a_hundred(world: World, topic: str, join: Join, *, truncated_to: int) -> tuple[EventLog, Owner]:
    """Return a log that has read ten events, while the log was truncated before it had seen the others."""
    partition = Partition(topic, 0)
    await world.produce(topic, numbered(10))
    log, owner = await join()
    await receive(log, owner, 10)
    log.pause([partition])
    await world.produce(topic, numbered(90, first=10))
    await world.truncate(topic, 0, truncated_to)
    log.resume([partition])
    return log, owner


async def three_read(world: World, topic: str, join: Join) -> tuple[EventLog, Owner]:
    """Return a log that has read all three events of a new topic."""
    await world.create(topic)
    await world.produce(topic, numbered(3))
    log, owner = await join()
    await receive(log, owner, 3)
    return log, owner


async def four_of_ten_committed(world: World, topic: str, join: Join) -> tuple[EventLog, Owner]:
    """Return a member that has received the topic's ten events and committed the fourth."""
    await world.create(topic)
    await world.produce(topic, numbered(10))
    log, owner = await join()
    await receive(log, owner, 10)
    partition = Partition(topic, 0)
    await log.commit({partition: owner.received[partition][3].position})
    return log, owner


class EventLogContract:
    """The tests; one class below for each log they are run on."""

    async def test_events_come_in_log_order_when_they_were_there_before(
        self, world: World, topic: str, join: Join
    ) -> None:
        await world.create(topic, 2)
        await world.produce(topic, numbered(300), 0)
        await world.produce(topic, numbered(200), 1)
        log, owner = await join()
        await receive(log, owner, 500)
        assert owner.values(Partition(topic, 0)) == numbered(300)
        assert owner.values(Partition(topic, 1)) == numbered(200)

    async def test_events_arrive_without_a_new_poll_when_one_is_waiting(
        self, world: World, topic: str, join: Join
    ) -> None:
        await world.create(topic)
        log, owner = await join()
        await assigned(log, owner)
        polling = asyncio.ensure_future(log.poll(10.0))
        await world.produce(topic, [b"late"])
        async with asyncio.timeout(5):
            owner.take(await polling)
        assert owner.values(Partition(topic, 0)) == [b"late"]

    async def test_the_loop_gets_a_turn_in_every_poll_when_much_lies_ready(
        self, world: World, topic: str, join: Join
    ) -> None:
        await world.create(topic)
        await world.produce(topic, numbered(3000))
        log, owner = await join()
        async with asyncio.timeout(DEADLINE):
            while sum(map(len, owner.received.values())) < 3000:
                turns: list[int] = []
                asyncio.get_running_loop().call_soon(turns.append, 1)
                owner.take(await log.poll(0.2))
                assert turns

    async def test_an_event_carries_all_of_its_record_when_it_is_read(
        self, world: World, topic: str, join: Join
    ) -> None:
        await world.create(topic)
        await world.produce(topic, [b"value"])
        log, owner = await join()
        await receive(log, owner, 1)
        [event] = owner.received[Partition(topic, 0)]
        assert (event.timestamp_ms, event.key, event.value, event.headers) == (1_700_000_000_000, None, b"value", ())
        assert event.size == 5

    async def test_nothing_comes_from_a_partition_when_it_is_paused(self, world: World, topic: str, join: Join) -> None:
        await world.create(topic, 2)
        still, moving = Partition(topic, 0), Partition(topic, 1)
        log, owner = await join()
        await assigned(log, owner, 2)
        log.pause([still, Partition("not owned", 7)])
        await world.produce(topic, numbered(50), 0)
        await world.produce(topic, numbered(50), 1)
        await poll_until(log, owner, lambda: len(owner.received.get(moving, [])) == 50)
        owner.take(await log.poll(0.3))
        assert still not in owner.received
        log.resume([still, Partition("not owned", 7)])
        await receive(log, owner, 100)
        assert owner.values(still) == numbered(50)

    async def test_no_event_is_lost_or_repeated_when_partitions_are_paused_and_resumed_all_the_time(
        self, world: World, topic: str, join: Join
    ) -> None:
        await world.create(topic, 2)
        partitions = [Partition(topic, 0), Partition(topic, 1)]
        for number in (0, 1):
            await world.produce(topic, [value * 40 for value in numbered(2000)], number)
        log, owner = await join(fetch_bytes=65536)
        turn = 0
        async with asyncio.timeout(DEADLINE):
            while sum(map(len, owner.received.values())) < 4000:
                owner.take(await log.poll(0.05))
                log.pause([partitions[turn % 2]])
                log.resume([partitions[(turn + 1) % 2]])
                turn += 1
        for partition in partitions:
            assert owner.values(partition) == [value * 40 for value in numbered(2000)]

    async def test_the_owner_keeps_a_partition_paused_when_it_says_so_at_the_assignment(
        self, world: World, topic: str, join: Join
    ) -> None:
        await world.create(topic, 2)
        still, moving = Partition(topic, 0), Partition(topic, 1)
        await world.produce(topic, numbered(20), 0)
        await world.produce(topic, numbered(20), 1)
        owner = Owner()
        owner.paused = [still]
        log, _ = await join(owner)
        await poll_until(log, owner, lambda: len(owner.received.get(moving, [])) == 20)
        owner.take(await log.poll(0.3))
        assert still not in owner.received
        log.resume([still])
        await receive(log, owner, 40)

    async def test_the_next_member_begins_behind_the_commit_when_the_first_has_left(
        self, world: World, topic: str, join: Join
    ) -> None:
        await world.create(topic)
        partition = Partition(topic, 0)
        await world.produce(topic, numbered(100))
        log, owner = await join()
        await receive(log, owner, 100)
        await log.commit({partition: owner.received[partition][59].position, Partition("not owned", 7): "#1"})
        await log.stop()
        log, owner = await join()
        await receive(log, owner, 40)
        assert owner.values(partition) == numbered(40, first=60)

    async def test_reading_goes_on_behind_what_is_skipped_once_when_a_cursor_is_moved_forward(
        self, world: World, topic: str, join: Join
    ) -> None:
        await world.create(topic)
        partition = Partition(topic, 0)
        await world.produce(topic, numbered(40))
        log, owner = await join()
        await receive(log, owner, 40)
        await log.commit({partition: owner.received[partition][19].position})
        owner.final = {partition: owner.received[partition][29].position}
        log.pause([partition])
        await world.produce(topic, numbered(60, first=40))
        move = Move("1-ab", Direction.SKIP, owner.beginnings[0][1].topic_id, 20, 70, "me", None)
        assert log.move({partition: move}) == [partition]
        await poll_until(log, owner, lambda: bool(owner.moved))
        assert owner.moved == [Moved(partition, move, 30, 70)]
        await receive(log, owner, 40 + 30)
        assert owner.values(partition)[40:] == numbered(30, first=70)
        assert (owner.beginnings[-1][1].first, owner.beginnings[-1][1].committed) == (70, 70)
        await log.commit({partition: owner.received[partition][44].position})
        await log.stop()
        log, owner = await join()
        await assigned(log, owner)
        await receive(log, owner, 25)
        assert log.move({partition: move}) == [], "every commit after it repeats that it was made"
        assert owner.values(partition) == numbered(25, first=75)

    async def test_reading_goes_back_once_when_a_cursor_is_moved_back(
        self, world: World, topic: str, join: Join
    ) -> None:
        await world.create(topic)
        partition = Partition(topic, 0)
        await world.produce(topic, numbered(50))
        log, owner = await join()
        await receive(log, owner, 50)
        owner.final = {partition: owner.received[partition][-1].position}
        await log.commit(owner.final)
        move = Move("1-ab", Direction.REWIND, owner.beginnings[0][1].topic_id, 50, 10, "me", None)
        log.move({partition: move})
        await poll_until(log, owner, lambda: bool(owner.moved))
        assert owner.moved == [Moved(partition, move, 50, 10)]
        await receive(log, owner, 50 + 40)
        assert owner.values(partition)[50:] == numbered(40, first=10)
        assert owner.beginnings[-1][1].again == 50
        await log.stop()
        log, owner = await join()
        await receive(log, owner, 40)
        assert owner.values(partition) == numbered(40, first=10)
        assert log.move({partition: move}) == []

    async def test_nothing_is_moved_when_the_move_is_of_another_topic_or_changes_nothing(
        self, world: World, topic: str, join: Join
    ) -> None:
        await world.create(topic)
        partition = Partition(topic, 0)
        await world.produce(topic, numbered(10))
        log, owner = await join()
        await receive(log, owner, 10)
        topic_id = owner.beginnings[0][1].topic_id
        assert log.move({partition: Move("1-ab", Direction.SKIP, "another", 0, 9, "me", None)}) == []
        for number, (direction, first, to) in enumerate(
            [(Direction.SKIP, 5, 9), (Direction.SKIP, 0, 0), (Direction.REWIND, 0, 5)], 2
        ):
            wanted = {partition: Move(f"{number}-ab", direction, topic_id, first, to, "me", None)}
            log.move(wanted)
            await poll_until(log, owner, lambda wanted=wanted: not log.move(wanted))
        await world.produce(topic, numbered(5, first=10))
        await receive(log, owner, 15)
        assert (owner.moving, owner.moved) == ([], [])

    async def test_the_last_positions_are_committed_when_partitions_are_revoked(
        self, world: World, topic: str, join: Join
    ) -> None:
        await world.create(topic, 2)
        first, owner = await join()
        for number in (0, 1):
            await world.produce(topic, numbered(100), number)
        await receive(first, owner, 200)
        owner.finish()
        second, other = await join()

        async def poll_both() -> bool:
            owner.take(await first.poll(0.02))
            other.take(await second.poll(0.02))
            return len(owner.owned) == len(other.owned) == 1

        async with asyncio.timeout(DEADLINE):
            while not await poll_both():
                pass
        for number in (0, 1):
            await world.produce(topic, numbered(10, first=100), number)
        async with asyncio.timeout(DEADLINE):
            while sum(map(len, [*owner.received.values(), *other.received.values()])) < 220:
                await poll_both()
        for number in (0, 1):
            partition = Partition(topic, number)
            assert owner.values(partition) + other.values(partition) == numbered(110)
        assert owner.revocations[0] == {Partition(topic, 0), Partition(topic, 1)}

    async def test_a_commit_under_way_does_not_undo_the_final_one_when_partitions_are_revoked(
        self, world: World, topic: str, join: Join
    ) -> None:
        await world.create(topic)
        partition = Partition(topic, 0)
        await world.produce(topic, numbered(100))
        log, owner = await join()
        await receive(log, owner, 100)
        owner.finish()
        early = [
            asyncio.ensure_future(log.commit({partition: owner.received[partition][9].position})) for _ in range(3)
        ]
        await log.subscribe(frozenset())
        await asyncio.gather(*early)
        await log.stop()
        await world.produce(topic, numbered(1, first=100))
        log, owner = await join()
        await receive(log, owner, 1)
        assert owner.values(partition) == [b"event 100"]

    async def test_nothing_is_owned_when_partitions_have_been_revoked(
        self, world: World, topic: str, join: Join
    ) -> None:
        await world.create(topic)
        partition = Partition(topic, 0)
        await world.produce(topic, numbered(10))
        log, owner = await join()
        await receive(log, owner, 10)
        stale = owner.received[partition][2].position
        owner.finish()
        await log.subscribe(frozenset())
        assert await log.commit({partition: stale}) == {}
        log.pause([partition])
        log.resume([partition])
        assert not await log.affirm(), "nobody was asked, so nothing is proven"
        assert await log.poll(0.05) == {}
        await log.subscribe(frozenset({topic}))
        await world.produce(topic, numbered(1, first=10))
        await receive(log, owner, 11)
        assert owner.values(partition) == numbered(11)

    async def test_a_commit_tells_what_was_taken_when_one_of_its_topics_is_gone(
        self, world: World, topic: str, join: Join
    ) -> None:
        other = f"{topic}.other"
        for name in (topic, other):
            await world.create(name)
            await world.produce(name, numbered(5))
        log, owner = await join(topics=frozenset({topic, other}), metadata_age=30.0)
        await receive(log, owner, 10)
        assert set(await log.commit(owner.finish())) == {Partition(topic, 0), Partition(other, 0)}
        assert not log.doubts_topics()
        await world.delete(other)

        async def is_left_out() -> bool:
            return set(await log.commit(owner.finish())) == {Partition(topic, 0)}

        await until(is_left_out)
        assert log.doubts_topics()

    async def test_topics_are_added_and_taken_away_when_the_subscription_changes(
        self, world: World, topic: str, join: Join
    ) -> None:
        other = f"{topic}.other"
        await world.create(topic)
        await world.create(other)
        await world.produce(topic, numbered(5))
        await world.produce(other, numbered(5))
        log, owner = await join()
        await receive(log, owner, 5)
        owner.finish()
        await log.subscribe(frozenset({topic, other}))
        await receive(log, owner, 10)
        owner.finish()
        await log.subscribe(frozenset({other}))
        await poll_until(log, owner, lambda: owner.owned == {Partition(other, 0)})
        assert owner.values(Partition(topic, 0)) == owner.values(Partition(other, 0)) == numbered(5)

    async def test_a_commit_is_refused_when_the_group_has_fenced_the_replica(
        self, world: World, topic: str, join: Join
    ) -> None:
        await world.create(topic)
        partition = Partition(topic, 0)
        await world.produce(topic, numbered(10))
        group = f"fenced-{uuid4().hex[:8]}"
        log, owner = await join(group=group, session_timeout=6.0)
        await receive(log, owner, 10)
        assert await log.affirm()
        await world.fence(log, group)
        with pytest.raises(AssignmentLostError):
            await log.commit({partition: owner.received[partition][9].position})
        if owner.owned:  # it may have heard of it by its heartbeat already
            with pytest.raises(AssignmentLostError):
                await log.affirm()

    async def test_a_replica_joins_again_when_the_group_has_fenced_it(
        self, world: World, topic: str, join: Join
    ) -> None:
        await world.create(topic)
        group = f"fenced-{uuid4().hex[:8]}"
        log, owner = await join(group=group)
        await assigned(log, owner)
        await world.fence(log, group)
        await poll_until(log, owner, lambda: len(owner.assignments) == 2)
        await world.produce(topic, [b"again"])
        await receive(log, owner, 1)
        partition = Partition(topic, 0)
        assert owner.assignments == [{partition}, {partition}]
        assert owner.values(partition) == [b"again"]
        await log.commit(owner.finish())
        assert await log.affirm()

    async def test_affirming_changes_nothing_when_positions_were_committed(
        self, world: World, topic: str, join: Join
    ) -> None:
        partition = Partition(topic, 0)
        log, owner = await four_of_ten_committed(world, topic, join)
        assert await log.affirm()
        await log.stop()
        log, owner = await join()
        await receive(log, owner, 6)
        assert owner.values(partition) == numbered(6, first=4)

    async def test_reading_begins_there_again_when_it_began_at_the_end_and_nothing_was_committed(
        self, world: World, topic: str, join: Join
    ) -> None:
        await world.create(topic)
        await world.produce(topic, numbered(10))
        log, owner = await join(start="latest")
        await assigned(log, owner)
        async with asyncio.timeout(DEADLINE):
            while not await log.lags({Partition(topic, 0): None}):
                await log.poll(0.02)
        await world.produce(topic, [b"seen"])
        await receive(log, owner, 1)
        await log.stop()
        await world.produce(topic, [b"meanwhile"])
        log, owner = await join(start="latest")
        await receive(log, owner, 2)
        assert owner.values(Partition(topic, 0)) == [b"seen", b"meanwhile"]

    @pytest.mark.parametrize(
        ("settings", "expected"),
        [
            ({"start": "earliest"}, 11),
            ({"start": "latest"}, 1),
            ({"start": "timestamp", "start_timestamp": "2023-11-14T22:13:20Z"}, 11),
            ({"start": "timestamp", "start_timestamp": "2033-11-14T22:13:20Z"}, 1),
        ],
    )
    async def test_reading_begins_where_the_settings_say_when_nothing_was_committed(
        self, world: World, topic: str, join: Join, settings: dict[str, Any], expected: int
    ) -> None:
        await world.create(topic)
        await world.produce(topic, numbered(10))
        log, owner = await join(**settings)
        partition = Partition(topic, 0)
        async with asyncio.timeout(DEADLINE):
            while partition not in await log.lags({partition: None}):
                owner.take(await log.poll(0.02))
        await world.produce(topic, numbered(1, first=10))
        await receive(log, owner, expected)
        assert owner.values(partition) == numbered(expected, first=11 - expected)

    async def test_a_survey_tells_missing_topics_from_readable_ones_when_asked(
        self, world: World, topic: str, join: Join
    ) -> None:
        await world.create(topic)
        log, _ = await join(topics=frozenset())
        survey = await log.survey([topic, "no.such.topic"])
        assert topic in survey.readable
        assert survey.missing == {"no.such.topic"}
        assert survey.refused == frozenset()
        assert (await log.survey(["no.such.topic"])).missing == {"no.such.topic"}

    async def test_every_offset_that_is_lost_is_counted_when_the_log_is_truncated(
        self, world: World, topic: str, join: Join
    ) -> None:
        partition = Partition(topic, 0)
        await world.create(topic, 2)
        log, owner = await ten_read_of_a_hundred(world, topic, join, truncated_to=73)
        await receive(log, owner, 37)
        assert owner.lost == [(partition, 63)]
        assert owner.values(partition) == numbered(10) + numbered(27, first=73)

    async def test_nothing_lags_when_all_that_was_unread_has_been_dropped(
        self, world: World, topic: str, join: Join
    ) -> None:
        await world.create(topic)
        log, owner = await ten_read_of_a_hundred(world, topic, join, truncated_to=100)
        await poll_until(log, owner, lambda: bool(owner.lost))
        await log.commit(owner.finish())
        assert await log.lags(owner.final) == {Partition(topic, 0): 0}

    async def test_a_loss_is_counted_once_when_nothing_follows_it_and_another_takes_over(
        self, world: World, topic: str, join: Join
    ) -> None:
        await world.create(topic)
        log, owner = await ten_read_of_a_hundred(world, topic, join, truncated_to=100)
        await poll_until(log, owner, lambda: bool(owner.lost))
        await log.commit(owner.finish())
        await log.stop()
        log, successor = await join()
        await world.produce(topic, numbered(1, first=100))
        await receive(log, successor, 1)
        assert (owner.lost, successor.lost) == ([(Partition(topic, 0), 90)], [])

    async def test_lags_count_from_what_is_done_or_from_the_beginning_when_nothing_is(
        self, world: World, topic: str, join: Join
    ) -> None:
        await world.create(topic, 2)
        first, second = Partition(topic, 0), Partition(topic, 1)
        await world.produce(topic, numbered(30), 0)
        await world.produce(topic, numbered(12), 1)
        log, owner = await join()
        await receive(log, owner, 42)
        log.pause([first, second])
        await world.produce(topic, numbered(5, first=12), 1)
        done = {first: owner.received[first][9].position, second: None, Partition("no.such.topic", 0): None}
        assert await log.lags(done) == {first: 20, second: 17}

    async def test_offsets_without_events_count_as_lag_and_are_passed_when_others_are_read(
        self, world: World, topic: str, join: Join
    ) -> None:
        await world.create(topic)
        partition = Partition(topic, 0)
        await world.produce(topic, numbered(3))
        gap = await world.leave_gap(topic)
        await world.produce(topic, numbered(2, first=3))
        log, owner = await join()
        await receive(log, owner, 5)
        assert owner.values(partition) == numbered(5)
        assert await log.lags({partition: owner.received[partition][2].position}) == {partition: gap + 2}
        await log.commit(owner.finish())
        await world.leave_gap(topic)
        await world.produce(topic, numbered(1, first=5))
        await log.stop()
        log, owner = await join()
        await receive(log, owner, 1)
        assert owner.values(partition) == numbered(1, first=5)

    async def test_offsets_without_events_at_the_end_are_done_with_and_dropped_untold_when_all_before_them_is(
        self, world: World, topic: str, join: Join
    ) -> None:
        partition = Partition(topic, 0)
        log, owner = await three_read(world, topic, join)
        await log.commit(owner.finish())
        gap = await world.leave_gap(topic)
        await poll_until(log, owner, lambda: bool(owner.passed))
        assert await log.commit(owner.final) == {partition: 3 + gap}
        assert await log.lags(owner.final) == {partition: 0}
        await log.stop()
        await world.truncate(topic, 0, 3 + gap)
        log, successor = await join()
        await world.produce(topic, numbered(1, first=3))
        await receive(log, successor, 1)
        assert (owner.passed, owner.lost, successor.lost) == ([partition], [], [])

    async def test_offsets_without_events_at_the_end_wait_for_those_before_them_when_these_are_not_done_with(
        self, world: World, topic: str, join: Join
    ) -> None:
        partition = Partition(topic, 0)
        log, owner = await three_read(world, topic, join)
        gap = await world.leave_gap(topic)
        events = owner.received[partition]
        assert await log.commit({partition: events[1].position}) == {partition: 2}
        for _ in range(4):
            assert await log.poll(0.1) == {}
        assert not owner.passed
        assert await log.commit({partition: events[1].position}) == {partition: 2}
        assert await log.commit({partition: events[2].position}) == {partition: 3 + gap}

    async def test_offsets_without_events_are_done_with_when_nothing_else_was_left_for_the_next_member(
        self, world: World, topic: str, join: Join
    ) -> None:
        partition = Partition(topic, 0)
        log, owner = await three_read(world, topic, join)
        await log.commit(owner.finish())
        await log.stop()
        gap = await world.leave_gap(topic)
        log, successor = await join()
        await poll_until(log, successor, lambda: bool(successor.passed))
        assert await log.commit({partition: None}) == {partition: 3 + gap}

    async def test_a_new_partition_is_read_from_its_beginning_when_reading_was_to_begin_at_the_end(
        self, world: World, topic: str, join: Join
    ) -> None:
        await world.create(topic)
        await world.produce(topic, numbered(10))
        log, owner = await join(start="latest")
        await assigned(log, owner)
        async with asyncio.timeout(DEADLINE):
            while not await log.lags({Partition(topic, 0): None}):
                await log.poll(0.02)
        await world.create(topic, 2)
        await world.produce(topic, numbered(10), 1)
        await receive(log, owner, 10)
        assert owner.values(Partition(topic, 1)) == numbered(10)
        assert Partition(topic, 0) not in owner.received

    async def test_every_event_comes_when_a_topic_was_made_anew_and_refilled_under_its_reader(
        self, world: World, topic: str, join: Join
    ) -> None:
        partition, new = Partition(topic, 0), [b"new %d" % number for number in range(120)]
        await world.create(topic)
        await world.produce(topic, numbered(50))
        log, owner = await join(metadata_age=5.0)
        await receive(log, owner, 50)
        await log.commit(owner.finish())
        log.pause([partition])
        assert await log.poll(0.3) == {}  # no fetch is under way that would tell it
        await world.recreate(topic)
        await world.produce(topic, new)
        log.resume([partition])
        await poll_until(log, owner, lambda: owner.values(partition)[-len(new) :] == new)
        assert owner.assignments[-1] == {partition}
        assert not owner.lost
        await log.commit(owner.finish())
        assert await log.lags(owner.final) == {partition: 0}
        await log.stop()
        log, after = await join()
        await world.produce(topic, [b"later"])
        await receive(log, after, 1)
        assert after.values(partition) == [b"later"]

    async def test_every_event_comes_when_a_topic_was_made_anew_with_fewer_partitions_and_read_from_the_latest(
        self, world: World, topic: str, join: Join
    ) -> None:
        await world.create(topic, 3)
        partitions = [Partition(topic, number) for number in range(3)]
        log, owner = await join(start="latest")
        await assigned(log, owner, 3)
        async with asyncio.timeout(DEADLINE):
            while len(await log.lags(dict.fromkeys(partitions))) < len(partitions):
                await log.poll(0.02)
        for partition in partitions:
            await world.produce(topic, numbered(5), partition.number)
        await receive(log, owner, 15)
        await log.commit(owner.finish())
        owner.final = {}
        await world.recreate(topic)
        await world.produce(topic, numbered(20, first=100))
        await poll_until(log, owner, lambda: owner.owned == {partitions[0]})
        await poll_until(log, owner, lambda: set(numbered(20, first=100)) <= set(owner.values(partitions[0])))
        assert owner.lost == []

    async def test_every_event_comes_when_a_topic_was_made_anew_and_its_reader_left_after_a_commit(
        self, world: World, topic: str, join: Join
    ) -> None:
        new = [b"new %d" % number for number in range(120)]
        await world.create(topic)
        await world.produce(topic, numbered(50))
        log, owner = await join(metadata_age=5.0)
        await receive(log, owner, 50)
        log.pause([Partition(topic, 0)])
        assert await log.poll(0.3) == {}  # no fetch is under way that would tell it
        await world.recreate(topic)
        if len(owner.assignments) == 1:
            await log.commit(owner.finish())  # of the topic that is gone, for the one that has its name
        await log.stop()
        await world.produce(topic, new)
        log, after = await join()
        await receive(log, after, 120)
        assert after.values(Partition(topic, 0)) == new

    async def test_nothing_is_passed_over_when_a_topic_comes_back_and_reading_starts_at_the_latest(
        self, world: World, topic: str, join: Join
    ) -> None:
        new = [b"new %d" % number for number in range(10)]
        await world.create(topic)
        log, owner = await join(start="latest")
        await assigned(log, owner)
        async with asyncio.timeout(DEADLINE):
            while Partition(topic, 0) not in await log.lags({Partition(topic, 0): None}):
                owner.take(await log.poll(0.02))
        await world.delete(topic)
        async with asyncio.timeout(DEADLINE):
            while topic in (await log.survey([topic])).readable:
                owner.take(await log.poll(0.02))
        await world.create(topic)
        await world.produce(topic, new)
        await receive(log, owner, 10)
        assert owner.values(Partition(topic, 0)) == new

    async def test_nothing_is_passed_over_when_a_named_topic_is_created_late_and_reading_starts_at_the_latest(
        self, world: World, topic: str, join: Join
    ) -> None:
        other = f"{topic}.other"
        await world.create(other)
        log, owner = await join(start="latest", topics=frozenset({other}))
        await assigned(log, owner)
        assert (await log.survey([topic])).missing == {topic}
        await world.create(topic)
        await world.produce(topic, numbered(10))
        await log.subscribe(frozenset({topic, other}))
        await receive(log, owner, 10)
        assert owner.values(Partition(topic, 0)) == numbered(10)

    async def test_progress_tells_what_others_commit_in_whatever_topics_when_they_share_the_group(
        self, world: World, topic: str, join: Join
    ) -> None:
        other = f"{topic}.other"
        ours, theirs = Partition(topic, 0), Partition(other, 0)
        for name in (topic, other):
            await world.create(name)
            await world.produce(name, numbered(30))
        first, owner = await join()
        await receive(first, owner, 30)
        assert await first.progress() == {}
        second, another = await join(topics=frozenset({other}))

        async def poll_both() -> bool:
            owner.take(await first.poll(0.02))
            another.take(await second.poll(0.02))
            return owner.owned == {ours} and len(another.received.get(theirs, [])) == 30

        await until(poll_both)
        counts = []
        for done in (4, 14, 29):
            await second.commit({theirs: another.received[theirs][done].position})
            await first.commit({ours: owner.received[ours][done].position})
            progress = await first.progress()
            assert set(progress) == {theirs}
            counts.append(progress[theirs])
        assert [later - earlier for earlier, later in pairwise(counts)] == [10, 15]

    async def test_extents_are_the_same_for_all_replicas_when_each_owns_another_part(
        self, world: World, topic: str, join: Join
    ) -> None:
        await world.create(topic, 2)
        for partition in (0, 1):
            await world.produce(topic, numbered(10), partition)
        first, owner = await join()
        second, another = await join()

        async def both_own_and_have_all() -> bool:
            owner.take(await first.poll(0.02))
            another.take(await second.poll(0.02))
            return all(
                len(one.owned) == 1 and len(one.received.get(next(iter(one.owned)), [])) >= 10
                for one in (owner, another)
            )

        await until(both_own_and_have_all)

        async def is_taken(log: EventLog, one: Owner, done: int) -> bool:
            (partition,) = one.owned
            position = one.received[partition][done].position  # perhaps of the epoch before: this one must be placed
            return partition in await log.commit({partition: position})

        await until(lambda: is_taken(first, owner, 3))
        await until(lambda: is_taken(second, another, 9))
        mine, theirs = next(iter(owner.owned)), next(iter(another.owned))
        expected = {mine: Extent(4, 10), theirs: Extent(10, 10)}
        assert await first.extents([topic]) == await second.extents([topic]) == expected
        assert await first.extents(["another"]) == {}

    async def test_the_last_commit_of_an_assignment_counts_as_nobody_elses_progress_when_it_comes_late(
        self, world: World, topic: str, join: Join
    ) -> None:
        partition = Partition(topic, 0)
        log, owner = await four_of_ten_committed(world, topic, join)
        owner.finish()
        owner.revoking = asyncio.Event()
        leaving = asyncio.ensure_future(log.subscribe(frozenset()))
        async with asyncio.timeout(DEADLINE):
            assert await log.progress() == {}
            assert await log.progress() == {}, "asked when the revocation had surely begun"
            owner.revoking.set()
            await leaving
        assert set(await log.progress()) == {partition}

    async def test_stopping_again_does_nothing_when_the_log_is_stopped(
        self, world: World, topic: str, join: Join
    ) -> None:
        await world.create(topic)
        log, _ = await join()
        polling = asyncio.ensure_future(log.poll(30.0))
        await asyncio.sleep(0)
        async with asyncio.timeout(DEADLINE):
            await log.stop()
            assert await polling == {}
            await log.stop()
            assert await log.poll(0.01) == {}

    async def test_no_partition_is_said_to_stand_still_when_the_log_is_not_reached_yet(self, world: World) -> None:
        assert world.log(f"group-{uuid4().hex[:8]}").standing() == {}, "/ready asks from the first moment on"

    async def test_nothing_breaks_when_a_log_is_stopped_that_was_never_started(self, world: World) -> None:
        log = world.log("idle")
        await log.stop()
        assert await log.poll(0.01) == {}


class TestMemoryLog(EventLogContract):
    @pytest.fixture
    def world(self) -> World:
        return MemoryWorld()


class TestKafkaLogOnScriptedCluster(EventLogContract):
    @pytest.fixture
    async def world(self) -> AsyncIterator[World]:
        async with ScriptedWorld.open() as world:
            yield world


class TestKafkaLog(EventLogContract):
    @pytest.fixture
    async def world(self, stack: Stack) -> AsyncIterator[World]:
        async with KafkaWorld.open(stack.kafka) as world:
            yield world
