"""What an epoch commits, and what can't come after its end."""

import asyncio
from collections.abc import Collection, Mapping
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import TopicPartition
from structlog.testing import capture_logs

from proxy.bridge.event_log import Beginning
from proxy.bridge.move import Moved
from proxy.errors import AssignmentLostError, LogError
from proxy.kafka_log.assignor import Assignor
from proxy.kafka_log.client import Reach
from proxy.kafka_log.rebalances import Rebalances
from proxy.model import Partition, Position
from proxy.positions.epoch import REPEAT_AFTER, Epoch
from proxy.positions.identity import Committed
from proxy.positions.port import Membership, Taken
from proxy.positions.share import Share
from proxy.simulation import virtual_time

AT = Partition("orders", 3)
ME = Membership(5, "me")


def test_a_position_is_passed_over_when_it_is_from_an_earlier_epoch() -> None:
    share = Share(AT, is_paused=False)
    share.finish(50)
    assert share.done == 0
    share.began = share.done = 40
    share.finish(39)
    assert share.done == 40
    share.finish(44)
    assert share.done == 45


def test_no_commit_goes_back_when_records_are_handed_out_again_in_the_same_epoch() -> None:
    share = Share(AT, is_paused=False, began=40, done=40)
    for position in (44, 41):
        share.finish(position)
    assert share.done == 45


class _Placing:
    """What an epoch asks of placing: everything begins at 100."""

    def begin(self, shares: Mapping[Any, Share]) -> None:
        for share in shares.values():
            share.began = share.done = 100


class _Coordinator:
    """Takes commits one after the other, when it is let."""

    def __init__(self) -> None:
        self.commits: list[tuple[Membership, dict[Partition, Committed]]] = []
        self.unknown: set[Partition] = set()
        """Of topics that it does not know (now)."""
        self.open = asyncio.Event()
        self.open.set()
        self.failure: Exception | None = None
        self.is_doubtful = False
        self.asked = 0

    async def commit(self, membership: Membership, offsets: Mapping[Partition, Committed]) -> Taken:
        self.asked += 1
        await self.open.wait()
        if self.failure is not None:
            raise self.failure
        self.commits.append((membership, dict(offsets)))
        return Taken(frozenset(offsets) - self.unknown, is_doubtful=self.is_doubtful)

    async def affirm(self, _: Membership) -> None:
        self.asked += 1
        await self.open.wait()
        if self.failure is not None:
            raise self.failure


class _Owner:
    def __init__(self, final: Mapping[Partition, Position]) -> None:
        self.final = final
        self.ended: list[Mapping[Partition, int]] = []
        self.failure: Exception | None = None
        self.draining = asyncio.Event()
        """Set once everything sent has its outcome."""
        self.draining.set()

    def on_assigned(self, _: Collection[Partition]) -> Collection[Partition]:
        return ()

    async def on_revoked(self, _: Collection[Partition]) -> Mapping[Partition, Position]:
        await self.draining.wait()
        if self.failure is not None:
            raise self.failure
        return self.final

    def on_begun(self, partition: Partition, beginning: Beginning) -> None: ...

    async def on_moving(self, _: Collection[Partition]) -> Mapping[Partition, Position]:
        return {}

    def on_moved(self, moved: Moved) -> None: ...

    def on_ended(self, taken: Mapping[Partition, int]) -> None:
        self.ended.append(taken)

    def on_passed(self, partition: Partition) -> None: ...

    def on_truncated(self, partition: Partition, at_most: int, first: int) -> None: ...


def _epoch(owner: _Owner) -> tuple[Epoch, _Coordinator]:
    placing: Any = _Placing()
    coordinator: Any = _Coordinator()
    fetches: Any = SimpleNamespace(offset_of=lambda position: position, leader_epoch=lambda _: 7)
    epoch = Epoch(fetches, coordinator, placing, owner, on_refused=lambda _: None)
    epoch.begin([AT], ME)
    return epoch, coordinator


async def test_the_final_commit_is_the_last_when_one_is_under_way() -> None:
    epoch, coordinator = _epoch(_Owner({AT: 149}))
    coordinator.open.clear()
    early = asyncio.ensure_future(epoch.commit({AT: 109}))
    await asyncio.sleep(0)
    late = asyncio.ensure_future(epoch.commit({AT: 119}))
    ending = asyncio.ensure_future(epoch.end())
    await asyncio.sleep(0)
    afterwards = asyncio.ensure_future(epoch.commit({AT: 129}))
    coordinator.open.set()
    await asyncio.gather(early, late, ending, afterwards)
    assert coordinator.commits[0] == (ME, {AT: Committed(110, "", leader_epoch=7)})
    assert coordinator.commits[-1] == (ME, {AT: Committed(150, "", leader_epoch=7)})
    assert len(coordinator.commits) == 2


@pytest.mark.parametrize("failure", [None, LogError("no answer in time")])
def test_what_is_done_is_committed_once_more_when_an_older_commit_may_come_last(failure: LogError | None) -> None:
    async def story() -> None:
        epoch, coordinator = _epoch(_Owner({AT: 149}))
        await epoch.commit({AT: 104})
        await asyncio.sleep(2 * REPEAT_AFTER)
        await epoch.repeat()
        assert coordinator.asked == 1, "nothing was in doubt"
        coordinator.failure, coordinator.is_doubtful = failure, True
        with suppress(LogError):
            await epoch.commit({AT: 109})
        coordinator.failure, coordinator.is_doubtful = None, False
        await epoch.commit({AT: 119})
        for _ in range(4):
            await asyncio.sleep(REPEAT_AFTER / 2)
            await epoch.repeat()
        assert [offsets[AT].offset for _, offsets in coordinator.commits][-2:] == [120, 120]
        assert coordinator.asked == 4

    virtual_time.run(story())


@pytest.mark.parametrize("is_revoked", [True, False])
async def test_what_is_in_doubt_is_committed_once_more_at_the_end_when_nothing_else_is(*, is_revoked: bool) -> None:
    epoch, coordinator = _epoch(_Owner({}))
    coordinator.is_doubtful = True
    await epoch.commit({AT: 109})
    coordinator.is_doubtful = False
    await (epoch.end() if is_revoked else epoch.repeat(is_last=True))
    assert [offsets[AT].offset for _, offsets in coordinator.commits] == [110, 110]


async def test_the_owner_is_told_how_far_the_last_commit_has_come_when_an_epoch_ends() -> None:
    owner = _Owner({AT: 149})
    epoch, coordinator = _epoch(owner)
    assert await epoch.commit({AT: 109}) == {AT: 110}
    await epoch.end()
    epoch.begin([AT], ME)
    coordinator.failure = AssignmentLostError("fenced")
    await epoch.end()
    assert owner.ended == [{AT: 150}, {}]


async def test_a_position_is_not_said_to_be_taken_when_the_group_left_it_out() -> None:
    epoch, coordinator = _epoch(_Owner({}))
    coordinator.unknown = {AT}
    assert await epoch.commit({AT: 109}) == {}


async def test_a_fence_is_none_when_it_answers_for_an_epoch_that_has_ended_meanwhile() -> None:
    epoch, coordinator = _epoch(_Owner({}))
    coordinator.failure = AssignmentLostError("fenced")
    coordinator.open.clear()
    early = asyncio.ensure_future(epoch.affirm())
    await asyncio.sleep(0)
    epoch.shares = {}
    epoch.begin([AT], ME)
    coordinator.open.set()
    assert not await early
    with pytest.raises(AssignmentLostError):
        await epoch.affirm()


async def test_a_second_end_waits_for_the_first_when_both_come_at_once() -> None:
    epoch, coordinator = _epoch(_Owner({AT: 149}))
    coordinator.open.clear()
    first, second = asyncio.ensure_future(epoch.end()), asyncio.ensure_future(epoch.end())
    for _ in range(5):
        await asyncio.sleep(0)
    assert not second.done()
    coordinator.open.set()
    await asyncio.gather(first, second)
    assert len(coordinator.commits) == 1


async def test_the_rebalance_goes_on_when_the_final_commit_is_fenced_or_the_owner_fails() -> None:
    failures: list[Exception] = []
    owner = _Owner({AT: 149})
    epoch, coordinator = _epoch(owner)
    consumer: Any = SimpleNamespace(_coordinator=ME)
    positions: Any = epoch
    unshared: Any = SimpleNamespace(begin=lambda _: None)
    rebalances = Rebalances(consumer, Assignor(), positions, unshared, Reach([]), failures.append)
    coordinator.failure = AssignmentLostError("fenced")
    await rebalances.on_partitions_revoked(set())
    assert not failures
    rebalances.on_partitions_assigned({TopicPartition(*AT)})
    owner.failure = ZeroDivisionError()
    await rebalances.on_partitions_revoked(set())
    assert failures == [owner.failure]


async def test_nothing_counts_as_committed_or_pinned_when_the_group_leaves_it_out() -> None:
    epoch, coordinator = _epoch(_Owner({}))
    coordinator.unknown = {AT}
    with capture_logs() as said:
        assert not epoch.is_left_out
        assert await epoch.commit({AT: 109}) == {}
        assert epoch.is_left_out
        await epoch.pin(list(epoch.shares.values()))
        assert not epoch.shares[AT].is_pinned
        coordinator.unknown = set()
        assert await epoch.commit({AT: 109}) == {AT: 110}
        assert epoch.is_left_out  # for a while: the topic may be gone all the same
        await epoch.pin(list(epoch.shares.values()))
        assert epoch.shares[AT].is_pinned
    assert [entry["event"] for entry in said] == ["commit_left_out"]


async def test_nothing_is_proven_when_nothing_is_owned() -> None:
    epoch, coordinator = _epoch(_Owner({AT: 149}))
    epoch.shares = {}
    assert await epoch.commit({AT: 109}) == {}
    assert not await epoch.affirm()
    assert coordinator.asked == 0


async def test_the_group_is_asked_who_we_are_when_an_epoch_is_draining() -> None:
    owner = _Owner({AT: 149})
    owner.draining.clear()
    epoch, coordinator = _epoch(owner)
    ending = asyncio.ensure_future(epoch.end())
    await asyncio.sleep(0)
    assert await epoch.affirm()
    coordinator.failure = AssignmentLostError("fenced")
    with pytest.raises(AssignmentLostError):
        await epoch.affirm()
    owner.draining.set()
    await ending
    assert not await epoch.affirm()
    assert coordinator.asked == 3
