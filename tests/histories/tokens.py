"""Counts a replica's tokens: what its gates granted and took back against what its event types say they used."""

from collections import Counter, defaultdict
from collections.abc import Iterator

from proxy.app import App

_ROUNDING = 1e-6


class Tokens:
    """Of one replica."""

    def __init__(self) -> None:
        self._events = Counter[str]()
        self._bytes = defaultdict[str, float](float)

    def use(self, route: str, events: int, size: float) -> None:
        """Count what is sent of what a throttle of a route admitted."""
        self._events[route] += events
        self._bytes[route] += size

    def wrong(self, app: App) -> Iterator[str]:
        """Yield what does not add up; meant for when nobody has anything to send."""
        for route, gate, counts_bytes in app.steering.policies.gates:
            used = self._bytes[route] if counts_bytes else self._events[route]
            if abs(gate.taken - used) > _ROUNDING * max(1.0, used):
                yield f"{gate.taken:g} tokens are taken, {used:g} are used"
