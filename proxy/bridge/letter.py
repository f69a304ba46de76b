"""A dead letter on its way: what `dead_letters` hands to the lane, and how its batches are cut."""

from collections.abc import Callable, Sequence

from proxy.bridge.broker import Batch
from proxy.bridge.flow import PartitionFlow
from proxy.model import PASSING, Outcome, Reason


class Letter:
    """The recipient of some dead letters of one flow for one reason."""

    def __init__(
        self, flow: PartitionFlow, reason: Reason, on_outcome: Callable[[Batch, int, int, Outcome, str], None]
    ) -> None:
        self.flow = flow
        self.reason = reason
        self._sent = flow.sent
        self._on_outcome = on_outcome

    @property
    def may_turn_back(self) -> bool:
        """Whether its events may go by their own route again: in time, and for a reason that may have passed."""
        return self.reason in PASSING and not self.flow.is_passed(self._sent)

    def may_send(self) -> bool:
        """See `Recipient.may_send`."""
        return self.flow.may_send()

    def on_outcome(
        self,
        batch: Batch,
        start: int,
        end: int,
        outcome: Outcome,
        *,
        seconds: float | None = None,  # noqa: ARG002 - a dead letter is no sample of its route's latency
        reason: Reason | None = None,
        detail: str = "",
    ) -> None:
        """See `Recipient.on_outcome`."""
        self._on_outcome(batch, start, end, outcome, detail or str(reason or ""))


def part(batch: Batch, start: int, end: int) -> Batch:
    """Return `events[start:end]` of the batch as one of its own."""
    events = batch.events[start:end]
    return Batch(batch.partition, events, batch.first + start, batch.address, batch.rank, batch.recipient)


def count(batches: Sequence[Batch]) -> int:
    """Return how many events these are."""
    return sum(len(batch.events) for batch in batches)


def size(batches: Sequence[Batch]) -> int:
    """Return how many bytes these are."""
    return sum(event.size for batch in batches for event in batch.events)


def letter_of(batch: Batch) -> Letter:
    """Return whom the batch tells how it ended."""
    assert isinstance(batch.recipient, Letter)
    return batch.recipient
