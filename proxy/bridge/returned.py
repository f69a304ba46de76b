"""Events that came back, and where they might have gone."""

from dataclasses import dataclass
from typing import NamedTuple

from proxy.bridge.broker import Batch, Lane
from proxy.bridge.flow import PartitionFlow


class Place(NamedTuple):
    """A queue as that node sees it with which a lane is connected: nodes that don't see each other differ."""

    lane: Lane
    queue: str


Places = tuple[Place, ...]
"""Where events may go, all over one lane: one of these that is away may be why they came back."""


@dataclass(frozen=True, slots=True)
class Returned:
    """Events of one batch that came back, and what their flow is to be told beside the outcome."""

    places: Places
    flow: PartitionFlow
    batch: Batch
    start: int
    end: int
    seconds: float | None
    detail: str
    """Exchange and key, in the broker's words."""
    at: float
    """When they came back, by the loop's clock."""
    is_direct: bool
    """They were for the queue itself, which needs no binding."""

    @property
    def host(self) -> str:
        """Whom to ask; empty if the lane is connected with nobody now."""
        return self.places[0].lane.host if self.places else ""
