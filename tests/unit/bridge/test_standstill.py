"""What stands still for want of the group's word, or of the log's."""

import asyncio

from proxy.bridge.event_log import Standing
from proxy.bridge.standstill import GRACE, Standstill
from proxy.errors import AssignmentLostError, LogError
from tests.support.events import PARTITION, events
from tests.support.world import SESSION, World, lived


def standstill(world: World) -> Standstill:
    return Standstill(world.log, world.assignment, world.lease, lambda: world.committer.refusal)


def test_all_partitions_stand_still_with_the_reason_when_the_group_says_nothing_for_seconds() -> None:
    async def story(world: World) -> None:
        asked = standstill(world)
        await asyncio.sleep(1)
        assert asked.standing() == {}
        world.log.failure = LogError("this login may not use it")
        await world.feed(*events(0, 2))
        world.lane.finish()
        await asyncio.sleep(GRACE + 0.4)
        assert asked.standing() == {}, "a coordinator that moves takes as long"
        await asyncio.sleep(SESSION / 2)
        (why,) = asked.standing().values()
        assert why.cause == "lease"
        assert "this login may not use it" in why.why
        world.log.failure = None
        await asyncio.sleep(0.6)
        assert asked.standing() == {}

    lived(story)


def test_nothing_is_said_when_a_partition_comes_after_a_long_time_without_any() -> None:
    async def story(world: World) -> None:
        asked = standstill(world)
        await world.assignment.on_revoked([PARTITION])
        await asyncio.sleep(60)
        world.log.failure = AssignmentLostError("fenced")
        world.assignment.on_assigned([PARTITION])
        await asyncio.sleep(1)
        assert asked.standing() == {}
        await asyncio.sleep(GRACE)
        assert set(asked.standing()) == {PARTITION}

    lived(story)


def test_what_keeps_it_out_of_the_group_is_told_only_when_it_has_no_partitions() -> None:
    async def story(world: World) -> None:
        asked = standstill(world)
        world.log.refusal = "this login may not use it"
        assert asked.outside() is None
        await world.assignment.on_revoked([PARTITION])
        assert asked.outside() == "this login may not use it"

    lived(story)


def test_the_log_s_reason_goes_before_the_group_s_when_both_are_silent() -> None:
    async def story(world: World) -> None:
        asked, word = standstill(world), Standing("node", "node 1 does not answer")
        world.log.failure = LogError("no answer")
        await asyncio.sleep(SESSION + GRACE + 1)
        world.log.stood = {PARTITION: word}
        assert asked.standing() == {PARTITION: word}

    lived(story)
