"""What passes on the data's path, shown as it happens to whoever judges it from outside."""

from typing import Protocol

from proxy.bridge.broker import Batch
from proxy.bridge.flow import PartitionFlow
from proxy.model import Outcome, Reason


class Observer(Protocol):
    """Is told, in the step in which it happens, before the bridge acts on it; looks, and never acts.

    Every call stands for a range of events, none for a single one. An error raised here is one of the bridge.
    """

    def on_outcome(
        self, flow: PartitionFlow, batch: Batch, start: int, end: int, outcome: Outcome, seconds: float | None
    ) -> None:
        """See how `batch.events[start:end]` ended, `seconds` after they were written; None: nothing came back."""
        ...

    def on_letter_outcome(
        self, flow: PartitionFlow, batch: Batch, start: int, end: int, outcome: Outcome, reason: Reason
    ) -> None:
        """See how the dead letters of `batch.events[start:end]` ended."""
        ...

    def on_discarded(self, flow: PartitionFlow, batch: Batch) -> None:
        """See that a batch is discarded, unsent."""
        ...

    def on_used(self, route: str, events: int, work: float, size: int) -> None:
        """See how many events, what they are charged, and their bytes use what a throttle of a route admitted."""
        ...


class _Unobserved:
    """Nobody looks."""

    def on_outcome(
        self, flow: PartitionFlow, batch: Batch, start: int, end: int, outcome: Outcome, seconds: float | None
    ) -> None:
        """Do nothing."""

    def on_letter_outcome(
        self, flow: PartitionFlow, batch: Batch, start: int, end: int, outcome: Outcome, reason: Reason
    ) -> None:
        """Do nothing."""

    def on_discarded(self, flow: PartitionFlow, batch: Batch) -> None:
        """Do nothing."""

    def on_used(self, route: str, events: int, work: float, size: int) -> None:
        """Do nothing."""


UNOBSERVED = _Unobserved()
"""What production has."""
