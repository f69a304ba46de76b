"""What would wait in the log if a policy that is only watched were obeyed; pure.

Kept by instants of arrival, in slots: a backlog of hours takes no more than one of seconds, and is known as well in
proportion to its length.
"""

from collections import deque
from dataclasses import dataclass

from proxy.congestion.pools import PERIOD

SLOTS = 128
"""Instants of arrival that are told apart. Larger: ages of what waits are known better; memory per event type."""
AT_ONCE = PERIOD + 1e-6
"""Seconds within which an event has not waited: a refill comes every `PERIOD`."""
FINEST = 0.02
"""Seconds of a slot to begin with; they double when there are too many."""


@dataclass(slots=True)
class _Slot:
    at: float
    events: int


class WouldWait:
    """Events of one event type, first in, first out. Every method is handed `now`, in seconds, never falling."""

    def __init__(self) -> None:
        self.events = 0
        """That would wait now."""
        self.sent = 0
        """Since the start."""
        self.passed = 0
        """Of these, would have gone by now."""
        self._slots: deque[_Slot] = deque()
        self._width = FINEST
        self._passed_late = 0
        self._longest = 0.0

    def add(self, events: int, now: float) -> None:
        """Take in events that were sent, and would have come to wait."""
        self.events += events
        self.sent += events
        if self._slots and now - self._slots[-1].at < self._width:
            self._slots[-1].events += events
            return
        self._slots.append(_Slot(now, events))
        if len(self._slots) > SLOTS:
            self._width *= 2
            self._join()

    def take(self, events: int, now: float) -> None:
        """Let the first so many go; at most as many as there are."""
        assert events <= self.events
        self.events -= events
        self.passed += events
        while events:
            first = self._slots[0]
            part = min(events, first.events)
            if now - first.at > AT_ONCE:
                self._passed_late += part
                self._longest = max(self._longest, now - first.at)
            events -= part
            first.events -= part
            if not first.events:
                self._slots.popleft()
        if not self.events:
            self._width = FINEST

    def held(self, now: float) -> int:
        """Return how many since the start have waited, or wait, for longer than a refill."""
        return self._passed_late + sum(slot.events for slot in self._slots if now - slot.at > AT_ONCE)

    def take_longest(self, now: float) -> float:
        """Return the seconds that any has waited since this was asked last, or waits by now; 0 if at most a refill."""
        longest, self._longest = self._longest, 0.0
        if self._slots and now - self._slots[0].at > AT_ONCE:
            longest = max(longest, now - self._slots[0].at)
        return longest

    def _join(self) -> None:
        """Make one of neighbours that a slot is wide enough for; each keeps the earlier instant."""
        joined: deque[_Slot] = deque()
        for slot in self._slots:
            if joined and slot.at - joined[-1].at < self._width:
                joined[-1].events += slot.events
            else:
                joined.append(slot)
        self._slots = joined
