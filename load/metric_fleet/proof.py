"""What producers and consumers of a small fleet tell, event by event, and what is true of it."""

import gzip
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from load.metric_fleet.files import GZIP_LEVEL, encode
from load.metric_fleet.fleet import Epoch, Fleet
from load.metric_fleet.group import Ending
from load.metric_fleet.logs import Log, Topic
from load.metric_fleet.plan import ROUTE_MS, START_MS, Fault, FleetError, Plan
from load.metric_fleet.samples import percentiles
from load.metric_fleet.slo import Late, consumed_lateness
from proxy.records import Consumed, Produced, Record, enveloped

MOST_EVENTS = 2_000_000
"""Of a fleet that tells of each."""
REDRIVEN_MS = 20
"""From the redrive of a dead letter to its consumption."""


@dataclass
class Proof:
    """Of a class or a type."""

    produced: int = 0
    delivered: int = 0
    missing: int = 0
    duplicated: int = 0
    consumed_ms: Counter[int] = field(default_factory=Counter)
    """Event timestamp to first consumption, of every event."""

    def count(self, times_ms: list[int]) -> None:
        """Count an event that was produced, and consumed so long after."""
        self.produced += 1
        self.delivered += bool(times_ms)
        self.missing += not times_ms
        self.duplicated += max(0, len(times_ms) - 1)
        if times_ms:
            self.consumed_ms[min(times_ms)] += 1

    def as_json(self) -> dict[str, Any]:
        """Return it as the truth tells it; the percentiles are in milliseconds."""
        times = percentiles(self.consumed_ms)
        return {
            "produced": self.produced,
            "delivered": self.delivered,
            "missing": self.missing,
            "duplicated": self.duplicated,
            "consumed": {name.replace("_us", "_ms"): value for name, value in times.items()},
        }


@dataclass
class Proofs:
    """Of all classes and types."""

    by_class: dict[str, Proof] = field(default_factory=dict)
    by_type: dict[str, Proof] = field(default_factory=dict)
    late: Late = field(default_factory=Counter)
    """By consumed time."""


def check_size(plan: Plan, rate: float) -> None:
    """Raise `FleetError` if a fleet with so many events a second has too many to tell of each."""
    events = rate * plan.end_ms / 1000
    if events > MOST_EVENTS:
        raise FleetError(f"--events: {events:,.0f} events are more than {MOST_EVENTS:,}; fewer --minutes or --active")


def write(out: Path, fleet: Fleet) -> Proofs:
    """Write who produced and who consumed what into `logs`; return what is true of it."""
    found = Proofs()
    with _packed(out, "producers") as produced, _packed(out, "consumers") as consumed:
        for log, epochs in fleet.partitions():
            if not log.kind.rate:
                continue
            for topic in log.topics:
                _tell(fleet, log, topic, [one for one in epochs if one.topic is topic], found, produced, consumed)
    return found


def _packed(out: Path, who: str) -> gzip.GzipFile:
    return gzip.GzipFile(out / "logs" / f"20251121T044000Z-{who}-000001.jsonl.gz", "wb", GZIP_LEVEL, mtime=0)


def _tell(
    fleet: Fleet,
    log: Log,
    topic: Topic,
    epochs: list[Epoch],
    found: Proofs,
    produced: gzip.GzipFile,
    consumed: gzip.GzipFile,
) -> None:
    kind = log.kind
    proofs = (found.by_class.setdefault(kind.priority, Proof()), found.by_type.setdefault(kind.name, Proof()))
    taken = _taken(fleet, log, topic, epochs)
    first = min(one.first for one in epochs)
    end = log.end(fleet.plan.end_ms) if topic is log.topics[-1] else epochs[-1].last
    is_lost = {position for _, lost in log.truncated for position in range(*lost)}
    for position in range(first, end):
        if not (log.is_event(position) or position in is_lost):
            continue
        due, key = log.due_ms(position, topic), f"{kind.topic}-{log.number}-{position}"
        times = taken.get(position, [])
        _line(produced, Produced(type=kind.name, class_=kind.priority, id=key), due)
        for at in times:
            _line(consumed, Consumed(type=kind.name, class_=kind.priority, id=key, event_ms=START_MS + due), at)
        after = [at - due for at in times]
        for proof in proofs:
            proof.count(after)
        found.late.update(consumed_lateness(kind.priority, due, after, fleet.plan.end_ms))


def _taken(fleet: Fleet, log: Log, topic: Topic, epochs: list[Epoch]) -> dict[int, list[int]]:
    """Return when each position was consumed, as often as it was."""
    chance = fleet.plan.chance("consumers", log.kind.number, log.number)
    taken: dict[int, list[int]] = {}
    for at, position in _deliveries(fleet, epochs):
        taken.setdefault(position, []).append(at + max(1, round(chance.lognormvariate(3.0, 1.0))))
    again = [one for one in fleet.happenings if one.log is log and one.fault is Fault.REDRIVE]
    for one in again if topic is log.topics[0] else []:
        for position in (place for letters in one.ranges for place in range(*letters)):
            taken.setdefault(position, []).append(one.at_ms + REDRIVEN_MS)
    return taken


def _line(file: gzip.GzipFile, record: Record, at_ms: int) -> None:
    written = enveloped(record, at_ms=START_MS + at_ms, instance="")
    del written["instance"]
    file.write((encode(written) + "\n").encode())


def _deliveries(fleet: Fleet, epochs: list[Epoch]) -> Iterator[tuple[int, int]]:
    """Yield each delivery: when, and of which position; one that was read by two, or twice, has two."""
    for epoch in epochs:
        life, log, at = epoch.life, epoch.log, epoch.first
        ticks = [*range(life.tick_before(epoch.begin_ms, ROUTE_MS) + ROUTE_MS, epoch.end_ms, ROUTE_MS), epoch.end_ms]
        if epoch.ending is Ending.ZOMBIE:
            ticks.append(life.last_ms)
        for tick in ticks:
            done = epoch.position(tick, fleet.flow)
            if tick == epoch.end_ms and epoch.ending is Ending.KILLED:
                done = max(done, log.done(tick, fleet.flow))  # sent, and not committed any more
            letters = {place for one in log.letters(at, done, epoch.begin_ms) for place in range(one.first, one.end)}
            for position in range(at, done):
                is_dropped = any(one.within(position, position + 1) for one in log.discarded)
                if log.is_event(position) and position not in letters and not is_dropped:
                    yield tick, position
            at = max(at, done)
