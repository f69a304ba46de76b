"""What waits between log and lane, and when the log must pause for it.

Each event type has an inbox, bounded in events and bytes; all inboxes share one budget, and as it fills up the lowest
classes are paused first. A pause takes effect before the pump's next await, so at most one fetch exceeds a bound.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable
from math import inf

from proxy.bridge.broker import Batch
from proxy.bridge.flow import PartitionFlow
from proxy.model import Event, Partition
from proxy.settings import Limits

FIRST_PRESSURE = 0.8
"""Share of the budget at which the lowest class is paused; the highest at all of it, the others evenly between."""
RELIEF = 0.1
"""A class is resumed when the budget's use has fallen this share below its pressure point."""


class Budget:
    """Bytes waiting in all inboxes, and which classes must pause for it."""

    def __init__(self, limit: int, ranks: int) -> None:
        self.used = 0
        """Bytes waiting now."""
        self._limit = limit
        step = (1 - FIRST_PRESSURE) / max(ranks - 1, 1)
        self._points = [FIRST_PRESSURE + step * (ranks - 1 - rank) for rank in range(ranks)]
        self._inboxes: list[list[Inbox]] = [[] for _ in range(ranks)]
        self._pressed = [False] * ranks

    def join(self, inbox: "Inbox", rank: int) -> None:
        """Let the budget pause and resume this inbox."""
        self._inboxes[rank].append(inbox)
        inbox.press("budget", on=self._pressed[rank])

    def add(self, size: int) -> None:
        """Count `size` bytes in, or out if negative, and pause or resume classes accordingly."""
        self.used += size
        share = self.used / self._limit
        for rank, point in enumerate(self._points):
            pressed = share >= point if not self._pressed[rank] else share > point - RELIEF
            if pressed != self._pressed[rank]:
                self._pressed[rank] = pressed
                for inbox in self._inboxes[rank]:
                    inbox.press("budget", on=pressed)


class Inbox:
    """The waiting events of one event type, partition by partition, taken in turn."""

    def __init__(
        self,
        limits: Limits,
        budget: Budget,
        pause: Callable[[Collection[Partition]], None],
        resume: Callable[[Collection[Partition]], None],
        mark: Callable[[], float] = lambda: inf,
    ) -> None:
        self.events = 0
        """Events waiting."""
        self.bytes = 0
        self.flows: dict[Partition, PartitionFlow] = {}
        self._turns: deque[PartitionFlow] = deque()
        self._limits = limits
        self._budget = budget
        self._pause = pause
        self._resume = resume
        self._mark = mark
        """Events at which it is full, if that is less than its bound."""
        self._pressures: set[str] = set()

    @property
    def mean_size(self) -> float:
        """Bytes of a waiting event on average; 0 if none waits."""
        return self.bytes / self.events if self.events else 0.0

    @property
    def is_paused(self) -> bool:
        """Whether the log must not fetch for this type now."""
        return bool(self._pressures)

    def press(self, cause: str, *, on: bool) -> None:
        """Add or end one cause to pause the type's partitions; they flow when no cause is left."""
        was_paused = self.is_paused
        (self._pressures.add if on else self._pressures.discard)(cause)
        if self.is_paused != was_paused and self.flows:
            (self._pause if self.is_paused else self._resume)(self.flows.keys())

    def open(self, flow: PartitionFlow) -> None:
        """Begin an epoch of a partition; one that still stands is ended first."""
        self.close(flow.partition)
        self.flows[flow.partition] = flow
        self._turns.append(flow)

    def close(self, partition: Partition) -> None:
        """End the epoch of a partition and drop what still waits of it: the log has it."""
        flow = self.flows.pop(partition, None)
        if flow is not None:
            flow.let_go()
            self._turns.remove(flow)
            self.recount()

    def offer(self, partition: Partition, events: list[Event]) -> int:
        """Take in records of one partition; return their bytes. Pauses the type if it is full now."""
        size = sum([event.size for event in events])
        self.flows[partition].offer(events, size)
        self._count(len(events), size)
        return size

    def ready(self, now: float) -> int:
        """Return how many events may be taken now."""
        return sum(flow.ready(now) for flow in self._turns)

    def sends_again(self, now: float) -> bool:
        """Return whether the events taken next were sent before, in vain."""
        return next((flow.sends_again for flow in self._turns if flow.ready(now)), False)

    def next_ready(self, now: float) -> float | None:
        """Return when the first pausing partition may go on, on the loop's clock; None if none is pausing."""
        return min((flow.not_before for flow in self._turns if flow.waiting and flow.not_before > now), default=None)

    def oldest_ms(self) -> int | None:
        """Return the timestamp of the oldest event that waits at the front of a partition; None if none has one."""
        fronts = [flow.front_ms() for flow in self._turns]
        return min((stamp for stamp in fronts if stamp is not None), default=None)

    def take(self, limit: int, now: float) -> list[Batch]:
        """Take up to `limit` events, partition after partition; those served go to the end of the turn."""
        batches: list[Batch] = []
        for _ in range(len(self._turns)):
            flow = self._turns[0]
            while limit > 0 and (batch := flow.take(limit, now)) is not None:
                batches.append(batch)
                limit -= len(batch.events)
            if limit <= 0 and not batches:
                break
            self._turns.rotate(-1)
            if limit <= 0:
                break
        self.recount()
        return batches

    def settle(self, batches: Iterable[Batch]) -> None:
        """Take back what the lane left unwritten of these batches."""
        for batch in batches:
            flow = batch.recipient
            assert isinstance(flow, PartitionFlow)
            flow.settle(batch)
        self.recount()

    def recount(self) -> None:
        """Bring the sums in line after flows gave or took back events; resumes the type if it is low now."""
        self._count(
            sum(flow.waiting for flow in self._turns) - self.events,
            sum(flow.waiting_bytes for flow in self._turns) - self.bytes,
        )

    def _count(self, events: int, size: int) -> None:
        self.events += events
        self.bytes += size
        limits = self._limits
        most = min(limits.inbox_events, self._mark())
        if self.events >= most or self.bytes >= limits.inbox_bytes:
            self.press("inbox", on=True)
        elif self.events <= most * limits.inbox_low and self.bytes <= limits.inbox_bytes * limits.inbox_low:
            self.press("inbox", on=False)
        if size:
            self._budget.add(size)
