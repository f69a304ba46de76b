"""The whole fleet of a plan: types, processes, partitions with what happens to them, and who had which from when on."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from load.metric_fleet.flow import Flow
from load.metric_fleet.group import Ending, Life, Span, committed_ms, lives, recorded_ms, spans
from load.metric_fleet.happenings import Happening, happen
from load.metric_fleet.kinds import Kind, kinds
from load.metric_fleet.logs import Log, Topic
from load.metric_fleet.plan import TYPE_MS, Plan

FIRST = 1_000_000
"""Positions begin above it, so that those of a topic made anew are not theirs."""
CLAIM = 5
"""So many positions a zombie claims at most beyond what it had committed."""


@dataclass(frozen=True)
class Epoch:
    """One assignment of a partition to a process."""

    log: Log
    life: Life
    number: int
    """As the process counts them, from 1."""
    topic: Topic
    begin_ms: int
    end_ms: int
    ending: Ending
    first: int
    """Where reading begins."""
    committed: int | None
    """Up to where the group was done with it; None: it had committed nothing in this topic."""
    log_end: int
    """One past the last position there was then."""
    last: int
    """Up to where it was done with at the end, as the group knows it."""
    claim: int
    """... as the process says: more than `last` for a zombie."""

    def position(self, t_ms: int, flow: Flow) -> int:
        """Return up to where it is done with at an instant."""
        if t_ms <= self.begin_ms:
            return self.first
        if t_ms >= self.end_ms:
            return self.last if t_ms < self.life.last_ms or self.ending is not Ending.ZOMBIE else self.claim
        return min(self.last, max(self.first, self.log.done(t_ms, flow)))

    def read(self, t_ms: int, flow: Flow) -> int:
        """Return up to where it is read at an instant; what is read and not done with at the end is left."""
        if t_ms <= self.begin_ms:
            return self.first
        inside = min(t_ms, self.end_ms)
        return max(self.position(t_ms, flow), self.log.read(inside, flow))

    @property
    def written_ms(self) -> int:
        """Return when its last range is written: at once when it is given away."""
        return self.life.last_ms if self.ending is Ending.ZOMBIE else self.end_ms

    @property
    def recorded_ms(self) -> int:
        """Return the instant up to which its ranges were written, if none was lost otherwise."""
        return recorded_ms(self.life) if self.ending is Ending.KILLED else self.written_ms

    def unrecorded(self, flow: Flow) -> Iterator[tuple[int, int]]:
        """Yield the ranges that were committed and of which no record is left."""
        if self.ending is Ending.KILLED:
            yield self.position(max(self.recorded_ms, self.begin_ms), flow), self.last
        if self.life.lossy is None:
            return
        tick = self.life.tick_before(self.life.lossy[1] - 1, TYPE_MS)
        for at in sorted({tick, self.written_ms}):
            if self.begin_ms < at <= self.recorded_ms and self.life.loses(at):
                before = self.life.tick_before(at - 1, TYPE_MS)
                yield self.position(before, flow), self.position(at, flow)


class Fleet:
    """What really is and happens, in the memory of every worker: made from the plan alone, always the same."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.flow = Flow(plan)
        self.kinds = kinds(plan)
        self.lives = lives(plan)
        self.logs: list[Log] = []
        self.happenings: list[Happening] = []
        pending: list[tuple[Log, list[Span]]] = []
        for kind in self.kinds:
            for number in range(kind.partitions):
                log = _log(plan, kind, number)
                owners = list(spans(self.lives, kind, number, plan.end_ms))
                self.happenings += happen(plan, self.flow, log, owners)
                self.logs.append(log)
                pending.append((log, owners))
        self.epochs = self._epochs(pending)

    def _epochs(self, pending: list[tuple[Log, list[Span]]]) -> dict[int, list[Epoch]]:
        """Return the epochs of every life by its number, in order of their beginning."""
        of_lives: dict[int, list[Epoch]] = {life.number: [] for life in self.lives}
        found = [epoch for log, owners in pending for epoch in self._of_log(log, owners)]
        for epoch in sorted(found, key=lambda one: one.begin_ms):
            mine = of_lives[epoch.life.number]
            mine.append(replace(epoch, number=len(mine) + 1))
        return of_lives

    def _of_log(self, log: Log, owners: list[Span]) -> Iterator[Epoch]:
        flow = self.flow
        committed: int | None = log.done(0, flow)
        topic = log.topics[0]
        for span, jumps in _cut(owners, [one for one in self.happenings if one.log is log and one.jumps]):
            first = log.done(span.begin_ms, flow) if jumps is not None or committed is None else committed
            if jumps is not None and jumps.moves_cursor:
                committed = first
            if log.topic_at(span.begin_ms) is not topic:
                topic, committed = log.topic_at(span.begin_ms), None
                first = int(topic.base)
            end = committed_ms(span.life) if span.ending is Ending.KILLED else span.end_ms
            last = max(first, log.done(end, flow)) if end > span.begin_ms else first
            claim = last
            if span.ending is Ending.ZOMBIE:
                claim = min(last + CLAIM, max(last, log.done(span.life.last_ms, flow)))
            yield Epoch(
                log, span.life, 0, topic, span.begin_ms, span.end_ms, span.ending,
                first, committed, max(first, log.end(span.begin_ms)), last, claim,
            )  # fmt: skip
            committed = last

    def partitions(self) -> Iterator[tuple[Log, list[Epoch]]]:
        """Yield every partition with its epochs in order of time."""
        by_log: dict[int, list[Epoch]] = {id(log): [] for log in self.logs}
        for epochs in self.epochs.values():
            for epoch in epochs:
                by_log[id(epoch.log)].append(epoch)
        for log in self.logs:
            yield log, sorted(by_log[id(log)], key=lambda one: one.begin_ms)


def _cut(owners: list[Span], jumps: list[Happening]) -> Iterator[tuple[Span, Happening | None]]:
    """Yield the spans, cut where reading begins anew without another owner, each with what made it begin."""
    for span in owners:
        begin, cause = span.begin_ms, None
        for one in sorted(jumps, key=lambda each: each.at_ms):
            if begin < one.at_ms < span.end_ms:
                yield Span(span.life, begin, one.at_ms - 1, Ending.STOPPED), cause
                begin, cause = one.at_ms, one
        yield Span(span.life, begin, span.end_ms, span.ending), cause


def _log(plan: Plan, kind: Kind, number: int) -> Log:
    chance = plan.chance("log", kind.number, number)
    base = FIRST + chance.randrange(FIRST) + chance.random()
    topic = Topic(f"id{plan.seed % 997:03d}k{kind.number:05d}g0", 0, base, None)
    return Log(kind, number, [topic])
