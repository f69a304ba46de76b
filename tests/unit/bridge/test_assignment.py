"""What is done when partitions come and go."""

import asyncio

import pytest
from structlog.testing import capture_logs

from proxy.bridge.move import Direction, Move, Moved
from proxy.model import Outcome, Partition, Reason
from proxy.records import Skip
from proxy.settings import Limits
from tests.support.events import PARTITION, events
from tests.support.world import World, lived

OTHER = Partition(PARTITION.topic, 1)


def test_all_that_is_confirmed_is_committed_last_when_commits_left_it_out_while_others_were_awaited() -> None:
    async def story(world: World) -> None:
        world.assignment.on_assigned([OTHER])
        await world.feed(*events(0, 2))
        ended = world.lane.batches
        world.lane.batches = []
        world.log.fetched = {OTHER: events(0, 2)}
        await asyncio.sleep(0.3)
        world.log.owns_nothing = True
        revoked = asyncio.create_task(world.assignment.on_revoked([PARTITION, OTHER]))
        await asyncio.sleep(0)
        for batch in ended:
            batch.recipient.on_outcome(batch, 0, batch.done, Outcome.CONFIRMED, seconds=0.001)
        await asyncio.sleep(1)
        world.lane.finish()
        assert await revoked == {PARTITION: "p1", OTHER: "p1"}

    lived(story)


def test_a_partition_of_which_nothing_is_done_is_not_committed_when_it_is_revoked() -> None:
    async def story(world: World) -> None:
        await world.feed(*events(0, 2))
        assert await world.assignment.on_revoked([PARTITION]) == {}
        assert asyncio.get_running_loop().time() == pytest.approx(3.3)

    lived(story)


@pytest.mark.parametrize(("taken", "again"), [({PARTITION: 3}, 0), ({}, 3)])
def test_what_was_sent_and_not_committed_is_counted_when_its_partition_is_given_away(
    taken: dict[Partition, int], again: int
) -> None:
    async def story(world: World) -> None:
        await world.feed(*events(0, 3))
        world.log.owns_nothing = True
        world.lane.finish()
        await world.assignment.on_revoked([PARTITION])
        with capture_logs() as said:
            world.assignment.on_ended(taken)
        assert world.assignment.listeners[PARTITION.topic].counts.own.uncommitted == again
        assert [(one["event"], one["events"]) for one in said] == ([("left_uncommitted", again)] if again else [])

    lived(story)


def test_what_comes_again_is_said_when_an_event_and_its_letter_could_not_go_before_the_stop() -> None:
    async def story(world: World) -> None:
        await world.feed(*events(0, 4))
        [batch] = world.lane.batches
        batch.recipient.on_outcome(batch, 0, 1, Outcome.CONFIRMED, seconds=0.001)
        batch.recipient.on_outcome(batch, 1, 2, Outcome.UNDELIVERABLE, reason=Reason.UNROUTABLE)
        batch.recipient.on_outcome(batch, 2, 4, Outcome.CONFIRMED, seconds=0.001)
        await asyncio.sleep(0.5)
        with capture_logs() as said:
            assert world.assignment.on_last_commit() == 3
        assert [(one["event"], one["events"]) for one in said] == [("stopped_ahead", 2)]
        assert world.assignment.listeners[PARTITION.topic].counts.own.uncommitted == 2

    lived(story)


@pytest.mark.parametrize("outcome", [None, Outcome.UNKNOWN])
def test_what_the_broker_may_have_is_counted_when_its_partition_is_given_away(outcome: Outcome | None) -> None:
    async def story(world: World) -> None:
        await world.feed(*events(0, 3))
        revoked = asyncio.create_task(world.assignment.on_revoked([PARTITION]))
        await asyncio.sleep(0)
        if outcome is not None:
            world.lane.finish(outcome)
        await revoked
        world.assignment.on_ended({})
        assert world.assignment.listeners[PARTITION.topic].counts.own.uncommitted == 3

    lived(story)


def test_written_dead_letters_are_awaited_when_their_partition_is_revoked() -> None:
    async def story(world: World) -> None:
        await world.feed(*events(0, 2))
        world.lane.finish(Outcome.UNDELIVERABLE, reason=Reason.UNROUTABLE)
        await asyncio.sleep(0.1)
        revoked = asyncio.create_task(world.assignment.on_revoked([PARTITION]))
        await asyncio.sleep(1)
        assert not revoked.done()
        world.dead_lane.finish()
        assert await revoked == {PARTITION: "p1"}

    lived(story)


def test_dead_letters_that_wait_at_their_lane_are_called_back_when_their_partition_is_revoked() -> None:
    async def story(world: World) -> None:
        world.dead_lane.room = asyncio.Semaphore(0)
        world.assignment.on_assigned([OTHER])
        await world.feed(*events(0, 200))
        world.lane.finish(Outcome.UNDELIVERABLE, reason=Reason.UNROUTABLE)
        await asyncio.sleep(0.1)
        began = asyncio.get_running_loop().time()
        assert await world.assignment.on_revoked([PARTITION]) == {}
        assert asyncio.get_running_loop().time() == began
        world.log.fetched = {OTHER: events(500, 501)}
        await asyncio.sleep(1)
        assert world.written[200:] == ["p500"]
        assert world.dead_lane.written == []
        calls = world.dead_lane.calls
        await asyncio.sleep(10)
        assert world.dead_lane.calls == calls

    lived(story)


def test_a_refused_dead_letter_ends_the_wait_when_its_partition_is_revoked() -> None:
    async def story(world: World) -> None:
        await world.feed(*events(0, 2))
        world.lane.finish(Outcome.UNDELIVERABLE, reason=Reason.UNROUTABLE)
        await asyncio.sleep(0.1)
        began = asyncio.get_running_loop().time()
        revoked = asyncio.create_task(world.assignment.on_revoked([PARTITION]))
        await asyncio.sleep(0.5)
        world.dead_lane.finish(Outcome.UNDELIVERABLE, reason=Reason.REFUSED)
        assert await revoked == {}
        assert asyncio.get_running_loop().time() - began < 1

    lived(story)


def test_an_undeliverable_event_is_left_to_the_next_owner_when_its_partition_is_being_given_away() -> None:
    async def story(world: World) -> None:
        await world.feed(*events(0, 2))
        revoked = asyncio.create_task(world.assignment.on_revoked([PARTITION]))
        await asyncio.sleep(0.5)
        world.lane.finish(Outcome.UNDELIVERABLE, reason=Reason.UNROUTABLE)
        assert await revoked == {}
        await asyncio.sleep(2)
        assert world.dead_lane.written == []

    lived(story)


def test_an_incident_tells_how_many_records_the_log_dropped_at_most_when_it_was_truncated() -> None:
    async def story(world: World) -> None:
        world.assignment.on_truncated(PARTITION, 7, 12)
        (incident,) = world.incidents
        assert "at most" in str(incident.pop("detail"))
        assert incident == {
            "name": "truncated",
            "topic": "orders",
            "partition": 0,
            "count": 7,
            "first": 5,
            "end": 12,
            "group": "g",
        }
        await asyncio.sleep(0)

    lived(story)


def test_partitions_of_a_topic_without_a_listener_are_paused_when_they_are_assigned() -> None:
    async def story(world: World) -> None:
        stray = Partition("stray", 0)
        assert world.assignment.on_assigned([stray, OTHER]) == [stray]
        assert await world.assignment.on_revoked([stray, OTHER]) == {}

    lived(story)


def test_a_partition_is_gone_for_good_when_its_revocation_has_returned() -> None:
    async def story(world: World) -> None:
        await world.feed(*events(0, 2))
        late = world.lane.batches
        assert await world.assignment.on_revoked([PARTITION]) == {}
        assert world.assignment.flows() == []
        for batch in late:
            batch.recipient.on_outcome(batch, 0, batch.done, Outcome.CONFIRMED, seconds=9.0)
        await asyncio.sleep(2)
        assert world.log.committed == {}

    lived(story)


def test_nothing_of_a_log_that_is_gone_is_left_to_commit_when_it_is_made_anew_during_the_stop() -> None:
    async def story(world: World) -> None:
        await world.feed(*events(0, 2))
        world.lane.finish()
        await asyncio.sleep(0)
        world.assignment.close()
        assert world.assignment.on_assigned([PARTITION]) == [PARTITION]
        assert world.assignment.flows() == []
        assert await world.assignment.on_revoked([PARTITION]) == {}

    lived(story)


def test_a_move_is_recorded_when_its_partition_was_assigned_after_the_stop_had_begun() -> None:
    async def story(world: World) -> None:
        world.assignment.close()
        world.assignment.on_assigned([OTHER])
        assert await world.assignment.on_moving([OTHER]) == {}
        world.assignment.on_moved(Moved(OTHER, Move("1-ab", Direction.SKIP, "id", 7, 10, "me", "why"), 7, 10))
        (skip,) = [one for one in world.recorded if isinstance(one, Skip)]
        assert (skip.type, skip.partition, skip.first, skip.end) == ("orders", 1, 7, 10)

    lived(story)


def test_a_partition_is_paused_from_the_start_when_its_type_is_full() -> None:
    async def story(world: World) -> None:
        world.lane.room = asyncio.Semaphore(0)
        await world.feed(*events(0, 300))
        assert world.assignment.on_assigned([OTHER]) == [OTHER]

    lived(story, limits=Limits(inbox_events=50))


def test_the_type_goes_on_when_an_event_without_destination_belongs_to_the_next_owner() -> None:
    async def story(world: World) -> None:
        world.assignment.on_assigned([OTHER])
        await world.feed(*events(0, 1))
        revoked = asyncio.create_task(world.assignment.on_revoked([PARTITION]))
        await asyncio.sleep(0.5)
        world.lane.finish(Outcome.UNDELIVERABLE, reason=Reason.UNROUTABLE)
        await revoked
        world.log.fetched = {OTHER: events(5, 6)}
        await asyncio.sleep(1)
        assert not world.listener.is_stopped
        assert world.written == ["p0", "p5"]

    lived(story, dead_letter=None)
