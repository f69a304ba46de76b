"""What happened to the events of one type, class or route since the last record; every count is of that interval."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from proxy.congestion.buckets import index_of
from proxy.model import Event, Outcome, Reason


@dataclass(slots=True)
class Tally:
    """Counts and sparse distributions in microseconds (`congestion.buckets`)."""

    received: int = 0
    received_bytes: int = 0
    confirmed: int = 0
    confirmed_bytes: int = 0
    nacked: int = 0
    unknown: int = 0
    undeliverable: int = 0
    dead_lettered: Counter[str] = field(default_factory=Counter)
    resent: int = 0
    resent_unknown: int = 0
    uncommitted: int = 0
    overtaken: int = 0
    ahead_of_clock: int = 0
    """Confirmed before their own timestamp: they stand in the lowest bucket of `bridge_us`."""
    old: int = 0
    """Confirmed, and went behind what is live."""
    publish_us: Counter[int] = field(default_factory=Counter)
    bridge_us: Counter[int] = field(default_factory=Counter)

    def take(self) -> "Tally":
        """Return what was counted and begin anew."""
        taken = Tally(**{name: getattr(self, name) for name in self.__slots__})
        fresh = Tally()
        for name in self.__slots__:
            setattr(self, name, getattr(fresh, name))
        return taken

    @property
    def is_empty(self) -> bool:
        """Whether nothing happened."""
        return self == Tally()


class Tallies:
    """The tallies that one event type counts into: its own, its class's, its route's. `Counts` of the bridge."""

    def __init__(self, own: Tally, priority: Tally, route: Tally) -> None:
        self.own = own
        self._all = (own, priority, route)

    def on_received(self, count: int, size: int) -> None:
        """Count records read from the log."""
        for tally in self._all:
            tally.received += count
            tally.received_bytes += size

    def on_confirmed(
        self, events: Sequence[Event], seconds: float | None, overtaken: int, wall: float, *, old: bool = False
    ) -> None:
        """See `Counts.on_confirmed`."""
        count, size, ahead = len(events), 0, 0
        wall_us = int(wall * 1e6)
        bridge: dict[int, int] = {}
        last: int | None = None
        index = 0
        for event in events:
            size += event.size
            stamp = event.timestamp_ms
            if stamp is not None:
                if stamp != last:  # of one batch many have the same
                    last, index = stamp, index_of(wall_us - stamp * 1000)
                bridge[index] = bridge.get(index, 0) + 1
                ahead += stamp * 1000 > wall_us
        publish = None if seconds is None else index_of(int(seconds * 1e6))
        for tally in self._all:
            tally.confirmed += count
            tally.confirmed_bytes += size
            tally.overtaken += overtaken
            tally.ahead_of_clock += ahead
            tally.old += count if old else 0
            # Not by `+=`: of a bucket that is new a Counter asks Python code.
            if publish is not None:
                tally.publish_us[publish] = tally.publish_us.get(publish, 0) + count
            for index, number in bridge.items():
                tally.bridge_us[index] = tally.bridge_us.get(index, 0) + number

    def on_failed(self, outcome: Outcome, count: int) -> None:
        """Count events that have to be sent again."""
        for tally in self._all:
            tally.resent += count
            if outcome is Outcome.NACKED:
                tally.nacked += count
            else:
                tally.unknown += count
                tally.resent_unknown += count

    def on_undeliverable(self, count: int) -> None:
        """Count events that can't be delivered."""
        for tally in self._all:
            tally.undeliverable += count

    def on_dead_lettered(self, reason: Reason, count: int) -> None:
        """Count events whose dead letter is confirmed."""
        for tally in self._all:
            tally.dead_lettered[reason.value] += count

    def on_uncommitted(self, count: int) -> None:
        """See `Counts.on_uncommitted`."""
        for tally in self._all:
            tally.uncommitted += count
