"""Who offers what, when: the streams of a scenario, written into the log by an open schedule.

Whenever its `linger` is over, what a stream owes is written to one of its partitions, whose turn it is, as by producers
that batch; it is due at that instant.
"""

import asyncio
from bisect import bisect_right
from collections.abc import Sequence
from math import pi, sin
from operator import itemgetter

from proxy.model import Partition, Retention
from proxy.simulation.memory_cluster import MemoryCluster
from proxy.simulation.model_broker import Seen
from proxy.simulation.scenario import Rate, Scenario, Stream
from proxy.simulation.trace import Trace

TOP_UP = 0.05
"""Seconds between two looks at what is endless, and the longest between any two ..."""
AHEAD_SECONDS = 2.0
AHEAD_LEAST = 50
"""... which is topped up to so many seconds of the capacity behind it, but at least so many events a partition."""
TRIM = 1_000
"""Events of a partition that are done with before the log forgets them; looked at seldom."""
_TRIM_SECONDS = 10.0
BACKLOG_STEPS = 1_000
"""Instants at most at which a backlog's events came."""


def rate_at(rate: Rate, second: float) -> float:
    """Return the events a second at an instant; what is endless has none."""
    if rate.constant is not None:
        return rate.constant
    if rate.low is not None and rate.high is not None and rate.period is not None:
        return rate.low + (rate.high - rate.low) * (1 - _cosine(second / rate.period)) / 2
    place = bisect_right(rate.points, second, key=itemgetter(0))
    if place == 0:
        return rate.points[0][1] if rate.points else 0.0
    before = rate.points[place - 1]
    if place == len(rate.points):
        return before[1]
    at, value = rate.points[place]
    return before[1] + (value - before[1]) * (second - before[0]) / (at - before[0])


def portions(count: int, partitions: int) -> list[int]:
    """Return how much of a backlog lies in each partition: alike, but for the last ones."""
    each = -(-count // partitions)
    return [max(0, min(each, count - at * each)) for at in range(partitions)]


def _cosine(turns: float) -> float:
    return sin(2 * pi * turns + pi / 2)


class Offer:
    """One stream on its way into the log."""

    def __init__(
        self,
        name: str,
        stream: Stream,
        places: Sequence[Partition],
        capacity: float,
        cluster: MemoryCluster,
        trace: Trace,
        tick: float,
    ) -> None:
        self._stream = stream
        self._tick = tick
        self._cluster = cluster
        self._counts = trace.offered[name]
        self._value = bytes(stream.size)
        self._partitions = places
        self._active = (stream.active or stream.types) * stream.partitions
        self._ticks = max(1, round(stream.linger / tick))
        self._owed = 0.0
        self._turn = 0
        self._ahead = max(AHEAD_LEAST, round(AHEAD_SECONDS * capacity / len(self._partitions)))
        for partition in places:
            cluster.create_topic(partition.topic, partition.number + 1)
            if stream.retention is not None:
                cluster.retentions[partition.topic] = Retention(stream.retention, None, None)

    @property
    def is_endless(self) -> bool:
        """Whether it is topped up instead of written by schedule."""
        return self._stream.rate.endless is not None

    def lay(self, wall: float) -> None:
        """Write what lies in the log when the run begins, `wall` in seconds since 1970."""
        count, age = self._stream.rate.backlog, self._stream.rate.age
        if count is None or age is None:
            return
        self._counts.add(0.0, count)
        for partition, here in zip(self._partitions, portions(count, len(self._partitions)), strict=True):
            steps = min(here, BACKLOG_STEPS)
            for step in range(steps):
                more = here * (step + 1) // steps - here * step // steps
                stamp = round((wall - age * (1 - step / steps)) * 1000)
                self._cluster.produce_alike(partition, more, value=self._value, timestamp_ms=stamp)

    def write(self, tick: int, wall_ms: int) -> None:
        """Write what has become due since the last time."""
        if tick % self._ticks:
            return
        second, linger = tick * self._tick, self._ticks * self._tick
        self._owed += rate_at(self._stream.rate, second - linger / 2) * linger
        due = int(self._owed + 1e-9)
        if not due:
            return
        self._owed -= due
        self._counts.add(second - self._tick / 2, due)
        first = int(second / self._stream.rotation) * self._active if self._stream.active else 0
        at = (first + self._turn % self._active) % len(self._partitions)
        self._turn += 1
        self._cluster.produce_alike(self._partitions[at], due, value=self._value, timestamp_ms=wall_ms)

    def top_up(self, second: float, wall_ms: int, seen: dict[Partition, Seen]) -> None:
        """Write so much that every partition has enough ahead of what the queues took."""
        for partition in self._partitions:
            taken = seen[partition].next if partition in seen else 0
            lacking = self._ahead - (self._cluster.tracks[partition].end - taken)
            if lacking > self._ahead // 4:
                self._cluster.produce_alike(partition, lacking, value=self._value, timestamp_ms=wall_ms)
                self._counts.add(second, lacking)

    def trim(self, committed: dict[Partition, int]) -> None:
        """Let the log forget what is done with."""
        for partition in self._partitions:
            done = committed.get(partition, 0)
            if done - self._cluster.tracks[partition].first >= TRIM:
                self._cluster.truncate(partition.topic, partition.number, done)


class Offers:
    """Everything that is offered in a scenario; made, it has created the topics."""

    def __init__(self, scenario: Scenario, cluster: MemoryCluster, trace: Trace) -> None:
        self._scenario = scenario
        self._cluster = cluster
        self._tick = min([TOP_UP, *(stream.linger for stream in scenario.streams.values() if not stream.rate.endless)])
        offers = [
            Offer(
                name,
                stream,
                [Partition(*place) for place in scenario.places(name)],
                _capacity(scenario, name),
                cluster,
                trace,
                self._tick,
            )
            for name, stream in scenario.streams.items()
        ]
        self._offers = offers
        self._scheduled = [one for one in offers if not one.is_endless]
        self._endless = [one for one in offers if one.is_endless]

    async def run(self, seen: dict[Partition, Seen], *, epoch: float) -> None:
        """Write until the end of the scenario; `epoch` is the wall time at its start, `seen` what queues took."""
        loop = asyncio.get_running_loop()
        start = loop.time()
        for one in self._offers:
            one.lay(epoch)
        committed = self._cluster.group(self._scenario.name).committed
        top_up, trim = round(TOP_UP / self._tick), round(_TRIM_SECONDS / self._tick)
        for tick in range(1, round(self._scenario.seconds / self._tick) + 1):
            second = tick * self._tick
            await asyncio.sleep(start + second - loop.time())
            wall_ms = round((epoch + second) * 1000)
            for one in self._scheduled:
                one.write(tick, wall_ms)
            if tick % top_up == 0:
                for one in self._endless:
                    one.top_up(second, wall_ms, seen)
            if tick % trim == 0:
                self._cluster.retain(wall_ms)
                for one in self._offers:
                    one.trim({partition: told.offset for partition, told in committed.items()})


def _capacity(scenario: Scenario, stream: str) -> float:
    """Return what can be taken of a stream at most."""
    route = scenario.routes[scenario.route_of(stream)]
    queues = route.sends.get(scenario.streams[stream].priority, route.queues)
    return min(scenario.queues[name].capacity for name in queues)
