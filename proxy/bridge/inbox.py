"""What waits between log and lane, and when the log must pause for it.

Each event type has an inbox, bounded in events and bytes; all inboxes share one budget, and as it fills up what catches
up is paused first, then the lowest classes, but none that holds no more than its own part. A pause takes effect before
the pump's next await, so at most one fetch exceeds a bound.

Partitions that catch up stand in a row of their own (docs/design/0027), which may fill half of the inbox: a backlog
that waits must not keep what is live out of it.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from math import inf

from proxy.bridge.broker import Batch
from proxy.bridge.budget import OBJECTS, Budget
from proxy.bridge.flow import PartitionFlow
from proxy.model import Event, Partition
from proxy.settings import Limits

OLD_SHARE = 0.5
"""Of an inbox, that what catches up may fill."""


@dataclass(slots=True)
class _Row:
    """Partitions that take turns."""

    turns: deque[PartitionFlow] = field(default_factory=deque)
    events: int = 0
    """Events waiting."""
    bytes: int = 0
    pressures: set[str] = field(default_factory=set)
    """Why its partitions are paused."""
    on_way: dict[PartitionFlow, None] = field(default_factory=dict)
    """Those of which something was taken that the lane may not be through with."""
    on_way_bytes: int = 0
    """What was taken of them, as the budget counts."""
    counted: int = 0
    """Bytes that the budget counts: of what waits and of what is on its way."""


class Inbox:
    """The waiting events of one event type, partition by partition, taken in turn."""

    def __init__(
        self,
        limits: Limits,
        budget: Budget,
        rank: int,
        pause: Callable[[Collection[Partition]], None],
        resume: Callable[[Collection[Partition]], None],
        mark: Callable[[], float] = lambda: inf,
    ) -> None:
        self.events = 0
        """Events waiting."""
        self.bytes = 0
        self.flows: dict[Partition, PartitionFlow] = {}
        self._live, self._old = _Row(), _Row()
        self._limits = limits
        self._pause = pause
        self._resume = resume
        self._mark = mark
        """Events at which it is full, if that is less than its bound."""
        self._holding = budget.join(self, rank)

    def go_by(self, limits: Limits) -> None:
        """Be bounded otherwise from now on; what waits beyond it waits on, and nothing is read meanwhile."""
        self._limits = limits
        self._bound()

    @property
    def held(self) -> int:
        """Bytes that the budget counts of it: what waits and what the lane is not through with, objects included."""
        return self._holding.used

    def leave(self) -> None:
        """Have no part in the budget any more, as nothing comes in."""
        self._holding.leave()

    @property
    def mean_size(self) -> float:
        """Bytes of a waiting event on average; 0 if none waits."""
        return self.bytes / self.events if self.events else 0.0

    @property
    def is_paused(self) -> bool:
        """Whether the log must not fetch what is live of this type now."""
        return bool(self._live.pressures)

    def pauses(self, partition: Partition) -> bool:
        """Return whether the log must not fetch from one of its partitions now."""
        return bool(self._row(self.flows[partition]).pressures)

    @property
    def catching_up(self) -> int:
        """Partitions that have old events waiting."""
        return len(self._old.turns)

    def press(self, cause: str, *, on: bool) -> None:
        """Add or end one cause to pause the type's partitions; they flow when no cause is left."""
        for row in (self._live, self._old):
            self._press(row, cause, on=on)

    def press_old(self, *, on: bool) -> None:
        """Pause those that catch up, or no longer, because the budget is short."""
        self._press(self._old, "budget for what is live", on=on)

    def open(self, flow: PartitionFlow) -> None:
        """Begin an epoch of a partition; one that still stands is ended first."""
        self.close(flow.partition)
        self.flows[flow.partition] = flow
        self._live.turns.append(flow)

    def close(self, partition: Partition) -> None:
        """End the epoch of a partition and drop what still waits of it: the log has it."""
        flow = self.flows.pop(partition, None)
        if flow is not None:
            flow.let_go()
            self._row(flow).turns.remove(flow)
            self.recount()

    def offer(self, partition: Partition, events: list[Event], *, is_old: bool = False) -> int:
        """Take in records of one partition, `is_old` if they begin with an old one; return their bytes.

        Pauses the type if it is full now.
        """
        size = sum([event.size for event in events])
        flow = self.flows[partition]
        flow.offer(events, size, is_old=is_old)
        self._count(self._row(flow), len(events), size)
        self._place(flow)
        return size

    def ready(self, now: float, *, old: bool = False) -> tuple[int, bool]:
        """Return how many events may be taken now, of what is live or of what is old.

        And whether those taken next were sent before, in vain.
        """
        count, again = 0, False
        for flow in (self._old if old else self._live).turns:
            if flow.waiting and (more := flow.ready(now)):
                again = again if count else flow.sends_again
                count += more
        return count, again

    def next_ready(self, now: float, *, old: bool = False) -> float | None:
        """Return when the first pausing partition may go on, on the loop's clock; None if none is pausing."""
        turns = (self._old if old else self._live).turns
        return min([flow.not_before for flow in turns if flow.waiting and flow.not_before > now], default=None)

    def oldest_ms(self) -> int | None:
        """Return the timestamp of the oldest event that waits at the front of a partition; None if none has one."""
        fronts = [flow.front_ms() for flow in self.flows.values()]
        return min((stamp for stamp in fronts if stamp is not None), default=None)

    def take(self, limit: int, now: float, *, old: bool = False) -> list[Batch]:
        """Take up to `limit` events, partition after partition; those served go to the end of the turn."""
        batches: list[Batch] = []
        row = self._old if old else self._live
        turns = row.turns
        for _ in range(len(turns)):
            flow = turns[0]
            before = flow.waiting_bytes
            while limit > 0 and flow.waiting and (batch := flow.take(limit, now)) is not None:
                batches.append(batch)
                row.on_way[flow] = None
                row.on_way_bytes += OBJECTS * len(batch.events)
                limit -= len(batch.events)
            row.on_way_bytes += before - flow.waiting_bytes
            if limit <= 0 and not batches:
                break
            turns.rotate(-1)
            if limit <= 0:
                break
        self.recount()
        return batches

    def discard(self, limit: int, now: float, done: Callable[[PartitionFlow, Batch], None]) -> int:
        """Take up to `limit` events for good, each batch handed to `done`; return how many."""
        discarded = 0
        for row in (self._live, self._old):
            for flow in list(row.turns):
                while discarded < limit and flow.waiting and (batch := flow.take(limit - discarded, now)) is not None:
                    done(flow, batch)
                    discarded += len(batch.events)
                self._place(flow)
        self.recount()
        return discarded

    def settle(self, batches: Iterable[Batch], *, old: bool = False) -> None:
        """Take back what the lane left unwritten of what was taken; it is through with all of it."""
        for batch in batches:
            flow = batch.recipient
            assert isinstance(flow, PartitionFlow)
            flow.settle(batch)
        row = self._old if old else self._live
        through, row.on_way, row.on_way_bytes = row.on_way, {}, 0
        for flow in through:
            self._place(flow)
        self.recount()

    def recount(self) -> None:
        """Bring the sums in line after flows gave or took back events; resumes the type if it is low now."""
        for row in (self._live, self._old):
            if not (row.turns or row.events or row.counted):
                continue  # nothing stands in it, and nothing is counted of it any more
            events, size = -row.events, -row.bytes
            for flow in row.turns:
                events += flow.waiting
                size += flow.waiting_bytes
            if events or size:
                self._count(row, events, size)
            else:
                self._charge(row)

    def _row(self, flow: PartitionFlow) -> _Row:
        return self._old if flow.is_old else self._live

    def _place(self, flow: PartitionFlow) -> None:
        """Let a partition change rows; never while the lane has more to write of it, or the rest could overtake."""
        if flow.catches_up is flow.is_old:
            return
        before = self._row(flow)
        if flow in before.on_way or self.flows.get(flow.partition) is not flow:
            return
        flow.is_old = not flow.is_old
        after = self._row(flow)
        before.turns.remove(flow)
        after.turns.append(flow)
        if bool(before.pressures) is not bool(after.pressures):
            (self._pause if after.pressures else self._resume)([flow.partition])
        self.recount()

    def _press(self, row: _Row, cause: str, *, on: bool) -> None:
        was_paused = bool(row.pressures)
        (row.pressures.add if on else row.pressures.discard)(cause)
        if bool(row.pressures) is not was_paused and row.turns:
            (self._resume if was_paused else self._pause)([flow.partition for flow in row.turns])

    def _count(self, row: _Row, events: int, size: int) -> None:
        row.events += events
        row.bytes += size
        self.events += events
        self.bytes += size
        self._bound()
        self._charge(row)

    def _charge(self, row: _Row) -> None:
        counted = row.bytes + OBJECTS * row.events + row.on_way_bytes
        if counted != row.counted:
            change, row.counted = counted - row.counted, counted
            self._holding.add(change)

    def _bound(self) -> None:
        """Pause or resume both rows by what waits."""
        limits = self._limits
        most = min(limits.inbox_events, self._mark())
        is_small = self.events < OLD_SHARE * most and self.bytes < OLD_SHARE * limits.inbox_bytes
        if is_small and not self._live.pressures and not self._old.pressures:
            return  # neither row is near its bound, and neither is paused
        self._weigh(self._live, self._old, 1.0, most)
        self._weigh(self._old, self._live, OLD_SHARE, most)

    def _weigh(self, row: _Row, other: _Row, share: float, most: float) -> None:
        """Pause or resume a row that may fill a share of the inbox, `most` events, and what the other leaves of it."""
        limits = self._limits
        events = min(share * most, most - other.events)
        size = min(share * limits.inbox_bytes, limits.inbox_bytes - other.bytes)
        if row.events >= events or row.bytes >= size:
            self._press(row, "inbox", on=True)
        elif row.pressures and row.events <= events * limits.inbox_low and row.bytes <= size * limits.inbox_low:
            self._press(row, "inbox", on=False)
