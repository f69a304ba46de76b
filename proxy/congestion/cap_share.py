"""How a cap of the whole group is divided over partitions, and so over the replicas that own them; pure.

Each partition is one replica's, and every replica is told the same lags and ends by the log, so each can reckon what
falls to its own and all parts together never exceed the cap. It is max-min fair (Bertsekas and Gallager 1992, 6.5.2):
who needs less than an equal part gets what it needs, the rest is divided again among those who need more. Example,
100/s over three partitions, of which one gets 10 events a second and two have a backlog: 11, 44.5, 44.5.
"""

from collections.abc import Iterable, Mapping
from math import inf

from proxy.model import Partition

LEAST_SHARE = 0.01
"""Of an equal part, that a partition keeps while nothing is known to come: what comes next waits for no new sample."""
ROOM = 1.1
"""Times what comes: so that what has piled up between two samples is worked off."""
BACKLOG_SECONDS = 1.0
"""Of what comes; with more than that waiting a partition takes whatever it can get."""


def needs(lags: Mapping[Partition, int], came: Mapping[Partition, float]) -> dict[Partition, float]:
    """Return what each partition can use, in events a second: infinite where a backlog waits.

    `lags` are events not yet done with, `came` events a second; where the latter isn't known, any lag is a backlog.
    """
    return {
        at: inf if lag > BACKLOG_SECONDS * came.get(at, 0.0) else ROOM * came.get(at, 0.0) for at, lag in lags.items()
    }


def share(rate: float, needed: Mapping[Partition, float], own: Iterable[Partition]) -> float:
    """Return what falls to one's own partitions, in events a second; all of it where nobody else has any."""
    if not needed:
        return rate
    least = LEAST_SHARE * rate / len(needed)
    wants = {at: max(least, need) for at, need in needed.items()}
    left, parts = rate, dict[Partition, float]()
    for number, (at, want) in enumerate(sorted(wants.items(), key=lambda one: one[1])):
        parts[at] = min(want, left / (len(wants) - number))
        left -= parts[at]
    # What nobody needs just now is there for whoever gets something before the next sample.
    spare = left / len(wants)
    return sum(parts[at] + spare for at in own if at in parts)
