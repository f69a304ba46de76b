"""Counts a replica's tokens: what its gates granted and took back against what its event types say they used."""

from collections.abc import Iterator
from typing import Any

from proxy.app import App
from proxy.bridge.throttle import Throttle
from proxy.settings import Cap, EventType
from proxy.steering.gate import Gate

_ROUNDING = 1e-6


class Tokens:
    """Of one replica; attaches itself to its gates and to every throttle that is made from now on."""

    def __init__(self, app: App, cap: Cap | None) -> None:
        policies: Any = app._policies
        self.gates: list[Gate] = []
        self._cap = cap
        self._taken: dict[Gate, float] = {}
        self._counts_bytes: dict[Gate, bool] = {}
        self._events = 0.0
        self._bytes = 0.0
        for gate in policies._caps.values():
            self._attach(gate, counts_bytes=cap is not None and cap.bytes is not None)
        for route in policies._controlled.values():
            self._attach(route.gate, counts_bytes=False)
        make = policies.throttle

        def throttle(event_type: EventType) -> Throttle:
            return self._watched(make(event_type))

        policies.throttle = throttle

    def wrong(self) -> Iterator[str]:
        """Yield what does not add up; meant for when nobody has anything to send."""
        for gate, taken in self._taken.items():
            used = self._bytes if self._counts_bytes[gate] else self._events
            if abs(taken - used) > _ROUNDING * max(1.0, used):
                yield f"{taken:g} tokens are taken, {used:g} are used"

    def _attach(self, gate: Gate, *, counts_bytes: bool) -> None:
        self.gates.append(gate)
        self._taken[gate] = 0.0
        self._counts_bytes[gate] = counts_bytes
        passed, give_back, overdraw = gate.passed, gate.give_back, gate.overdraw

        async def counted_passed(tier: int, size: float) -> None:
            await passed(tier, size)
            self._taken[gate] += size

        def counted_give_back(tier: int, size: float) -> None:
            give_back(tier, size)
            self._taken[gate] -= size

        def counted_overdraw(tier: int, size: float) -> None:
            overdraw(tier, size)
            self._taken[gate] += size

        gate.__dict__.update(passed=counted_passed, give_back=counted_give_back, overdraw=counted_overdraw)

    def _watched(self, throttle: Throttle) -> Throttle:
        settle, admit_letters = throttle.settle, throttle.admit_letters

        def counted_settle(events: int, size: int) -> None:
            settle(events, size)
            self._events += events
            self._bytes += size

        async def counted_letters(count: int, *, size: float) -> None:
            await admit_letters(count, size=size)
            self._events += count
            self._bytes += count * size

        throttle.__dict__.update(settle=counted_settle, admit_letters=counted_letters)
        return throttle
