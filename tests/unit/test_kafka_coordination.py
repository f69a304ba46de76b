"""What is mended of the library's part in the group."""

import asyncio
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import errors
from aiokafka.consumer.group_coordinator import GroupCoordinator
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata

from proxy.kafka_log import KafkaLog
from proxy.kafka_log.assignor import Assignor
from proxy.kafka_log.client import teach_manners
from proxy.kafka_log.coordination import Coordination
from proxy.model import Partition
from proxy.settings import Limits, LogSettings
from proxy.simulation import virtual_time
from tests.contract.log_adapters import Owner
from tests.wire.chance import seeded
from tests.wire.kafka import mischief
from tests.wire.kafka.cluster import ScriptedCluster
from tests.wire.kafka.messages import Api, Error
from tests.wire.kafka.mischief import Rule, Trick
from tests.wire.kafka.node import Node
from tests.wire.loop import WireLoop

SESSION = 1.2
"""Seconds."""


async def test_the_group_is_joined_anew_when_the_subscription_changes_while_its_coordinator_is_sought() -> None:
    group = Coordination.__new__(Coordination)
    group._rejoin_needed_fut = asyncio.get_running_loop().create_future()
    assignment = SimpleNamespace(active=True)
    lasting, replaced = (SimpleNamespace(active=is_active, assignment=assignment) for is_active in (True, False))
    assert not group.need_rejoin(lasting)
    assert group.need_rejoin(replaced)
    assert await group.ensure_active_group(replaced, assignment) is None


async def test_whoever_asks_is_told_who_leads_the_group_and_the_librarys_assignor_is_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A process may have consumers of the library beside ours; they are made by the same classes."""
    leads: list[str] = []

    async def answered(_group: Any, _request: Any) -> Any:
        return SimpleNamespace(leader_id="another", member_id="ours")

    monkeypatch.setattr(GroupCoordinator, "_send_req", answered)
    group = Coordination.__new__(Coordination)
    group._group_instance_id = None
    group._assignors = [RoundRobinPartitionAssignor, SimpleNamespace(led_by=leads.append)]
    assert (await group._send_req(None)).leader_id == "another"
    assert leads == ["another"]


@pytest.mark.parametrize("error", [Error.UNKNOWN, Error.GROUP_AUTHORIZATION_FAILED])
def test_a_replica_without_partitions_takes_over_when_its_heartbeats_were_refused_for_a_while(
    error: Error, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(mischief.ERRORS, Api.HEARTBEAT, (error,))

    async def history() -> None:
        loop: Any = asyncio.get_running_loop()
        cluster = ScriptedCluster(Random(1), [("kafka", 9092)])
        cluster.create_topic("orders")
        node = Node(1, cluster)
        loop.network.serve("kafka:9092", node.serve)
        settings = LogSettings(hosts=["kafka:9092"], group="g", session_timeout=SESSION)
        logs = [KafkaLog(settings, Limits()) for _ in range(2)]
        owners = [Owner() for _ in logs]
        for log, owner in zip(logs, owners, strict=True):
            await log.start(owner)
            await log.subscribe(frozenset({"orders"}))

        async def polled(seconds: float) -> None:
            end = loop.time() + seconds
            while loop.time() < end:
                await asyncio.gather(*(log.poll(0.05) for log in logs))

        await polled(5)
        assert sorted(len(owner.owned) for owner in owners) == [0, 1]
        refused = Rule(Trick.REFUSED, 1, frozenset({Api.HEARTBEAT}))
        cluster.mischief.begin(refused)
        await polled(2 * SESSION)
        cluster.mischief.end(refused)
        await polled(5)
        leaving = logs.pop(next(at for at, owner in enumerate(owners) if owner.owned))
        (standby,) = (owner for owner in owners if not owner.owned)
        await leaving.stop()
        await polled(5)
        assert standby.owned == {Partition("orders", 0)}
        await logs[0].stop()
        await node.close()
        cluster.close()

    with seeded(Random(1)):
        virtual_time.run(history(), lambda: WireLoop(Random(1), turn_seconds=0.0002))


@pytest.mark.parametrize("task", ["heartbeat", "commit_offsets_refresh"])
async def test_whoever_ends_a_task_of_the_group_goes_on_when_it_had_not_begun(task: str) -> None:
    group: Any = Coordination.__new__(Coordination)
    group._heartbeat_task = group._commit_refresh_task = asyncio.create_task(asyncio.sleep(60))
    ending = asyncio.create_task(getattr(group, f"_stop_{task}_task")())
    await asyncio.wait({ending})
    assert not ending.cancelled()
    assert (group._heartbeat_task is None, group._commit_refresh_task is None) in {(True, False), (False, True)}


def coordination(topics: set[str]) -> Any:
    """One as far as it takes part here."""
    teach_manners()
    group: Any = Coordination.__new__(Coordination)
    group._assignors = [Assignor()]
    group._subscription = SimpleNamespace(topics=topics)
    return group


def assigned(*partitions: int, topic: str = "orders") -> bytes:
    return ConsumerProtocolMemberAssignment(0, [(topic, list(partitions))], b"").encode()


@pytest.mark.parametrize(
    ("member", "protocol", "given"),
    [
        ("me", "roundrobin", b"\x00"),
        ("me", "roundrobin", b"\x00\x00\xff\xff\xff\xff"),
        ("me", "roundrobin", assigned(0)[:-6]),
        ("me", "roundrobin", assigned(0).replace(b"orders", b"order\xff")),
        ("me", "roundrobin", assigned(-1)),
        ("me", "roundrobin", assigned(0, topic="others")),
        ("me", "range", assigned(0)),
        ("", "roundrobin", assigned(0)),
    ],
)
async def test_the_group_is_joined_anew_when_what_is_assigned_can_not_be_understood(
    member: str, protocol: str, given: bytes
) -> None:
    with pytest.raises(errors.KafkaError, match="what the group's leader has assigned can't be understood"):
        await coordination({"orders"})._on_join_complete(1, member, protocol, given)


async def test_a_member_that_is_told_nothing_has_no_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[Any] = []

    async def take(_: Any, generation: int, member: str, protocol: str, given: bytes) -> None:
        taken.append((generation, member, protocol, ConsumerProtocolMemberAssignment.decode(given).assignment))

    monkeypatch.setattr(Coordination.__mro__[1], "_on_join_complete", take)
    await coordination({"orders"})._on_join_complete(1, "me", "roundrobin", b"")
    await coordination({"orders"})._on_join_complete(2, "me", "roundrobin", assigned(4))
    assert taken == [(1, "me", "roundrobin", []), (2, "me", "roundrobin", [("orders", [4])])]


@pytest.mark.parametrize("said", [b"", b"\x00\x00\xff\xff\xff\xff\x00\x00\x00\x00"])
async def test_the_group_is_joined_anew_when_a_member_says_what_can_not_be_understood(said: bytes) -> None:
    whole = ConsumerProtocolMemberMetadata(0, ["orders"], b"").encode()
    response = SimpleNamespace(group_protocol="roundrobin", members=[("one", None, whole), ("two", None, said)])
    with pytest.raises(errors.KafkaError, match="what a member of the group says of itself can't be understood"):
        await coordination({"orders"})._perform_assignment(response)
