"""The calls by which the library's consumer tells of rebalances."""

from collections.abc import Callable
from typing import Any

from aiokafka import TopicPartition
from aiokafka.abc import ConsumerRebalanceListener

from proxy.kafka_log.assignor import Assignor
from proxy.kafka_log.client import Reach
from proxy.kafka_log.unshared import Unshared
from proxy.model import Partition
from proxy.positions import Positions
from proxy.positions.port import Membership


class Rebalances(ConsumerRebalanceListener):  # type: ignore[misc]  # the library is untyped
    """Takes them; the consumer would only log what they raise, so that goes to `on_failure` instead."""

    def __init__(
        self,
        consumer: Any,
        assignor: Assignor,
        positions: Positions,
        unshared: Unshared,
        reach: Reach,
        on_failure: Callable[[Exception], None],
    ) -> None:
        self._consumer = consumer
        self._assignor = assignor
        self._positions = positions
        self._unshared = unshared
        self._reach = reach
        self._on_failure = on_failure

    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        """Begin an epoch, perhaps of none: the group has answered."""
        self._reach.found("group")
        group = self._consumer._coordinator  # noqa: SLF001  # what the group calls us is told nowhere else
        partitions = [Partition(*at) for at in assigned]
        self._assignor.note(partitions, group.generation)
        self._unshared.begin(partitions)
        try:
            self._positions.begin(partitions, Membership(group.generation, group.member_id))
        except Exception as error:  # noqa: BLE001  # handed on, see the class
            self._on_failure(error)

    async def on_partitions_revoked(self, _: set[TopicPartition]) -> None:
        """End the epoch; what it owns is known there, the consumer has forgotten it if it was subscribed anew."""
        try:
            await self._positions.end()
        except Exception as error:  # noqa: BLE001  # handed on, see the class
            self._on_failure(error)
