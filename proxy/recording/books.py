"""The bridge's account as records: incidents as they happen, and of each partition what became of which range.

Work is per commit and partition, never per event. A range grows with every commit and is written once an interval.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import NamedTuple

from proxy import records
from proxy.bridge.event_log import Beginning
from proxy.bridge.flow import PartitionFlow
from proxy.bridge.move import Direction, Moved
from proxy.model import Event, Partition, Position, Reason, Stance
from proxy.records import Committed, CommittedRange, Discard, LetterRange

MOST_LETTER_RANGES = 50
"""Of dead letters in one committed range; more are only counted."""


class _Discarded(NamedTuple):
    """Events of contiguous sequence numbers."""

    last: int
    """The sequence number behind the last."""
    first: int
    start: int
    """Position of the first."""
    end: int
    """... and behind the last."""
    by: str
    why: str


@dataclass(slots=True)
class _Epoch:
    """One assignment of a partition."""

    flow: PartitionFlow
    event_type: str
    number: int
    topic_id: str
    end: int
    """The position up to which the log has taken commits."""
    committed: int = 0
    """How many events that are."""
    letters: list[tuple[int, int, int, int, str]] = field(default_factory=list)
    """Not committed yet, as a heap; as many as the cap on uncommitted events allows.

    The sequence number behind the last, position of the first and behind the last, how many, reason.
    """
    discarded: list[_Discarded] = field(default_factory=list)
    """Not committed yet, as a heap."""
    discarded_to: int = 0
    """The sequence number behind the last that was discarded and is committed."""
    open: CommittedRange | None = None
    """Not written yet."""
    discards: list[Discard] = field(default_factory=list)
    """Committed, and not written yet."""


class Books:
    """An `Account`; `place_of` tells where a position stands, as the log counts, `group` who reads it."""

    def __init__(
        self, record: Callable[[records.Record], None], place_of: Callable[[Position], int], group: str
    ) -> None:
        self._record = record
        self._place_of = place_of
        self._group = group
        self._epochs: dict[Partition, _Epoch] = {}
        self._unwritten: dict[Partition, _Epoch] = {}
        self._count = 0

    # -- positions ----------------------------------------------------------------------------------------------------

    def on_begun(self, event_type: str, flow: PartitionFlow, beginning: Beginning) -> None:
        """See `Account.on_begun`; an epoch of before ends here."""
        self.write([flow.partition])
        self._count += 1
        self._epochs[flow.partition] = _Epoch(flow, event_type, self._count, beginning.topic_id, beginning.first)
        self._record(
            records.Assigned(
                type=event_type,
                topic=flow.partition.topic,
                topic_id=beginning.topic_id,
                partition=flow.partition.number,
                epoch=self._count,
                first=beginning.first,
                committed=beginning.committed,
                end=beginning.end,
                group=self._group,
            )
        )

    def on_dead_lettered(self, flow: PartitionFlow, first: int, events: Sequence[Event], reason: Reason) -> None:
        """See `Account.on_dead_lettered`."""
        epoch = self._epoch_of(flow)
        if epoch is not None:
            start, end = self._place_of(events[0].position), self._place_of(events[-1].position) + 1
            heappush(epoch.letters, (first + len(events), start, end, len(events), reason.value))

    def on_discarded(self, flow: PartitionFlow, first: int, events: Sequence[Event], stance: Stance) -> None:
        """See `Account.on_discarded`."""
        epoch = self._epoch_of(flow)
        if epoch is not None:
            start, end = self._place_of(events[0].position), self._place_of(events[-1].position) + 1
            told = _Discarded(first + len(events), first, start, end, stance.by, stance.why or "")
            heappush(epoch.discarded, told)

    def on_committed(self, flow: PartitionFlow, resolved: int, end: int) -> None:
        """See `Account.on_committed`."""
        epoch = self._epoch_of(flow)
        if epoch is None or end < epoch.end:
            return  # no commit goes back: one that does is of another topic, which has taken the name of this one
        if epoch.open is None:
            epoch.open = CommittedRange(
                partition=flow.partition.number,
                epoch=epoch.number,
                topic_id=epoch.topic_id,
                first=epoch.end,
                end=end,
                commits=0,
                delivered=0,
                dead_lettered=Counter(),
                letters=[],
            )
            self._unwritten[flow.partition] = epoch
        told = epoch.open
        told.commits += 1
        told.end = epoch.end = end
        told.delivered += resolved - epoch.committed
        epoch.committed = resolved
        while epoch.letters and epoch.letters[0][0] <= resolved:
            _settle(told, *heappop(epoch.letters)[1:])
        while epoch.discarded and epoch.discarded[0].last <= resolved:
            one = heappop(epoch.discarded)
            told.delivered -= one.last - one.first
            self._discard(epoch, one)
            epoch.discarded_to = one.last

    def _discard(self, epoch: _Epoch, one: _Discarded) -> None:
        """Book what was discarded and is committed; ranges that follow one another, nothing between, are one."""
        last = epoch.discards[-1] if epoch.discards and one.first == epoch.discarded_to else None
        if last is not None and (last.by, last.why) == (one.by, one.why or None):
            last.end = one.end
            last.count += one.last - one.first
            return
        epoch.discards.append(
            Discard(
                by=one.by,
                why=one.why or None,
                type=epoch.event_type,
                topic=epoch.flow.partition.topic,
                topic_id=epoch.topic_id,
                partition=epoch.flow.partition.number,
                first=one.start,
                end=one.end,
                group=self._group,
                count=one.last - one.first,
            )
        )

    def on_moved(self, event_type: str, moved: Moved) -> None:
        """See `Account.on_moved`; one that changed nothing is none."""
        move = moved.move
        if moved.done == moved.to:
            return
        first, end = sorted((moved.done, moved.to))
        kind = records.Skip if move.direction is Direction.SKIP else records.Rewind
        self._record(
            kind(
                by=move.by,
                why=move.why,
                type=event_type,
                topic=moved.partition.topic,
                topic_id=move.topic_id,
                partition=moved.partition.number,
                first=first,
                end=end,
                group=self._group,
                count=None,
            )
        )

    def on_ended(self, flows: Collection[PartitionFlow]) -> None:
        """See `Account.on_ended`."""
        ended = [flow.partition for flow in flows if self._epoch_of(flow) is not None]
        self.write(ended)
        for partition in ended:
            del self._epochs[partition]

    @property
    def unwritten(self) -> Collection[Partition]:
        """Partitions of which something was committed since they were last written."""
        return self._unwritten.keys()

    def write(self, partitions: Collection[Partition] | None = None) -> None:
        """Write what was committed of some partitions, or of all, since it was last written."""
        chosen = list(self._unwritten) if partitions is None else partitions
        by_type: dict[tuple[str, str], list[CommittedRange]] = defaultdict(list)
        for partition in chosen:
            epoch = self._unwritten.pop(partition, None)
            if epoch is not None and epoch.open is not None:
                by_type[epoch.event_type, partition.topic].append(epoch.open)
                epoch.open = None
                for discard in epoch.discards:
                    self._record(discard)
                epoch.discards.clear()
        for (event_type, topic), ranges in by_type.items():
            self._record(Committed(type=event_type, topic=topic, ranges=ranges, group=self._group))

    def _epoch_of(self, flow: PartitionFlow) -> _Epoch | None:
        """Return its epoch if that still lasts; what comes late of another must not be booked in this one's range."""
        epoch = self._epochs.get(flow.partition)
        return epoch if epoch is not None and epoch.flow is flow else None

    # -- incidents ----------------------------------------------------------------------------------------------------

    def on_truncated(self, partition: Partition, at_most: int, first: int) -> None:
        """See `Account.on_truncated`."""
        epoch = self._epochs.get(partition)
        self._record(
            records.truncated(
                *partition,
                at_most=at_most,
                first=first - at_most,
                end=first,
                topic_id=epoch.topic_id if epoch is not None else None,
                group=self._group,
            )
        )

    def on_assignment_lost(self, why: str) -> None:
        """See `Account.on_assignment_lost`."""
        self._record(records.assignment_lost(why))

    def on_letter_refused(self, event_type: str, partition: Partition, position: Position, why: str) -> None:
        """See `Account.on_letter_refused`."""
        place = self._place_of(position)
        self._record(records.dead_letter_refused(event_type, *partition, first=place, detail=why))

    def on_type_stopped(self, event_type: str, partition: Partition, position: Position, why: str) -> None:
        """See `Account.on_type_stopped`."""
        self._record(records.type_stopped(event_type, *partition, first=self._place_of(position), detail=why))


def _settle(told: CommittedRange, first: int, end: int, count: int, reason: str) -> None:
    """Book dead letters in the range that they are committed in."""
    told.delivered -= count
    told.dead_lettered[reason] = told.dead_lettered.get(reason, 0) + count
    last = told.letters[-1] if told.letters else None
    if last is not None and (last.end, last.reason) == (first, reason):
        last.end = end
        last.count += count
    elif len(told.letters) < MOST_LETTER_RANGES:
        told.letters.append(LetterRange(first=first, end=end, count=count, reason=reason))
