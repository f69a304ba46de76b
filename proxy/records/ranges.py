"""The ledger of positions: which ranges of each partition were read, and what became of them.

Positions are counted as the log counts them (Kafka: offsets). A range `first`, `end` holds `first` to `end - 1`. What a
committed range holds beyond its events was absent: gaps left by compaction, markers of transactions, and what incidents
`truncated` name. From an `assigned` record on, the `committed` ranges of its epoch follow one another without a gap.
"""

from typing import Annotated, ClassVar

from proxy.records.declaration import ADDED, Part, Record


class Assigned(Record):
    """Each partition given to this replica, when it is known where reading begins."""

    KIND: ClassVar[str] = "assigned"

    type: Annotated[str, "event type"]
    topic: Annotated[str, "that it is read from"]
    topic_id: Annotated[str, "of the topic that the positions belong to; empty if the log tells none"]
    partition: Annotated[int, "its number"]
    epoch: Annotated[int, "this assignment of the partition: counted over all of this process, from 1"]
    first: Annotated[int, "where reading begins"]
    committed: Annotated[int | None, "up to where the group was done with it; null: it had committed nothing here"]
    end: Annotated[int | None, "one past the last position there was; null: not told"]
    group: Annotated[str | None, "consumer group that is done with what was committed", ADDED] = None


class LetterRange(Part):
    """Neighbouring events with one fate."""

    first: Annotated[int, "position of the first"]
    end: Annotated[int, "position behind the last"]
    count: Annotated[int, "events in it"]
    reason: Annotated[str, "of the dead letters"]


class CommittedRange(Part):
    """Of one partition, since the last record of it."""

    partition: Annotated[int, "its number"]
    epoch: Annotated[int, "that of its `assigned` record"]
    topic_id: Annotated[str, "of the topic that the positions belong to"]
    first: Annotated[int, "where the range begins"]
    end: Annotated[int, "where it ends: the position the log took"]
    commits: Annotated[int, "that it took"]
    delivered: Annotated[int, "events in it that the broker took; one that was read twice counts twice"]
    dead_lettered: Annotated[dict[str, int], "events in it by reason, `expired` among them"]
    letters: Annotated[list[LetterRange], "where these stand, up to 50 ranges; the counts hold all"]


class Committed(Record):
    """Each event type of which something was committed, every `type_interval`, and when partitions are given away."""

    KIND: ClassVar[str] = "committed"

    type: Annotated[str, "event type"]
    topic: Annotated[str, "that it is read from"]
    ranges: Annotated[list[CommittedRange], "one for each partition and epoch"]
    group: Annotated[str | None, "consumer group that is done with them", ADDED] = None
