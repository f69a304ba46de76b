"""The judge's books of positions: what the log took of each epoch, and what the metric log says of it."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from proxy.bridge.event_log import Beginning
from proxy.model import Partition
from proxy.positions.identity import Committed
from tests.histories.epoch import Epoch


@dataclass(slots=True)
class Booked:
    """One epoch of which the bridge keeps books."""

    epoch: Epoch
    beginning: Beginning
    taken: list[int] = field(default_factory=list)
    """Up to where the log took each commit of which the replica was told."""
    truncated: list[range] = field(default_factory=list)
    """What the replica was told that the log had dropped unread."""


class Ranges:
    """Of all replicas."""

    def __init__(self) -> None:
        self._booked: dict[tuple[str, Partition], list[Booked]] = defaultdict(list)
        self._ends: dict[tuple[str, Partition], int] = {}
        """How far anybody was told that a partition is committed, by the topic's id."""
        self.reached: dict[tuple[str, Partition], int] = {}
        """How far the log ever took a commit of a partition, whoever was told, by the topic's id."""

    def begin(self, replica: str, partition: Partition, epoch: Epoch, beginning: Beginning) -> None:
        """Note where an epoch begins."""
        self._booked[replica, partition].append(Booked(epoch, beginning))

    def current(self, replica: str, partition: Partition) -> Booked | None:
        """Return the latest epoch."""
        booked = self._booked.get((replica, partition))
        return booked[-1] if booked else None

    def log_takes(self, partition: Partition, committed: Committed) -> None:
        """Note what the log takes: an older commit that comes last, over a slow connection, sets others back.

        What is asked for in an epoch never goes back; that is judged elsewhere.
        """
        at = committed.topic_id, partition
        self._ends[at] = min(self._ends.get(at, 0), committed.offset)
        self.reached[at] = max(self.reached.get(at, 0), committed.offset)

    def truncate(self, replica: str, partition: Partition, dropped: range) -> None:
        """Note what a replica is told that the log has dropped."""
        booked = self.current(replica, partition)
        assert booked is not None
        booked.truncated.append(dropped)

    def all(self) -> Iterator[tuple[str, Partition, Booked]]:
        """Return every epoch of which books are kept."""
        for (replica, partition), epochs in self._booked.items():
            yield from ((replica, partition, booked) for booked in epochs)

    def take(self, partition: Partition, booked: Booked, end: int) -> str | None:
        """Note that a replica is told that the log took a commit of an epoch; return what is wrong with it.

        One that goes back is of another topic, which has taken the name.
        """
        since = max(booked.taken, default=booked.beginning.first)
        if end < since:
            return None
        booked.taken.append(end)
        at = booked.beginning.topic_id, partition
        before, self._ends[at] = self._ends.get(at, 0), max(self._ends.get(at, 0), end)
        if end > since < before:
            return f"{booked.epoch.replica} commits {partition} from {since} to {end}, and {before} was committed"
        return None

    def wrong(self, replica: str, records: list[dict[str, Any]], *, is_whole: bool) -> Iterator[str]:
        """Yield where the records of a replica differ from its epochs; not whole, they may lack some at the end.

        Nothing is made of what comes behind a loss: an epoch's beginning may be among what is lost.
        """
        records = list(takewhile(lambda record: record["kind"] != "drops", records))
        ranges: dict[int, list[dict[str, Any]]] = defaultdict(list)
        for record in records:
            for told in record["ranges"] if record["kind"] == "committed" else ():
                ranges[told["epoch"]].append(told)
        assigned: dict[Partition, list[dict[str, Any]]] = defaultdict(list)
        for record in records:
            if record["kind"] == "assigned":
                assigned[Partition(record["topic"], record["partition"])].append(record)
        for (name, partition), epochs in self._booked.items():
            if name != replica:
                continue
            if is_whole and len(epochs) != len(assigned[partition]):
                yield f"{partition} was assigned {len(epochs)} times, {len(assigned[partition])} are recorded"
            for booked, record in zip(epochs, assigned[partition], strict=False):
                if record["first"] != booked.beginning.first or record["topic_id"] != booked.beginning.topic_id:
                    yield f"{partition} begins at {record['first']} of {record['topic_id']}, it was {booked.beginning}"
                yield from _wrong_chain(partition, booked, ranges[record["epoch"]], is_whole=is_whole)
            yield from _wrong_discards(partition, epochs, records, is_whole=is_whole)


def _wrong_chain(partition: Partition, booked: Booked, chain: list[dict[str, Any]], *, is_whole: bool) -> Iterator[str]:
    at = booked.beginning.first
    for told in chain:
        if told["first"] != at or told["end"] < at:
            yield f"{partition}: a range {told['first']} to {told['end']} follows {at}"
        at = told["end"]
        if at not in booked.taken:
            yield f"{partition} is recorded as committed up to {at}, the log took {booked.taken}"
        yield from _wrong_counts(partition, booked.epoch, told)
    if is_whole and booked.taken and at != booked.taken[-1]:
        yield f"{partition} is recorded as committed up to {at}, the log took {booked.taken[-1]}"


def _wrong_discards(
    partition: Partition, epochs: list[Booked], records: list[dict[str, Any]], *, is_whole: bool
) -> Iterator[str]:
    """What an epoch discarded and committed, and nothing else, is recorded as that until the next one begins.

    Epoch by epoch, as a range says nothing of what a compaction took before the epoch came by.
    """
    if any(one.epoch.rewound or one.epoch.strayed for one in epochs):
        return
    for booked, told in zip(epochs, _discards_by_epoch(partition, records), strict=False):
        read = booked.epoch.offsets
        truth = {offset for offset in booked.epoch.discarded if offset < max(booked.taken, default=0)}
        recorded = {offset for offset in read if any(one["first"] <= offset < one["end"] for one in told)}
        if recorded - truth or (is_whole and truth - recorded):
            yield f"{partition}: {sorted(recorded)} are recorded as discarded, {sorted(truth)} were"
        for one in told:
            lie = sum(one["first"] <= offset < one["end"] for offset in read)
            if one["topic_id"] != booked.beginning.topic_id or one["count"] != lie:
                yield f"{partition}: {lie} of {booked.beginning.topic_id} lie in the range: {one}"


def _discards_by_epoch(partition: Partition, records: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    found: list[list[dict[str, Any]]] = []
    for one in records:
        if (one.get("topic"), one.get("partition")) != partition:
            continue
        if one["kind"] == "assigned":
            found.append([])
        elif one["kind"] == "discard":
            found[-1].append(one)
    return found


def _wrong_counts(partition: Partition, epoch: Epoch, told: Mapping[str, Any]) -> Iterator[str]:
    """Compare with the records received; of what was read twice the epoch's books can't tell the place."""
    if epoch.rewound or epoch.strayed:
        return
    received = sum(told["first"] <= offset < told["end"] for offset in epoch.offsets)
    letters = sum(told["dead_lettered"].values())
    discarded = sum(told["first"] <= offset < told["end"] for offset in epoch.discarded)
    if told["delivered"] + letters + discarded != received:
        ends = f"{told['delivered']} delivered, {letters} dead-lettered, {discarded} discarded"
        yield f"{partition}: {ends} of {received}: {told}"
    placed = [offset for one in told["letters"] for offset in epoch.offsets if one["first"] <= offset < one["end"]]
    if len(placed) != letters:
        yield f"{partition}: {letters} dead letters, at {len(placed)} places: {told}"
    elif wrong := [offset for offset in placed if offset not in epoch.lettered]:
        yield f"{partition}: {wrong} are recorded as dead-lettered and were not"
