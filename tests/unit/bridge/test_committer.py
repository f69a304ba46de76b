"""One commit an interval, the lease with it, and what a failure does."""

import asyncio

import pytest
from structlog.testing import capture_logs

from proxy.errors import AssignmentLostError, LogError
from proxy.settings import Limits
from tests.support.events import PARTITION, events
from tests.support.world import SESSION, World, lived


@pytest.mark.parametrize("interval", [0.05, 0.5, 10.0])
def test_the_lease_never_lapses_when_the_log_answers(interval: float) -> None:
    async def story(world: World) -> None:
        left = []
        for number in range(400):
            await world.feed(*events(number, number + 1))
            world.lane.finish()
            left.append(world.lease.left(asyncio.get_running_loop().time()))
        assert min(left) > 0.5

    lived(story, commit_interval=interval)


def test_everything_stops_at_once_and_goes_on_with_the_next_success_when_the_group_fences() -> None:
    async def story(world: World) -> None:
        await world.feed(*events(0, 2))
        world.lane.finish()
        world.log.failure = AssignmentLostError("fenced")
        await asyncio.sleep(0.6)
        assert world.incidents == [{"name": "assignment_lost", "detail": "fenced"}]
        await world.feed(*events(2, 4))
        assert world.written == ["p0", "p1"]
        world.log.failure = None
        await asyncio.sleep(0.6)
        assert world.written == ["p0", "p1", "p2", "p3"]

    lived(story)


def test_sending_stops_at_once_when_an_affirmation_tells_that_the_group_has_fenced_the_replica() -> None:
    async def story(world: World) -> None:
        await asyncio.sleep(10)  # idle: it is affirmed twice in a term
        world.log.failure = AssignmentLostError("fenced")
        await asyncio.sleep(SESSION / 2)
        assert world.incidents == [{"name": "assignment_lost", "detail": "fenced"}]
        await world.feed(*events(0, 2))
        assert world.written == []

    lived(story)


def test_a_failure_is_said_once_until_the_next_success_when_commits_fail() -> None:
    async def story(world: World) -> None:
        await asyncio.sleep(0.1)  # the assignment is affirmed
        with capture_logs() as said:
            for number in range(2):
                world.log.failure = LogError("slow")
                await world.feed(*events(number, number + 1))
                world.lane.finish()
                await asyncio.sleep(3)
                world.log.failure = None
                await asyncio.sleep(1)
        assert [entry["why"] for entry in said if entry["event"] == "commit_failed"] == ["slow", "slow"]

    lived(story)


def test_the_lease_counts_from_the_request_when_the_answer_comes_late() -> None:
    async def story(world: World) -> None:
        await world.feed(*events(0, 1))
        world.lane.finish()
        world.log.commit_delay = 2.0
        asked = asyncio.get_running_loop().time()
        await world.committer.commit()
        assert world.lease.left(asked) == pytest.approx(world.lease.term)

    lived(story)


def test_a_commit_reports_whether_the_log_took_it() -> None:
    async def story(world: World) -> None:
        await world.feed(*events(0, 1))
        world.lane.finish()
        world.log.failure = LogError("slow")
        assert not await world.committer.commit()
        world.log.failure = None
        assert await world.committer.commit()

    lived(story)


def test_only_what_is_confirmed_is_committed_when_more_waits_behind_it() -> None:
    async def story(world: World) -> None:
        world.lane.room = asyncio.Semaphore(2)
        await world.feed(*events(0, 9))
        world.lane.finish_written()
        await asyncio.sleep(1)
        assert world.log.committed == {PARTITION: "p1"}

    lived(story, limits=Limits(uncommitted_events=2))


def test_nothing_more_is_published_when_commits_have_failed_for_the_whole_lease() -> None:
    async def story(world: World) -> None:
        await world.feed(*events(0, 2))
        world.log.failure = LogError("slow")
        world.lane.finish()
        await asyncio.sleep(4)
        await world.feed(*events(2, 4))
        assert world.written == ["p0", "p1"]

    lived(story)


def test_nothing_is_published_when_the_group_does_not_affirm_the_assignment() -> None:
    async def story(world: World) -> None:
        world.log.failure = LogError("stopped while the group went on, and told of an assignment of old")
        await world.feed(*events(0, 2))
        await asyncio.sleep(2)
        assert world.written == []
        world.log.failure = None
        await asyncio.sleep(1)
        assert world.written == ["p0", "p1"]

    lived(story)


def test_the_first_event_waits_for_one_answer_only_when_a_partition_is_assigned() -> None:
    async def story(world: World) -> None:
        world.log.fetched = {PARTITION: events(0, 1)}
        await asyncio.sleep(0.25)  # one poll; a commit interval is twice as long
        assert world.log.affirmed == 1
        assert world.written == ["p0"]

    lived(story)


def test_nothing_counts_as_committed_and_the_lease_ends_when_the_log_takes_nothing_of_a_commit() -> None:
    async def story(world: World) -> None:
        await world.feed(*events(0, 2))
        await asyncio.sleep(0.1)  # the assignment is affirmed
        world.log.owns_nothing = True
        world.lane.finish()
        await asyncio.sleep(SESSION / 2)
        [flow] = world.assignment.flows()
        assert flow.watermark.committed < flow.watermark.resolved
        assert world.lease.left(asyncio.get_running_loop().time()) <= 0
        world.log.owns_nothing = False
        await asyncio.sleep(1)
        assert flow.watermark.committed == flow.watermark.resolved
        assert world.lease.left(asyncio.get_running_loop().time()) > 0

    lived(story)
