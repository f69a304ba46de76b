"""Outcomes on their way to the recipients: gathered within one turn of the event loop, told as ranges.

Pure: plain calls.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from proxy.bridge.broker import Batch
from proxy.model import Outcome, Reason
from proxy.publish_lane.line import Window
from proxy.publish_lane.quarantine import Quarantine


@dataclass(slots=True)
class Resolved:
    """Consecutive events of one batch whose publication ended alike."""

    batch: Batch
    start: int
    end: int
    outcome: Outcome
    seconds: float | None = None
    reason: Reason | None = None
    detail: str = ""

    def take_in(self, later: "Resolved") -> bool:
        """Grow by `later` if it continues this one; return whether it did."""
        if (
            later.batch is not self.batch
            or later.start != self.end
            or later.outcome is not self.outcome
            or later.reason is not self.reason
            or later.detail != self.detail
        ):
            return False
        self.end = later.end
        self.seconds = later.seconds
        return True


@dataclass(slots=True)
class Outcomes:
    """Frees what the resolved events held, then tells their recipients."""

    window: Window
    quarantine: Quarantine
    _untold: list[Resolved] = field(default_factory=list)

    def add(self, resolved: Iterable[Resolved], *, written: bool = True) -> None:
        """Take outcomes in; `written` unless the events never took a slot."""
        for one in resolved:
            if written:
                size = sum([event.size for event in one.batch.events[one.start : one.end]])
                self.window.give(one.end - one.start, size)
                if one.outcome is not Outcome.UNKNOWN and one.reason is not Reason.REFUSED:
                    self.quarantine.clear(one.batch.partition.topic, one.end - one.start)
            if not self._untold or not self._untold[-1].take_in(one):
                self._untold.append(one)

    def tell(self) -> bool:
        """Tell the recipients, whose answer may add outcomes; return whether there was anything to tell."""
        if not self._untold:
            return False
        while self._untold:
            untold, self._untold = self._untold, []
            for one in untold:
                batch, why = one.batch, one.reason
                batch.recipient.on_outcome(
                    batch, one.start, one.end, one.outcome, seconds=one.seconds, reason=why, detail=one.detail
                )
        return True
