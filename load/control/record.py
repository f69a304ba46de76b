"""What is seen of one run on real brokers, made into the trace that every figure is taken from."""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any

from load.control.offer import Due, Old, Place, places
from load.control.payload import FIRST, Mark
from proxy.simulation.scenario import Scenario
from proxy.simulation.trace import QueueSample, Told, Trace


@dataclass
class Record:
    """One run. Instants come in seconds of the monotonic clock, of which the run begins at `start`."""

    scenario: Scenario
    start: float = math.inf
    trace: Trace = field(init=False)
    stored: dict[str, dict[Place, Counter[int]]] = field(default_factory=dict)
    """How often each event came out of a queue, by queue."""
    _streams: dict[Place, str] = field(init=False)
    """Which stream comes in a partition."""
    _passed: dict[str, list[int]] = field(default_factory=dict)
    """What each event cost that came out of a queue, in their order, by queue."""
    _looks: dict[str, list[int]] = field(default_factory=dict)
    """How many had come out of a queue at each look, by queue."""
    _depths: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Prepare an empty trace."""
        self.trace = Trace(self.scenario.seconds)
        self._streams = {place: name for name, at in places(self.scenario).items() for place in at}

    def cost_of(self, mark: Mark | None) -> int:
        """Return what an event costs."""
        return 1 if mark is None else self.scenario.streams[self._stream_of(mark)].cost

    def mean_cost(self, queue: str) -> float:
        """Return what an event cost on average that came out of a queue; 1 if none did."""
        passed = self._passed.get(queue)
        return sum(passed) / len(passed) if passed else 1.0

    def on_due(self, due: Due) -> None:
        """Take in that an event was offered."""
        self.trace.offered[self._stream_of(due)].add(due.at)

    def on_laid(self, place: Place, old: Old) -> None:
        """Take in what a partition held when the run began: offered in its first moment."""
        self.trace.offered[self._streams[place]].add(0.0, old.events)

    def on_stored(self, queue: str, mark: Mark | None) -> None:
        """Take in that an event came out of a queue for the first time."""
        self._passed.setdefault(queue, []).append(self.cost_of(mark))
        if mark is not None:
            counts = self.stored.setdefault(queue, {}).setdefault((mark.topic, mark.partition), Counter())
            counts[mark.number] += 1

    def on_left(self, queue: str, left: Iterable[Mark | None], given_back: Collection[Mark]) -> None:
        """Take in what was still in a queue at the end; what consumers gave back has been counted."""
        for mark in left:
            if mark is not None and mark not in given_back:
                self.on_stored(queue, mark)

    def totals(self) -> dict[str, Counter[str]]:
        """Return what was produced and consumed so far, by class."""
        of_class = {name: stream.priority for name, stream in self.scenario.streams.items()}
        found: dict[str, Counter[str]] = {"produced": Counter(), "consumed": Counter()}
        for name, counts in self.trace.offered.items():
            found["produced"][of_class[name]] += sum(counts.bins)
        for name, times in self.trace.consumed.items():
            found["consumed"][of_class[name]] += len(times.at)
        return found

    def on_begun(self, queue: str, instant: float, mark: Mark | None) -> None:
        """Take in that a consumer began to work on an event."""
        at = instant - self.start
        if 0 <= at < self.scenario.seconds:
            self.trace.worked[queue].add(at, self.cost_of(mark))
            if mark is not None:
                waited = math.nan if math.isnan(mark.due) else instant - mark.due
                self.trace.consumed[self._stream_of(mark)].add(at, waited)

    def on_sample(self, queue: str, sample: QueueSample, delivered: int, foreign: int) -> None:
        """Take in a look at a queue: what went through it so far, how much of that others published."""
        self.trace.queues[queue].append(sample)
        self._looks.setdefault(queue, []).append(len(self._passed.get(queue, ())))
        passed = sample.ready + delivered - foreign
        admitted = passed - self._depths.get(queue, passed)
        self._depths[queue] = passed
        if admitted:
            self.trace.admitted[queue].add(max(0.0, sample.at), admitted)

    def on_metrics(self, replica: int, records: Iterable[Mapping[str, Any]], wall_start: float) -> None:
        """Take in a replica's metric log; the run began at `wall_start`, seconds since 1970."""
        stream_of = {stream.priority: name for name, stream in reversed(self.scenario.streams.items())}
        for record in records:
            at = record["at_ms"] / 1000 - wall_start
            if not 0 <= at <= self.scenario.seconds:
                continue
            if record["kind"] == "class":
                stream = stream_of.get(record["class"])
                if stream is None:
                    continue
                self.trace.confirmed[replica].add(at, record["confirmed"])
                self.trace.sent[stream].add(at, record["confirmed"] + record["nacked"])
                self.trace.refused[stream].add(at, record["nacked"])
                if record["bridge_us"]:
                    buckets = {int(index): count for index, count in record["bridge_us"].items()}
                    self.trace.bridged[record["class"]].append((at, buckets))
            elif record["kind"] == "verdict":
                self.trace.told.append(Told(at, record["route"], record["congested"], record["cause"]))

    def scale(self, queue: str, factor: float) -> None:
        """Put right what the consumers of a queue could truly do."""
        samples = self.trace.queues[queue]
        self.trace.queues[queue] = [replace(one, capacity=one.capacity * factor) for one in samples]

    def weigh(self, queue: str) -> None:
        """Say what waited in a queue at each look: what came out of it next."""
        sums = list(accumulate(self._passed.get(queue, ()), initial=0))
        samples = self.trace.queues[queue]
        for place, (seen, passed) in enumerate(zip(samples, self._looks.get(queue, ()), strict=True)):
            work = sums[min(passed + seen.ready, len(sums) - 1)] - sums[passed]
            samples[place] = replace(seen, work=work)

    def account(self, committed: Mapping[Place, int]) -> None:
        """Compare what was committed with what came out of any queue."""
        for place, offset in committed.items():
            seen: Counter[int] = Counter()
            for of_queue in self.stored.values():
                counts = of_queue.get(place, Counter())
                self.trace.duplicates += counts.total() - len(counts)
                seen.update(counts.keys())
            self.trace.lost += offset - FIRST - sum(number < offset for number in seen)

    def _stream_of(self, event: Due | Mark) -> str:
        return self._streams[event.topic, event.partition]
