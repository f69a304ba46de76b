"""The replicas that `tidegate top` looks at, over time: who is away counts until others have its partitions."""

from collections.abc import Sequence

from proxy.operations.top_links import Replica
from proxy.operations.top_sum import Sum, summed

SETTLE_MS = 2_000
"""So long the last records may still be those of before others are counted."""


class Group:
    """Sums up replicas at each look. What one that is away told last would count twice once others tell of it, too."""

    def __init__(self, replicas: Sequence[Replica]) -> None:
        self._replicas = replicas
        self._left_to: dict[str, int] = {}
        """By address of who is away: how many partitions the others had when it went."""
        self._gone: set[str] = set()
        """Addresses of those whose partitions others have."""
        self._since_ms = 0
        """From when on a curve is of those who count now."""

    def summed(self) -> Sum:
        """Sum up those who count."""
        here = sum(_partitions(one) for one in self._replicas if not one.why)
        for one in self._replicas:
            if not one.why:
                self._left_to.pop(one.address, None)
            else:
                self._left_to.setdefault(one.address, here)
        gone = {address for address, had in self._left_to.items() if address in self._gone or here > had}
        found = summed(self._replicas, gone, self._since_ms)
        if gone != self._gone:
            self._gone, self._since_ms = gone, found.at_ms + SETTLE_MS
            found = summed(self._replicas, gone, self._since_ms)
        return found


def _partitions(one: Replica) -> int:
    if not one.told:
        return 0
    place = one.told["columns"].index("partitions")
    return sum(row[place] for row in one.told["types"].values())
