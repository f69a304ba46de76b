"""How the group's leader shares partitions out; who leads is one of the replicas.

Not the library's sticky assignor: it keeps what a member owns in its class, for all consumers of the process, and never
learns the generation, so that of two members that claim a partition it can't tell the later (aiokafka issues 1175 and
1176, open). Ours speaks under the name of the round robin that Tidegate had before, which says nothing of what it owns:
replicas of both kinds share a group while one after the other is replaced. So may whoever else takes that name, but is
given nothing: what it commits would never reach the broker.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import structlog
from aiokafka.cluster import ClusterMetadata
from aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata

from proxy.json_text import read_json
from proxy.kafka_log.client import CLIENT
from proxy.model import Partition
from proxy.positions.sharing import Claim, share_out

_VERSION = 0
_NAMED = 5
"""Members of another kind that are named; of more than that the first."""
_say = structlog.get_logger("tidegate.kafka")


class Assignor(AbstractPartitionAssignor):  # type: ignore[misc]  # the library is untyped
    """One consumer's."""

    name = "roundrobin"

    def __init__(self) -> None:
        self._strangers: frozenset[str] = frozenset()
        self._owned: Collection[Partition] = ()
        self._generation = -1

    def note(self, owned: Collection[Partition], generation: int) -> None:
        """Note what this consumer was given."""
        self._owned, self._generation = owned, generation

    def metadata(self, topics: Iterable[str]) -> ConsumerProtocolMemberMetadata:
        """Return what is said to the leader: what this consumer reads, and what it owned last."""
        owned: dict[str, list[int]] = {}
        for partition in sorted(self._owned):
            owned.setdefault(partition.topic, []).append(partition.number)
        said = json.dumps({"generation": self._generation, "owned": owned}, separators=(",", ":"))
        return ConsumerProtocolMemberMetadata(_VERSION, sorted(topics), said.encode())

    def assign(
        self, cluster: ClusterMetadata, members: Mapping[str, ConsumerProtocolMemberMetadata]
    ) -> dict[str, ConsumerProtocolMemberAssignment]:
        """Share all partitions out among our own, as the leader."""
        claims = {name: claim for name, one in members.items() if (claim := _claim(name, one)) is not None}
        strangers = frozenset(members.keys() - claims.keys())
        self._tell_of(
            strangers,
            "none of the partitions is theirs while one of ours leads the group; what they commit "
            "otherwise never reaches the broker",
        )
        topics = frozenset().union(*(claim.topics for claim in claims.values()))
        partitions = [
            Partition(topic, number) for topic in topics for number in cluster.partitions_for_topic(topic) or ()
        ]
        shared = share_out(claims, partitions) | {name: [] for name in strangers}
        return {name: _assignment(given) for name, given in shared.items()}

    def led_by(self, leader: str) -> None:
        """Note who leads the group, and so shares out: another than this one, by its member id.

        The group calls a member by its client's name; by the instance's, where it has one: not for these to be called.
        """
        self._tell_of(
            frozenset() if leader.startswith(CLIENT) else frozenset({leader}),
            "it leads the group and has partitions given to itself as well: what it commits never reaches the broker",
        )

    def _tell_of(self, strangers: frozenset[str], effect: str) -> None:
        if strangers - self._strangers:
            _say.error(
                "group_has_strangers",
                members=sorted(strangers)[:_NAMED],
                effect=effect,
                remedy="give every other consumer a group of its own",
            )
        self._strangers = strangers

    def on_assignment(self, assignment: ConsumerProtocolMemberAssignment) -> None:
        """Do nothing: the generation is not told here; see `note`."""


def _claim(name: str, metadata: Any) -> Claim | None:
    """Return what a member says; of one that says nothing the group's name for it tells whether it is an older of ours.

    None: it is none of ours.
    """
    topics = frozenset(metadata.subscription)
    try:
        said = read_json(metadata.user_data)
        owned = [Partition(str(topic), int(number)) for topic, numbers in said["owned"].items() for number in numbers]
        return Claim(topics, owned, int(said["generation"]))
    except (ValueError, OverflowError, TypeError, KeyError, AttributeError):
        return Claim(topics) if name.startswith(CLIENT) else None


def _assignment(given: Iterable[Partition]) -> ConsumerProtocolMemberAssignment:
    by_topic: dict[str, list[int]] = {}
    for partition in given:
        by_topic.setdefault(partition.topic, []).append(partition.number)
    return ConsumerProtocolMemberAssignment(_VERSION, sorted(by_topic.items()), b"")
