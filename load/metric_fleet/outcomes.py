"""What became of every position, as the model knows it: the truth that a ledger is compared with.

Several things may be true of a position: it was a dead letter and then sent again, read by two, read twice. Of these
the later in `RANKS` counts. `unrecorded` is what the group has committed and no record tells of, whatever became of it.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from load.metric_fleet.fleet import Epoch, Fleet
from load.metric_fleet.happenings import Happening
from load.metric_fleet.logs import Log, Topic
from load.metric_fleet.plan import Fault

RANKS = ("in_log", "unrecorded", "absent", "truncated", "skipped", "discarded", "expired", "dead_lettered", "delivered")
"""Outcomes; the later one counts. `dead_lettered` has the reason behind a colon."""


class Claim(NamedTuple):
    """Something that is true of a range."""

    first: int
    end: int
    outcome: str


class Fate(NamedTuple):
    """A partition of one topic, and what became of each position: ranges without a gap, neighbours unlike."""

    log: Log
    topic: Topic
    ranges: list[Claim]
    conflicts: list[tuple[int, int, str, str]]
    """First, end, and the two processes that both say they were done with it."""


def fates(fleet: Fleet) -> Iterator[Fate]:
    """Yield what became of every partition that anybody was told to read."""
    people: dict[int, list[Happening]] = {}
    for one in fleet.happenings:
        people.setdefault(id(one.log), []).append(one)
    for log, epochs in fleet.partitions():
        if log.kind.is_old:
            continue  # version 1 has no ledger
        for topic in log.topics:
            mine = [epoch for epoch in epochs if epoch.topic is topic]
            if mine:
                yield _fate(fleet, log, topic, mine, people.get(id(log), []))


def _fate(fleet: Fleet, log: Log, topic: Topic, epochs: Sequence[Epoch], happenings: Sequence[Happening]) -> Fate:
    claims = [claim for epoch in epochs for claim in _of_epoch(fleet, epoch)]
    first = min(epoch.first for epoch in epochs)
    if topic is log.topics[0]:
        claims += [Claim(*lost, "truncated") for _, lost in log.truncated]
        for one in happenings:
            if one.fault is Fault.SKIP:
                claims += [Claim(*passed, "skipped") for passed in one.ranges]
            if one.fault is Fault.REDRIVE:
                claims += [Claim(*again, "delivered") for again in one.ranges]
    if topic is log.topics[-1]:
        claims.append(Claim(first, log.end(fleet.plan.end_ms), "in_log"))
    conflicts = [
        (epoch.last, min(epoch.claim, other.claim), epoch.life.instance, other.life.instance)
        for epoch, other in pairwise(epochs)
        if epoch.claim > epoch.last and other.claim > epoch.last
    ]
    return Fate(log, topic, strongest(claims), conflicts)


def _of_epoch(fleet: Fleet, epoch: Epoch) -> Iterator[Claim]:
    at = epoch.first
    for first, end in sorted(epoch.unrecorded(fleet.flow)):
        if end > first:
            yield from _recorded(epoch, at, first)
            yield Claim(first, end, "unrecorded")
            at = end
    yield from _recorded(epoch, at, epoch.claim)


def _recorded(epoch: Epoch, first: int, end: int) -> Iterator[Claim]:
    """Yield what became of a range whose record is there."""
    log = epoch.log
    special = [Claim(one.first, one.end, _letter(one.reason)) for one in log.letters(first, end, epoch.begin_ms)]
    special += [Claim(at, at + 1, "absent") for at in log.markers(first, end)]
    for void in log.void:
        if void.within(first, end):
            special.append(Claim(max(void.first, first), min(void.end, end), "absent"))
    yield from special
    at = first
    for one in [*sorted(special), Claim(end, end, "")]:
        if one.first > at:
            yield from _read(log, at, one.first)
        at = max(at, one.end)


def _read(log: Log, first: int, end: int) -> Iterator[Claim]:
    """Yield whether neighbouring events were delivered or dropped."""
    for dropped in log.discarded:
        if dropped.within(first, end):
            low, high = max(dropped.first, first), min(dropped.end, end)
            yield Claim(low, high, "discarded")
            if first < low:
                yield Claim(first, low, "delivered")
            first = high
    if first < end:
        yield Claim(first, end, "delivered")


def _letter(reason: str) -> str:
    return reason if reason == "expired" else f"dead_lettered:{reason}"


def strongest(claims: Sequence[Claim]) -> list[Claim]:
    """Return of overlapping claims the one that counts at each position, neighbours of one outcome together."""
    bounds = sorted(
        [(one.first, 1, one.outcome) for one in claims if one.end > one.first]
        + [(one.end, -1, one.outcome) for one in claims if one.end > one.first]
    )
    open_: dict[str, int] = {}
    found: list[Claim] = []
    for number, (at, change, outcome) in enumerate(bounds):
        open_[outcome] = open_.get(outcome, 0) + change
        until = bounds[number + 1][0] if number + 1 < len(bounds) else at
        said = [name for name, count in open_.items() if count]
        if until == at or not said:
            continue
        best = max(said, key=lambda name: RANKS.index(name.partition(":")[0]))
        if found and found[-1].end == at and found[-1].outcome == best:
            found[-1] = found[-1]._replace(end=until)
        else:
            found.append(Claim(at, until, best))
    return found
