"""Who leads a partition when nodes tell different things."""

from base64 import urlsafe_b64encode
from typing import Any

from aiokafka.cluster import ClusterMetadata
from aiokafka.structs import TopicPartition
from hypothesis import given
from hypothesis import strategies as st

from proxy.kafka_log.leaders import Leaders
from proxy.kafka_log.protocol import TopicsRequest

OLD, NEW = 1, 2


def answer(leader: int, epoch: int, *, topic_id: str = "id", version: int = 10) -> Any:
    """Return what a node tells of partition 3 of a topic."""
    kind = TopicsRequest([], with_rights=False).prepare({3: (version, version)}).RESPONSE_TYPE
    tags: tuple[Any, ...] = ({},) if version == 10 else ()
    named = (topic_id,) if version == 10 else ()
    partition = (0, 3, leader, epoch, [1, 2], [2], [], *tags)
    topic = (0, "orders", *named, False, [partition], 0, *tags)
    brokers = [(node, f"kafka-{node}", 9092, None, *tags) for node in (1, 2)]
    return kind(0, brokers, "cluster", 1, [topic], 0, *tags)


def led(response: Any) -> int | None:
    """Return who leads it by an answer as aiokafka takes it in."""
    cluster = ClusterMetadata()
    cluster.update_metadata(response)
    leader: int | None = cluster.leader_for_partition(TopicPartition("orders", 3))
    return leader


def test_a_node_that_was_cut_off_brings_no_leader_back() -> None:
    leaders = Leaders()
    assert led(leaders.settled(answer(OLD, 4))) == OLD
    assert led(leaders.settled(answer(NEW, 5))) == NEW
    assert led(leaders.settled(answer(OLD, 4))) == NEW
    assert led(leaders.settled(answer(OLD, 6))) == OLD


def test_a_partition_without_a_leader_has_none_when_that_is_the_newest() -> None:
    leaders = Leaders()
    leaders.settled(answer(OLD, 4))
    assert led(leaders.settled(answer(-1, 5))) == -1


def test_a_topic_made_anew_begins_with_an_epoch_of_its_own() -> None:
    leaders = Leaders()
    leaders.settled(answer(NEW, 5))
    assert led(leaders.settled(answer(OLD, 0, topic_id="another"))) == OLD


def test_every_answer_is_believed_when_brokers_tell_no_ids() -> None:
    leaders = Leaders()
    leaders.settled(answer(NEW, 5, version=8))
    assert led(leaders.settled(answer(OLD, 4, version=8))) == OLD


def test_ids_are_the_same_object_until_one_is_another() -> None:
    leaders = Leaders()
    first, second = (urlsafe_b64encode(bytes([at]) * 16).decode().rstrip("=") for at in (1, 2))
    leaders.settled(answer(OLD, 4, topic_id=first))
    known = leaders.ids
    assert known == ({"orders": b"\1" * 16}, {b"\1" * 16: "orders"})
    leaders.settled(answer(NEW, 5, topic_id=first))
    assert leaders.ids is known
    leaders.settled(answer(NEW, 0, topic_id=second))
    assert leaders.ids.of == {"orders": b"\2" * 16}
    leaders.settled(answer(NEW, 1, version=8))
    assert leaders.ids == ({}, {})


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 20)), min_size=1))
def test_the_leader_is_that_of_the_highest_epoch_told_so_far(told: list[tuple[int, int]]) -> None:
    leaders, highest = Leaders(), -1
    by_epoch: dict[int, int] = {}
    for leader, epoch in told:
        by_epoch.setdefault(epoch, leader)
        highest = max(highest, epoch)
        found = led(leaders.settled(answer(by_epoch[epoch], epoch)))
        assert found == by_epoch[highest]
