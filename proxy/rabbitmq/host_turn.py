"""Which host is tried next: each in turn, but for those that just kept somebody waiting. Pure: handed `now`."""

from collections.abc import Sequence

DOUBTED_FOR = 15.0
"""Seconds for which a host that kept a lane waiting is passed over, if there is another: to try it costs seconds."""


class DoubtedHosts:
    """What all connections of a process with one broker know together: a node that is lost is lost to each of them."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}

    def add(self, host: str, now: float) -> None:
        """Know that a host said nothing when it should have, or confirmed nothing."""
        self._until[host] = now + DOUBTED_FOR

    def remove(self, host: str) -> None:
        """Know that it confirms."""
        self._until.pop(host, None)

    def has(self, host: str, now: float) -> bool:
        """Return whether it is better to be elsewhere."""
        return self._until.get(host, now) > now


class HostTurn:
    """Of one lane, or the monitor; begins with the first of `hosts`."""

    def __init__(self, hosts: Sequence[str], doubted: DoubtedHosts) -> None:
        self.home = hosts[0]
        """Where it begins."""
        self._hosts = hosts
        self._doubted = doubted
        self._place = 0

    def next(self, now: float) -> str:
        """Return the next that is not in doubt; the next of all if each is."""
        count = len(self._hosts)
        order = [(self._place + step) % count for step in range(count)]
        place = next((place for place in order if not self._doubted.has(self._hosts[place], now)), order[0])
        self._place = place + 1
        return self._hosts[place]

    def is_better_elsewhere(self, host: str, now: float) -> bool:
        """Return whether a host is in doubt, and another is not."""
        return self._doubted.has(host, now) and any(not self._doubted.has(other, now) for other in self._hosts)
