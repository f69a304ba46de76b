"""For how long a partition is left out of the fetches of a node that answers with an error for it."""

from collections.abc import Collection
from typing import Any

from aiokafka import TopicPartition, errors

FIRST_REST = 0.1
LONGEST_REST = 2.0
"""Seconds for which a partition that fails is left out: the first time, doubled up to the longest."""
LONGEST_REST_MOVED = 0.4
"""The same where the error says that another node leads it by now: the metadata are on their way."""
NO_SUCH_ID = {100, 103}
"""Errors where a topic has another id by now, which the library does not know; the metadata tell it."""


class Refusal:
    """A node's error for one partition."""

    def __init__(self, node: Any) -> None:
        self.node = node
        self.error = 0
        self.rest = 0.0
        self.until = 0.0


class Refusals(dict[TopicPartition, Refusal]):
    """The last error of each partition that fails."""

    def add(self, tp: TopicPartition, node: Any, error: int, now: float) -> None:
        """Leave the partition out of the node's fetches, for twice as long as the time before."""
        refusal = self.get(tp)
        if refusal is None or refusal.node != node:
            refusal = self[tp] = Refusal(node)
        moved = error in NO_SUCH_ID or getattr(errors.for_code(error), "invalid_metadata", False)
        refusal.error = error
        refusal.rest = min(2 * refusal.rest or FIRST_REST, LONGEST_REST_MOVED if moved else LONGEST_REST)
        refusal.until = now + refusal.rest

    def rests(self, tp: TopicPartition, node: Any, now: float) -> bool:
        """Return whether the node is not to be asked for the partition now; another may be."""
        refusal = self.get(tp)
        return refusal is not None and refusal.node == node and refusal.until > now

    def keep(self, those: Collection[TopicPartition]) -> None:
        """Forget all others."""
        for tp in self.keys() - set(those):
            del self[tp]
