"""What a flow asks of its listener."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from proxy.bridge.broker import Batch
from proxy.model import Event, Outcome, Reason

if TYPE_CHECKING:
    from proxy.bridge.flow import PartitionFlow


class FlowHost(Protocol):
    """The listener, as its flows see it."""

    def on_outcome(
        self, flow: "PartitionFlow", batch: Batch, start: int, end: int, outcome: Outcome, seconds: float | None
    ) -> None:
        """See an outcome before the flow acts on it."""
        ...

    def on_confirmed(self, batch: Batch, events: Sequence[Event], seconds: float | None, overtaken: int) -> None:
        """Count confirmed events of a batch, `overtaken` of them delivered after a later event of their partition."""
        ...

    def on_failed(self, outcome: Outcome, count: int, *, congestion: bool) -> float:
        """Count events to be sent again; return the time on the loop's clock."""
        ...

    def on_resolved(self, flow: "PartitionFlow", count: int) -> None:
        """Be told that the watermark of a flow has moved by so many events."""
        ...

    def on_undeliverable(self, count: int) -> None:
        """Count events that can't be delivered."""
        ...

    def asks(self, flow: "PartitionFlow", batch: Batch, start: int, end: int, seconds: float | None, why: str) -> bool:
        """Ask what has become of the queue of events that came back; return whether `flow.on_outcome` will tell."""
        ...

    def dead_letter(
        self, flow: "PartitionFlow", first: int, events: Sequence[Event], reason: Reason, detail: str
    ) -> None:
        """Take over events that can't be delivered; `flow.park_done` or `flow.take_back` ends it."""
        ...

    def on_going_again(self, flow: "PartitionFlow") -> None:
        """Be told that an event of a flow that tries anew was confirmed."""
        ...

    def withdraw(self, flow: "PartitionFlow") -> None:
        """Write no more of what was handed on from the flow."""
        ...

    def wake(self) -> None:
        """Look again for something to send."""
        ...

    def on_settled(self) -> None:
        """Be told that a flow has nothing out any more, and nothing to send."""
        ...

    def may_send(self) -> bool:
        """Return whether this replica may publish now."""
        ...
