"""How long the flow took to come back after a fault, from what was seen of queues and group all along. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

At = tuple[str, int]
"""Topic and partition."""


@dataclass(frozen=True)
class Sighting:
    """One look from outside; None where broker or log did not answer."""

    second: float
    queued: int | None
    """Messages in all queues, which nobody consumes: what has arrived so far, repetitions included."""
    committed: Mapping[At, int] | None


@dataclass(frozen=True)
class Fault:
    """Something that was broken on purpose; seconds on the clock of the sightings."""

    name: str
    began: float
    """When the stop or kill was ordered."""
    mended: float
    """When the broker answered again, or the killed process had been started again."""


@dataclass(frozen=True)
class FlowBack:
    """Seconds from a fault's beginning; None if it was never seen."""

    first: float | None
    """Until anything arrived that was not there when it was mended; a fault that stops nothing makes no such pause."""
    everywhere: float | None
    """Until every partition that had something left had committed more than when it was mended."""


def flow_back(fault: Fault, sightings: Sequence[Sighting], ends: Mapping[At, int]) -> FlowBack:
    """Return when the flow was back.

    Compared is with the first look after the mending, not with the last before the fault: what was sent or committed
    between that look and the fault would pass for a flow that has come back.
    """
    after = [seen for seen in sightings if seen.second > fault.mended]
    return FlowBack(_first(fault, after), _everywhere(fault, after, ends))


def _first(fault: Fault, after: Sequence[Sighting]) -> float | None:
    queued = [(seen.second, seen.queued) for seen in after if seen.queued is not None]
    return next((second - fault.began for second, count in queued if count > queued[0][1]), None)


def _everywhere(fault: Fault, after: Sequence[Sighting], ends: Mapping[At, int]) -> float | None:
    committed = [(seen.second, seen.committed) for seen in after if seen.committed is not None]
    if not committed:
        return None
    then = committed[0][1]
    unfinished = [at for at, end in ends.items() if then.get(at, 0) < end]
    for second, now in committed[1:]:
        if all(now.get(at, 0) > then.get(at, 0) for at in unfinished):
            return second - fault.began
    return None
