"""What the replicas of a group tell each other when they join."""

from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.protocol import ConsumerProtocolMemberMetadata
from structlog.testing import capture_logs

from proxy.kafka_log.assignor import Assignor
from proxy.model import Partition

CLUSTER: Any = SimpleNamespace(partitions_for_topic=lambda topic: set(range(6)) if topic == "orders" else None)


def said(*numbers: int, generation: int = 4) -> ConsumerProtocolMemberMetadata:
    assignor = Assignor()
    assignor.note([Partition("orders", number) for number in numbers], generation)
    return ConsumerProtocolMemberMetadata.decode(assignor.metadata(["orders", "gone"]).encode())


def numbers(given: Any) -> list[int]:
    return [at.partition for at in given.partitions()]


def test_members_keep_what_they_own_when_another_joins() -> None:
    given = Assignor().assign(CLUSTER, {"a": said(0, 2, 4), "b": said(1, 3, 5), "new": said(generation=-1)})
    assert (numbers(given["a"]), numbers(given["b"]), numbers(given["new"])) == ([0, 2], [1, 3], [4, 5])


STRANGE = (
    b"", b"\xff", b"[]", b'{"owned":{}}', b'{"generation":1,"owned":{"orders":7}}',
    b"[" * 100_000, b'{"generation":1e400,"owned":{}}',
)  # fmt: skip


@pytest.mark.parametrize("strange", STRANGE, ids=lambda said: said[:20].decode(errors="replace") or "nothing")
def test_a_member_owns_nothing_when_what_it_says_is_not_understood(strange: bytes) -> None:
    other = ConsumerProtocolMemberMetadata(0, ["orders"], strange)
    given = Assignor().assign(CLUSTER, {"a": said(0, 1, 2), "tidegate-b": other})
    assert (numbers(given["a"]), numbers(given["tidegate-b"])) == ([0, 1, 2], [3, 4, 5])


def test_a_stranger_is_given_nothing_and_named_once_when_it_is_in_the_group() -> None:
    other = ConsumerProtocolMemberMetadata(0, ["orders", "theirs"], b"")
    leader = Assignor()
    with capture_logs() as logged:
        for _ in range(2):
            given = leader.assign(CLUSTER, {"a": said(0, 1, 2), "billing-7": other})
    assert (numbers(given["a"]), numbers(given["billing-7"])) == ([0, 1, 2, 3, 4, 5], [])
    assert [one["members"] for one in logged] == [["billing-7"]]


def test_a_stranger_that_leads_the_group_is_named_once_and_one_of_ours_is_not() -> None:
    follower = Assignor()
    with capture_logs() as logged:
        for leader in ("tidegate-1", "billing-7", "billing-7", "tidegate-1", "billing-7"):
            follower.led_by(leader)
    assert [one["members"] for one in logged] == [["billing-7"], ["billing-7"]]
    assert "leads the group" in logged[0]["effect"]


def test_old_and_new_replicas_share_a_group_when_one_after_the_other_is_replaced() -> None:
    assert Assignor.name == RoundRobinPartitionAssignor.name
    given = RoundRobinPartitionAssignor.assign(CLUSTER, {"a": said(0, 1, 2), "b": said(3, 4, 5)})
    assert (numbers(given["a"]), numbers(given["b"])) == ([0, 2, 4], [1, 3, 5])
