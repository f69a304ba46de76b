"""What became of every position, by the checker's books, for `load.ledger_check`. Pure.

Written as `truth.json`. Positions are of one life of a topic, named by its id; a range holds `first` to `end - 1`.

| field | is |
|---|---|
| group | whose commits these are |
| partitions | one for each life of each: topic, topic_id, partition, and the fields below |
| is_there | the topic still is, at the end |
| end | one past the last position known |
| committed | by the group, as far as was seen |
| went_back | commits behind earlier ones: to, from |
| ranges | first, end, fate; contiguous from 0 |
| losses | why records may be missing, and windows: topic_id, partition, first, end of what was committed meanwhile |
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from load.faults.ledger import ARRIVED, DEAD, EXCUSED, GONE, UNKNOWN, Ledger

VERSION = 1
DELIVERED, DEAD_LETTERED = "delivered", "dead_lettered"
BOTH = "delivered and dead_lettered"
DROPPED = "dropped"
"""By the log, before the group had committed it."""
WITH_QUEUE = "with_queue"
"""RabbitMQ confirmed it into a queue in the instant of its deletion."""
NOWHERE = "nowhere"
"""It stands in the log, and nobody got it."""
UNKNOWN_EVENT = "unknown"
"""Kafka answered nothing, and the log is no longer there to be read: it may hold an event that came."""

Place = tuple[str, int]
"""Topic and partition."""
Window = tuple[str, int, int, int]
"""Topic's id, partition, first, end."""


class Sample(NamedTuple):
    """What the group had committed at some instant between two, in seconds of the monotonic clock."""

    asked: float
    told: float
    ends: Mapping[Place, tuple[str, int]]
    """The topic's id and the offset."""


class Loss(NamedTuple):
    """A time in which records, or the answers that they are made of, may have been lost."""

    why: str
    since: float
    until: float


def ranges(ledger: Ledger, life: range, end: int, found: Mapping[int, int]) -> list[tuple[int, int, str]]:
    """Return what became of each position before `end` in a life of a topic; `found` is the event at each, as read."""
    events = {ledger.offset(number): number for number in life if ledger.offset(number) != UNKNOWN} | dict(found)
    fates = [(at, _fate(ledger.state(events[at])) if at in events else UNKNOWN_EVENT) for at in range(end)]
    return list(_joined(fates))


def _fate(state: int) -> str:
    known = (
        (BOTH, state & ARRIVED and state & DEAD),
        (DELIVERED, state & ARRIVED),
        (DEAD_LETTERED, state & DEAD),
        (WITH_QUEUE, state & EXCUSED),
        (DROPPED, state & GONE),
    )
    return next((name for name, is_so in known if is_so), NOWHERE)


def _joined(fates: Iterable[tuple[int, str]]) -> Iterator[tuple[int, int, str]]:
    for fate, some in groupby(fates, key=lambda one: one[1]):
        positions = [at for at, _ in some]
        yield positions[0], positions[-1] + 1, fate


def windows(samples: Sequence[Sample], loss: Loss) -> list[Window]:
    """Return what was committed within a time, at most: between the last sample before it and the first behind it."""
    before = max((at for at, one in enumerate(samples) if one.told <= loss.since), default=-1)
    behind = min((at for at, one in enumerate(samples) if one.asked >= loss.until), default=len(samples) - 1)
    start = {(topic_id, at[1]): offset for at, (topic_id, offset) in _ends(samples, before).items()}
    found: dict[tuple[str, int], int] = {}
    for sample in samples[max(before, 0) : behind + 1]:
        for (_, partition), (topic_id, offset) in sample.ends.items():
            key = topic_id, partition
            found[key] = max(found.get(key, 0), offset)
    return [(*key, start.get(key, 0), end) for key, end in sorted(found.items()) if start.get(key, 0) < end]


def _ends(samples: Sequence[Sample], at: int) -> Mapping[Place, tuple[str, int]]:
    return samples[at].ends if at >= 0 else {}


def committed(
    samples: Sequence[Sample], topic: str, topic_id: str, partition: int
) -> tuple[int, list[tuple[int, int]]]:
    """Return how far a life of a partition was committed, and where commits went back: to, from."""
    furthest, back = 0, []
    for sample in samples:
        named, offset = sample.ends.get((topic, partition), ("", 0))
        if named == topic_id:
            if offset < furthest:
                back.append((offset, furthest))
            furthest = max(furthest, offset)
    return furthest, back


def document(
    group: str, partitions: Sequence[Mapping[str, Any]], samples: Sequence[Sample], losses: Sequence[Loss]
) -> dict[str, Any]:
    """Return everything as plain JSON."""
    told = [{"why": loss.why, "windows": windows(samples, loss)} for loss in losses]
    return {"v": VERSION, "group": group, "partitions": partitions, "losses": told}
