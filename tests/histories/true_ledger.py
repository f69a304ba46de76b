"""What truly became of every position in a history, by the judge's books: the ledger of the records is held against it.

The books are kept where log and broker are, and hold what the replicas were told; the metric records are not looked at.
"""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from proxy.model import Partition
from tests.histories.history import History
from tests.histories.ranges import Booked

DELIVERED, DISCARDED, TRUNCATED, ABSENT = "delivered", "discarded", "truncated", "absent"
_ORDER = (DELIVERED, "", DISCARDED, TRUNCATED, ABSENT)
"""Of two ends of one position the first counts; the second stands for dead letters."""
At = tuple[str, str, int]
"""Topic, its id, partition."""


@dataclass
class Truth:
    """Of one partition of one topic."""

    ends: dict[int, str] = field(default_factory=dict)
    """What became of each position that was committed by who was told of it: dead letters by reason."""
    times: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    """How many epochs committed it."""
    may_lack: dict[int, bool] = field(default_factory=dict)
    """Whether every process that committed it may have left records out: killed, or its disk was full."""
    dropped: set[int] = field(default_factory=set)
    """Positions that anybody was told the log had dropped unread."""
    first: int = 0
    """Where reading first began."""
    reached: int = 0
    """How far the log ever took a commit, whoever was told."""
    is_blurred: bool = False
    """Records were handed out twice, or were of another topic: the books can't tell which of them was which."""
    is_there: bool = False
    """The topic is, at the end."""


@dataclass(frozen=True)
class Account:
    """A history as the reports see it, and as it was."""

    seed: int
    lines: Sequence[str]
    """All metric records that are left."""
    truth: dict[At, Truth]


def account(history: History) -> Account:
    """Return what is left of a history that has been lived."""
    world = history.world
    lines = [line.decode() for replica in world.retired for line in replica.metrics.disk.lines]
    lacking = {one.name for one in world.retired if one.crashed or one.metrics.dropped_records or one.metrics.waiting}
    truth: dict[At, Truth] = {}
    for replica, partition, booked in world.witness.ranges.all():
        at = partition.topic, booked.beginning.topic_id, partition.number
        if at not in truth:
            truth[at] = Truth(first=booked.beginning.first, reached=booked.beginning.first)
        _add(truth[at], booked, may_lack=replica in lacking)
    for (topic_id, partition), reached in world.witness.ranges.reached.items():
        at = partition.topic, topic_id, partition.number
        if at in truth:
            truth[at].reached = max(truth[at].reached, reached)
    for (topic, topic_id, number), one in truth.items():
        track = world.cluster.tracks.get(Partition(topic, number))
        one.is_there = track is not None and track.topic_id == topic_id
    return Account(history.plan.seed, lines, truth)


def _add(truth: Truth, booked: Booked, *, may_lack: bool) -> None:
    epoch, first = booked.epoch, booked.beginning.first
    truth.first = min(truth.first, first)
    truth.is_blurred |= epoch.rewound or bool(epoch.strayed)
    received = set(epoch.offsets)
    dropped = {offset for one in booked.truncated for offset in one}
    truth.dropped |= dropped
    for offset in range(first, max(booked.taken, default=first)):
        if offset in received:
            end = DISCARDED if offset in epoch.discarded else epoch.lettered.get(offset, DELIVERED)
        else:
            end = TRUNCATED if offset in dropped else ABSENT
        truth.ends[offset] = min(truth.ends.get(offset, ABSENT), end, key=_rank)
        truth.times[offset] += 1
        truth.may_lack[offset] = truth.may_lack.get(offset, True) and may_lack


def _rank(end: str) -> int:
    return _ORDER.index(end if end in _ORDER else "")


def records_of(account: Account) -> list[dict[str, Any]]:
    """Return the records that are left of a history."""
    return [json.loads(line) for line in account.lines]
