"""What hears of the letters of one batch, and the order in which letters go."""

from collections.abc import Callable, Container, Sequence

from proxy.bridge.broker import Batch
from proxy.model import Outcome, Partition, Reason
from proxy.redrive.choice import Going

OnOutcome = Callable[[Sequence[Going], Outcome, Reason | None, str], None]
"""Takes the outcome of letters of one partition."""


class Sending:
    """The recipient of one batch; of a partition that is `halted` nothing more is sent."""

    def __init__(self, letters: Sequence[Going], halted: Container[Partition], on_outcome: OnOutcome) -> None:
        self.letters = letters
        self._halted = halted
        self._on_outcome = on_outcome

    def may_send(self) -> bool:
        """See `Recipient.may_send`."""
        return self.letters[0].letter.partition not in self._halted

    def on_outcome(
        self,
        _batch: Batch,
        start: int,
        end: int,
        outcome: Outcome,
        *,
        seconds: float | None = None,  # noqa: ARG002 - see `Recipient.on_outcome`
        reason: Reason | None = None,
        detail: str = "",
    ) -> None:
        """See `Recipient.on_outcome`."""
        self._on_outcome(self.letters[start:end], outcome, reason, detail)


def place(going: Going) -> tuple[str, str, int, int]:
    """Return what letters are sorted by: their route, then where they stood in the log."""
    position = going.letter.event.position
    assert isinstance(position, int)
    return going.event_type.route, going.letter.partition.topic, going.letter.partition.number, position
