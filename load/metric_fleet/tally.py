"""What happened in one interval to one type, class or route: the model's own counts, and the record made of them."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from load.metric_fleet.samples import Pools
from proxy.records import Buckets

COUNTS = (
    "received", "received_bytes", "confirmed", "confirmed_bytes", "nacked", "unknown", "resent", "resent_unknown",
    "uncommitted", "overtaken", "ahead_of_clock", "old",
)  # fmt: skip
"""What is summed over intervals."""


@dataclass(slots=True)
class Tally:
    """Counts and raw latencies of an interval; what waits and lags is as it stands at its end."""

    received: int = 0
    received_bytes: int = 0
    confirmed: int = 0
    confirmed_bytes: int = 0
    nacked: int = 0
    unknown: int = 0
    resent: int = 0
    resent_unknown: int = 0
    uncommitted: int = 0
    overtaken: int = 0
    ahead_of_clock: int = 0
    old: int = 0
    waiting: int = 0
    catching_up: int = 0
    lag: int = 0
    oldest_s: float = 0.0
    dead_lettered: Counter[str] = field(default_factory=Counter)
    publish: list[int] = field(default_factory=list)
    bridge: list[int] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Return whether nothing happened and nothing waits."""
        return not (self.received or self.confirmed or self.dead_lettered or self.waiting)

    def add(self, other: "Tally") -> None:
        """Take in what happened elsewhere in the same time."""
        for name in COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.waiting += other.waiting
        self.catching_up += other.catching_up
        self.lag += other.lag
        self.oldest_s = max(self.oldest_s, other.oldest_s)
        self.dead_lettered.update(other.dead_lettered)
        self.publish += other.publish
        self.bridge += other.bridge

    def fields(self, pools: Pools) -> dict[str, Any]:
        """Return the fields that records of types and classes share."""
        return {
            **{name: getattr(self, name) for name in COUNTS},
            "dead_lettered": dict(self.dead_lettered),
            "waiting": self.waiting,
            "catching_up": self.catching_up,
            "lag": self.lag,
            "ahead": 0,
            "lag_age_s": round(self.oldest_s, 3) if self.waiting else None,
            "publish_us": buckets(self.publish, pools),
            "bridge_us": buckets(self.bridge, pools),
        }


def buckets(values: list[int], pools: Pools) -> Buckets:
    """Return raw values as the log has them."""
    index = pools.index
    return Buckets(Counter([index[value] for value in values]))


@dataclass
class Sums:
    """What a class or a type did in all, as it was recorded: the truth that tables are compared with."""

    counts: Counter[str] = field(default_factory=Counter)
    dead_lettered: Counter[str] = field(default_factory=Counter)
    publish: Counter[int] | None = None
    """Raw values; None: not kept."""
    bridge: Counter[int] | None = None

    def add(self, tally: Tally) -> None:
        """Count an interval that is recorded."""
        for name in COUNTS:
            self.counts[name] += getattr(tally, name)
        self.dead_lettered.update(tally.dead_lettered)
        if self.publish is not None and self.bridge is not None:
            self.publish.update(tally.publish)
            self.bridge.update(tally.bridge)

    @classmethod
    def like(cls, other: "Sums") -> "Sums":
        """Return empty sums that keep raw values if the others do."""
        return cls() if other.publish is None else cls(publish=Counter(), bridge=Counter())

    def merge(self, other: "Sums") -> None:
        """Add what another worker counted."""
        self.counts.update(other.counts)
        self.dead_lettered.update(other.dead_lettered)
        for mine, theirs in ((self.publish, other.publish), (self.bridge, other.bridge)):
            if mine is not None and theirs is not None:
                mine.update(theirs)
