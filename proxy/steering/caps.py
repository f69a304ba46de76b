"""Caps that people ask for while it runs: each one budget for all it means, divided over the group's partitions.

The throttle underneath keeps its state and its law (docs/design/0043-interventions.md).
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from math import inf
from weakref import WeakKeyDictionary

from proxy.bridge.event_log import EventLog, Extent
from proxy.bridge.listener import Listener
from proxy.bridge.throttle import Throttle
from proxy.congestion.cap_share import needs, share
from proxy.congestion.divider import Divider
from proxy.model import Partition
from proxy.settings import EventType, Settings
from proxy.steering.budgeted import HeldThrottle, Tiers
from proxy.steering.gate import Gate

BURST = 0.1
"""Seconds of a cap that may be saved up; one event at least."""
_LEAST = 1e-3
"""Events a second: a gate of no rate at all would grant nothing until it is told otherwise."""


class Caps:
    """Holds event types to the caps that their stances name. `own` tells the partitions of this replica."""

    def __init__(
        self,
        settings: Settings,
        log: EventLog,
        listeners: Callable[[], Iterable[Listener]],
        own: Callable[[], Iterable[Partition]],
    ) -> None:
        self._settings = settings
        self._log = log
        self._listeners = listeners
        self._own = own
        self._throttles: defaultdict[str, WeakKeyDictionary[HeldThrottle, None]] = defaultdict(WeakKeyDictionary)
        """By event type: of what is live, of what catches up, and of a listener before this one until it has ended.

        In the order in which they were made: a weak set's follows addresses, and who is held first is a choice.
        """
        self._held: dict[str, Gate] = {}
        """By event type, while a cap means it."""
        self._gates: dict[str, Gate] = {}
        """By the intervention's id."""
        self._last: Mapping[Partition, Extent] = {}
        self._looked_at: float | None = None

    def around(self, event_type: EventType, throttle: Throttle, *, catches_up: bool = False) -> HeldThrottle:
        """Return a throttle that admits what this one does, and is held while a cap means the type."""
        classes = len(self._settings.classes)
        made = HeldThrottle(throttle, Tiers(self._settings.rank(event_type.priority), classes, catches_up=catches_up))
        made.hold(self._held.get(event_type.name))
        self._throttles[event_type.name][made] = None
        return made

    def holds(self, id_: str) -> bool:
        """Return whether a cap is obeyed; one that means no type of this replica needs nothing."""
        return id_ in self._gates or not any(
            one.stance.cap is not None and one.stance.cap.id == id_ for one in self._listeners()
        )

    def release(self) -> None:
        """Let go what no cap means any more; at once, without a word from the log."""
        wanted = {one.event_type.name: one.stance.cap for one in self._listeners()}
        ids = {cap.id for cap in wanted.values() if cap is not None}
        for name in [name for name in self._held if wanted.get(name) is None]:
            self._let_go(name)
        for name in self._throttles.keys() - wanted.keys():
            del self._throttles[name]
        for id_ in self._gates.keys() - ids:
            self._gates.pop(id_).set_rate(0, inf, inf)  # who waits there goes on
        if not self._gates:
            self._last, self._looked_at = {}, None

    async def follow(self) -> None:
        """Divide every cap anew by what waits and comes in the whole group. Raises `LogError`; then all stays."""
        types: defaultdict[tuple[str, float], list[Listener]] = defaultdict(list)
        for one in self._listeners():
            if one.stance.cap is not None:
                types[one.stance.cap.id, one.stance.cap.rate].append(one)
        if not types:
            return
        extents = await self._log.extents({one.event_type.topic for of in types.values() for one in of})
        now = asyncio.get_running_loop().time()
        came = self._came(extents, now)
        own = set(self._own())
        for (id_, rate), of in types.items():
            topics = {one.event_type.topic for one in of}
            lags = {at: extent.end - extent.committed for at, extent in extents.items() if at.topic in topics}
            ours = {at for at in own if at.topic in topics}
            # Where the group has committed nothing yet the log tells nothing.
            needed = needs(lags, came) | dict.fromkeys(ours - lags.keys(), inf)
            part = max(_LEAST, share(rate, needed, ours))
            if id_ not in self._gates:
                self._gates[id_] = Gate(Divider(tiers=len(self._settings.classes), strict=True, now=now))
            self._gates[id_].set_rate(0, part, max(1.0, part * BURST))
            for one in of:
                if one.stance.cap is not None and one.stance.cap.id == id_:
                    self._hold(one.event_type.name, self._gates[id_])

    def _hold(self, event_type: str, gate: Gate) -> None:
        self._held[event_type] = gate
        for throttle in self._throttles[event_type]:
            throttle.hold(gate)

    def _let_go(self, event_type: str) -> None:
        del self._held[event_type]
        for throttle in self._throttles[event_type]:
            throttle.hold(None)

    def _came(self, extents: Mapping[Partition, Extent], now: float) -> dict[Partition, float]:
        before, since, self._last, self._looked_at = self._last, self._looked_at, extents, now
        if since is None or now <= since:
            return {}
        return {
            at: max(0, extent.end - before[at].end) / (now - since) for at, extent in extents.items() if at in before
        }
