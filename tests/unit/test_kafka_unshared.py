"""Partitions that a topic has got and that no leader shares out."""

from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.cluster import ClusterMetadata

from proxy.errors import LogError
from proxy.kafka_log.unshared import Counts, Unshared
from proxy.model import Partition
from proxy.positions.identity import Committed

PATIENCE = 15.0
OWNED, COME = Partition("orders", 0), Partition("orders", 1)


class Group:
    """One that has committed something, a topic that grows, and a clock."""

    def __init__(self, *, is_static: bool = False) -> None:
        self.now = 100.0
        self.partitions = 1
        self.told: dict[Partition, Committed | None] = {OWNED: Committed(7, "")}
        self.asked = 0
        self.is_silent = False
        self.unshared = Unshared(
            lambda topics: dict.fromkeys(topics, self.partitions),
            self.committed,
            lambda: self.now,
            patience=PATIENCE,
            is_static=is_static,
        )
        self.unshared.begin([OWNED])

    async def committed(self) -> dict[Partition, Committed | None]:
        self.asked += 1
        if self.is_silent:
            raise LogError("no answer")
        return self.told

    async def looks(self, seconds: float) -> list[float]:
        """Return when it wanted to join anew, in seconds from now."""
        began, wanted = self.now, []
        while self.now < began + seconds:
            if await self.unshared.are_there({"orders"}):
                wanted.append(self.now - began)
            self.now += 1.0
        return wanted


async def test_the_group_is_joined_anew_once_when_a_topic_has_grown_and_no_new_generation_came() -> None:
    group = Group()
    assert await group.looks(60) == []
    group.partitions = 2
    assert await group.looks(60) == [PATIENCE]
    assert group.asked == 1


@pytest.mark.parametrize("committed", [Committed(0, ""), None], ids=["read", "not-known"])
async def test_the_group_is_left_alone_when_somebody_may_read_what_has_come(committed: Committed | None) -> None:
    group = Group()
    await group.looks(5)
    group.partitions = 2
    group.told[COME] = committed
    assert await group.looks(60) == []


async def test_the_group_is_asked_again_when_it_does_not_tell_what_it_has_committed() -> None:
    group = Group()
    await group.looks(1)
    group.partitions, group.is_silent = 2, True
    assert await group.looks(PATIENCE + 3) == []
    group.is_silent = False
    assert await group.looks(60) == [0.0]
    assert group.asked == 4


async def test_the_group_is_left_alone_when_its_leader_has_seen_what_has_come() -> None:
    group = Group()
    await group.looks(5)
    group.partitions = 2
    await group.looks(5)
    group.unshared.begin([OWNED])
    assert await group.looks(60) == []
    assert group.asked == 0


@pytest.mark.parametrize(("is_static", "wanted"), [(True, [PATIENCE]), (False, [])])
async def test_what_came_while_it_was_away_is_found_when_a_member_is_static(
    wanted: list[float], *, is_static: bool
) -> None:
    group = Group(is_static=is_static)
    group.partitions = 2
    assert await group.looks(60) == wanted
    group.unshared.begin([OWNED])
    assert await group.looks(60) == []


async def test_partitions_are_counted_anew_when_the_metadata_have_come_or_other_topics_are_read() -> None:
    client: Any = SimpleNamespace(cluster=ClusterMetadata(bootstrap_servers=[]), on_metadata=[])
    grown: dict[str, set[int]] = {"orders": {0}}
    client.cluster.partitions_for_topic = grown.get
    counts, topics = Counts(client), frozenset({"orders", "absent"})
    assert counts.of(topics) == {"orders": 1, "absent": 0}
    grown["orders"] = {0, 1}
    assert counts.of(topics)["orders"] == 1, "nothing has come"
    for act in client.on_metadata:
        act()
    assert counts.of(topics) == {"orders": 2, "absent": 0}
    assert counts.of(topics) is counts.of(topics)
    assert counts.of(frozenset({"orders"})) == {"orders": 2}
