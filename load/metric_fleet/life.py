"""The records of one process, an interval at a time, and what they sum up to."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from load.metric_fleet.block import Block, Moved, block, delivered, discarded, ticks
from load.metric_fleet.fleet import Epoch, Fleet
from load.metric_fleet.group import Ending, Life
from load.metric_fleet.happenings import BY
from load.metric_fleet.kinds import CLASSES, ROUTES
from load.metric_fleet.plan import FILE_MS, TYPE_MS, Fault
from load.metric_fleet.routes import advice, route_intervals, start_record
from load.metric_fleet.samples import Pools
from load.metric_fleet.slo import Late, bridge_lateness
from load.metric_fleet.tally import Sums, Tally
from load.metric_fleet.verdicts import verdicts
from proxy import records
from proxy.records import BatchSizes, ClassInterval, Committed, CommittedRange, Discard, LetterRange, TypeInterval

RAW_TYPES = 32
"""The raw latencies of so many types are kept; of classes all are."""
MOST_TOLD = 50
"""Ranges of dead letters that a committed range tells of."""
BATCH = 15.0
"""Batch size of every type under `per_type`."""

Told = tuple[int, records.Record]
"""A record and its instant."""


@dataclass
class Known:
    """What a part of a life was, in all: of what is recorded, and how much is not."""

    instance: str
    by_class: dict[str, Sums] = field(default_factory=dict)
    by_type: dict[str, Sums] = field(default_factory=dict)
    by_route: dict[str, Sums] = field(default_factory=dict)
    records: Counter[str] = field(default_factory=Counter)
    """Written, by kind."""
    lost: int = 0
    """Records that a lossy log lost."""
    late: Late = field(default_factory=Counter)
    """By bridge time."""
    untold: Counter[str] = field(default_factory=Counter)
    """Dead letters by type whose positions no record tells: beyond `MOST_TOLD`."""


class Part:
    """A part of a life: what one file holds."""

    def __init__(self, fleet: Fleet, pools: Pools, life: Life, number: int) -> None:
        self.known = Known(life.instance)
        self.life = life
        self.start_ms = life.start_ms + number * FILE_MS
        self._fleet = fleet
        self._pools = pools
        self._epochs = fleet.epochs[life.number]
        self._chance = fleet.plan.chance("part", life.number, number)
        batches = Counter(
            kind.priority
            for kind in {one.log.kind.number: one.log.kind for one in self._epochs}.values()
            if kind.route == "seed"
        )
        self._batches = {
            name: BatchSizes(sum=BATCH * count, min=BATCH, max=BATCH, types=count) for name, count in batches.items()
        }

    def told(self) -> Iterator[list[Told]]:
        """Yield its records, those of one interval together, in order of time."""
        life = self.life
        if self.start_ms == life.start_ms:
            yield self._kept([(life.start_ms, start_record())])
        for start in range(self.start_ms, min(self.start_ms + FILE_MS, life.end_ms), TYPE_MS):
            yield self._kept(self._interval(start))

    def _kept(self, told: list[Told]) -> list[Told]:
        """Return what is not lost, and with the first record behind a loss how much that was."""
        left = [one for one in told if not self.life.loses(one[0])]
        self.known.lost += len(told) - len(left)
        lossy = self.life.lossy
        if lossy is not None and self.known.lost and lossy[1] < told[-1][0]:
            at = next(at for at, _ in left if at >= lossy[1])
            left.append((at, records.Drops(records=self.known.lost, files=0)))
            self.known.lost = 0
            left.sort(key=lambda one: one[0])
        self.known.records.update(record.KIND for _, record in left)
        return left

    def _interval(self, start: int) -> list[Told]:
        life, fleet = self.life, self._fleet
        end = start + TYPE_MS
        at = ticks(life, start, end)
        made = block(fleet, self._pools, self._epochs, at, self._chance)
        until = min(end, life.end_ms)
        told: list[Told] = list(verdicts(fleet.flow, life, start, until, fleet.plan.replicas))
        told += [
            (one.at_ms, record)
            for one in fleet.happenings
            if one.life is life and start <= one.at_ms < until
            for record in one.told
        ]
        if not life.is_old:
            told += [
                (one.epoch.begin_ms, _assigned(one.epoch)) for one in made.moved if start <= one.epoch.begin_ms < end
            ]
        told += self._seconds(made)
        told += self._committed(made)
        if life.ending is not Ending.KILLED or end <= life.end_ms:
            told += self._types(made)
        if life.end_ms <= end:
            told += self._farewell(made)
        if fleet.plan.has(Fault.ADVICE) and not life.is_old and (start - life.start_ms) % (6 * TYPE_MS) == 0:
            told += [(at[-1], record) for record in advice(fleet, life, at[-1])]
        return sorted(told, key=lambda one: one[0])

    # -- counts -------------------------------------------------------------------------------------------------------

    def _seconds(self, made: Block) -> Iterator[Told]:
        for number, cells in enumerate(made.of_seconds):
            at = made.ticks[number + 1]
            interval = (at - made.ticks[number]) / 1000
            for priority in CLASSES:
                tally = _sum([cells[priority, route.name] for route in ROUTES])
                self._count(self.known.by_class, priority, at, tally, is_raw=True)
                if not self.life.loses(at):
                    self.known.late.update(bridge_lateness(priority, at, tally.bridge))
                yield (
                    at,
                    ClassInterval(
                        interval_s=interval,
                        class_=priority,
                        **tally.fields(self._pools),
                        batch_size=self._batches.get(priority),
                    ),
                )
            of_routes = {
                route.name: _sum([cells[priority, route.name] for priority in CLASSES]) for route in ROUTES
            }  # fmt: skip
            for name, tally in of_routes.items():
                self._count(self.known.by_route, name, at, tally, is_raw=True)
            for record in route_intervals(self._fleet.flow, of_routes, at, interval, self._pools):
                yield at, record

    def _types(self, made: Block) -> Iterator[Told]:
        at = made.ticks[-1]
        for number, tally in made.of_kinds.items():
            if tally.is_empty:
                continue
            kind = self._fleet.kinds[number]
            self._count(self.known.by_type, kind.name, at, tally, is_raw=number < RAW_TYPES)
            yield (
                at,
                TypeInterval(
                    interval_s=(at - made.ticks[0]) / 1000,
                    type=kind.name,
                    topic=kind.topic,
                    route=kind.route,
                    class_=kind.priority,
                    **tally.fields(self._pools),
                    batch_size=BATCH if kind.route == "seed" else None,
                    paused=tally.waiting > 0,
                ),
            )

    def _count(self, sums: dict[str, Sums], name: str, at: int, tally: Tally, *, is_raw: bool) -> None:
        if not self.life.loses(at):
            if name not in sums:
                sums[name] = Sums(publish=Counter(), bridge=Counter()) if is_raw else Sums()
            sums[name].add(tally)

    # -- positions ----------------------------------------------------------------------------------------------------

    def _committed(self, made: Block) -> Iterator[Told]:
        """Yield what was committed: at the end of the interval, or at once when a partition is given away."""
        by_record: dict[tuple[int, int], list[CommittedRange]] = {}
        for moved in made.moved:
            epoch, first, end = moved.epoch, moved.done[0], moved.done[-1]
            at = min(made.ticks[-1], epoch.written_ms)
            if first == end or at > epoch.recorded_ms or self.life.is_old:
                continue
            by_record.setdefault((at, epoch.log.kind.number), []).append(self._range(moved, first, end))
            for dropped in epoch.log.discarded:
                if dropped.within(first, end):
                    low, high = max(dropped.first, first), min(dropped.end, end)
                    yield at, _discard(epoch, low, high)
        for (at, number), ranges in by_record.items():
            kind = self._fleet.kinds[number]
            yield at, Committed(type=kind.name, topic=kind.topic, ranges=ranges)

    def _range(self, moved: Moved, first: int, end: int) -> CommittedRange:
        epoch = moved.epoch
        letters = epoch.log.letters(first, end, epoch.begin_ms)
        self.known.untold[epoch.log.kind.name] += sum(one.end - one.first for one in letters[MOST_TOLD:])
        reasons: Counter[str] = Counter()
        for one in letters:
            reasons[one.reason] += one.end - one.first
        return CommittedRange(
            partition=epoch.log.number,
            epoch=epoch.number,
            topic_id=epoch.topic.id,
            first=first,
            end=end,
            commits=len(set(moved.done)) - 1,
            delivered=delivered(epoch.log.events(first, end), letters, discarded(epoch, first, end)),
            dead_lettered=dict(reasons),
            letters=[
                LetterRange(first=one.first, end=one.end, count=one.end - one.first, reason=one.reason)
                for one in letters[:MOST_TOLD]
            ],
        )

    def _farewell(self, made: Block) -> Iterator[Told]:
        life = self.life
        if life.ending is Ending.ZOMBIE:
            yield life.last_ms, records.assignment_lost("fenced: another has its partitions")
        if life.ending in {Ending.STOPPED, Ending.ZOMBIE}:
            confirmed = dead = 0
            for epoch in self._epochs:
                end = epoch.claim
                letters = epoch.log.letters(epoch.first, end, epoch.begin_ms)
                dead += sum(one.end - one.first for one in letters)
                dropped = discarded(epoch, epoch.first, end)
                confirmed += delivered(epoch.log.events(epoch.first, end), letters, dropped)
            yield (
                life.last_ms,
                records.Stop(confirmed=confirmed, dead_lettered=dead, unresolved=sum(one.left for one in made.moved)),
            )


def parts(life: Life) -> int:
    """Return of how many parts a life is."""
    return -(-(life.end_ms - life.start_ms) // FILE_MS)


def _sum(tallies: list[Tally]) -> Tally:
    total = Tally()
    for one in tallies:
        total.add(one)
    return total


def _assigned(epoch: Epoch) -> records.Assigned:
    return records.Assigned(
        type=epoch.log.kind.name, topic=epoch.log.kind.topic, topic_id=epoch.topic.id, partition=epoch.log.number,
        epoch=epoch.number, first=epoch.first, committed=epoch.committed, end=epoch.log_end,
    )  # fmt: skip


def _discard(epoch: Epoch, first: int, end: int) -> Discard:
    return Discard(
        by=BY, why="nobody reads it", type=epoch.log.kind.name, topic=epoch.log.kind.topic, topic_id=epoch.topic.id,
        partition=epoch.log.number, first=first, end=end, count=epoch.log.events(first, end),
    )  # fmt: skip
