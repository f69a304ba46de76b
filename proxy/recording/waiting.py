"""What waits of some event types, added up one after the other: thousands of them are no single step of the loop."""

from collections.abc import Iterable, Iterator, Mapping
from math import inf
from typing import Any

from proxy.bridge.listener import Listener
from proxy.model import Partition

AT_ONCE = 64
"""Event types, or partitions, that are recorded in one step of the event loop: a few milliseconds."""
_WEIGHT = 256
"""Event types and their partitions that are looked at in one step: a millisecond or two."""


class Waiting:
    """What waits of event types; `lags` is what the log has told of their partitions, None if it did not answer.

    `left` is what it has told, by topic, of partitions that are nobody's now.
    """

    def __init__(self, lags: Mapping[Partition, int] | None, left: Mapping[str, int] | None = None) -> None:
        self._lags = lags
        self._left = left or {}
        self._events = self._catching_up = self._ahead = 0
        self._oldest_ms: float = inf
        self.lag: int | None = None if lags is None else 0
        """Events in the log not yet done with; None if that is not known of one partition."""

    def add(self, one: Listener) -> None:
        """Add an event type."""
        inbox = one.inbox
        if inbox.events:
            self._events += inbox.events
            self._catching_up += inbox.catching_up
            if (stamp := inbox.oldest_ms()) is not None:
                self._oldest_ms = min(self._oldest_ms, stamp)
        for partition, flow in inbox.flows.items():
            self._ahead += flow.watermark.ahead
            lag = None if self._lags is None else self._lags.get(partition)
            self.lag = None if self.lag is None or lag is None else self.lag + lag
        if self.lag is not None:
            self.lag += self._left.get(one.event_type.topic, 0)

    def told(self, wall: float) -> dict[str, Any]:
        """Return the fields of a record; `wall` is now in seconds since 1970."""
        age = None if self._oldest_ms == inf else max(0.0, wall - self._oldest_ms / 1000)
        return {
            "waiting": self._events,
            "catching_up": self._catching_up,
            "ahead": self._ahead,
            "lag_age_s": None if age is None else round(age, 3),
            "lag": self.lag,
        }


def slices(listeners: Iterable[Listener]) -> Iterator[list[Listener]]:
    """Yield event types in order, as many together as are looked at in one step of the loop; at least one."""
    some: list[Listener] = []
    weight = 0
    for one in listeners:
        some.append(one)
        weight += 1 + len(one.inbox.flows)
        if weight >= _WEIGHT:
            yield some
            some, weight = [], 0
    if some:
        yield some
