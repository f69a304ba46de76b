"""When each event of a scenario is due and into which topic it goes: settled before the first one is sent. Pure."""

from collections.abc import Iterator, Sequence
from heapq import merge
from typing import NamedTuple

from load.control.payload import LEAST
from proxy.simulation.offers import portions, rate_at
from proxy.simulation.scenario import Scenario, Stream

STEP = 0.005
"""Seconds over which a rate counts as constant."""
AHEAD = 1.3
"""Endless streams hold so many times what could be taken of them."""
LEAST_EACH = 50
"""... and so many events a partition at least."""
PRELOAD_BYTES = 2 * 1024**3
"""What all endless streams and backlogs of a scenario may put into the log at most."""

Place = tuple[int, int]
"""A topic's place among all topics, and a partition."""


class Due(NamedTuple):
    """One event."""

    at: float
    """Second of the run."""
    topic: int
    """Place of its topic among all topics."""
    partition: int


class Topic(NamedTuple):
    """One topic of a run."""

    name: str
    partitions: int
    """Those of the streams that joined included."""
    size: int
    """Bytes of each event."""


class Old(NamedTuple):
    """What lies in one partition when the run begins."""

    events: int
    age: float
    """Its events were due evenly over so many seconds before."""

    def instants(self, first: int, end: int) -> list[float]:
        """Return when these of its events were due, in seconds of the run, all below 0 and rising."""
        return [self.age * (number / self.events - 1) for number in range(first, min(end, self.events))]


def topics(scenario: Scenario) -> list[Topic]:
    """Return every topic, in the order of their places."""
    found: dict[str, Topic] = {}
    for name, stream in scenario.streams.items():
        for topic, number in scenario.places(name):
            found[topic] = Topic(topic, number + 1, stream.size)  # their numbers rise, also from stream to stream
    return list(found.values())


def places(scenario: Scenario) -> dict[str, list[Place]]:
    """Return where each stream comes in: type by type, each with all of its partitions."""
    at = {topic.name: place for place, topic in enumerate(topics(scenario))}
    return {name: [(at[topic], number) for topic, number in scenario.places(name)] for name in scenario.streams}


def schedule(scenario: Scenario) -> Iterator[Due]:
    """Yield every event of the streams that run dry, in the order of their instants."""
    at = places(scenario)
    return merge(
        *(
            _of(stream, at[name], scenario.seconds)
            for name, stream in scenario.streams.items()
            if stream.rate.endless is None and stream.rate.backlog is None
        )
    )


def _of(stream: Stream, at: Sequence[Place], seconds: float) -> Iterator[Due]:
    """Yield a stream's events, evenly along its rate; its active types take turns, partition by partition."""
    active = stream.active or stream.types
    owed, number = 0.0, 0
    for step in range(round(seconds / STEP)):
        begins = step * STEP
        more = rate_at(stream.rate, begins + STEP / 2) * STEP
        while number + 1 <= owed + more:
            second = begins + STEP * (number + 1 - owed) / more
            turn = number % active
            rotated = int(second / stream.rotation) * active if stream.active else 0
            kind, partition = (rotated + turn) % stream.types, number // active % stream.partitions
            yield Due(second, *at[kind * stream.partitions + partition])
            number += 1
        owed += more


def preload(scenario: Scenario) -> dict[Place, int]:
    """Return how many events each partition of an endless stream holds before the run."""
    counts: dict[Place, int] = {}
    for name, at in places(scenario).items():
        if scenario.streams[name].rate.endless is not None:
            each = max(LEAST_EACH, round(AHEAD * _takeable(scenario, name) / len(at)))
            counts |= dict.fromkeys(at, each)
    return counts


def backlogs(scenario: Scenario) -> dict[Place, Old]:
    """Return what lies in each partition of a backlog."""
    found: dict[Place, Old] = {}
    for name, at in places(scenario).items():
        count, age = scenario.streams[name].rate.backlog, scenario.streams[name].rate.age
        if count is not None and age is not None:
            for place, here in zip(at, portions(count, len(at)), strict=True):
                found[place] = Old(here, age)
    return found


def preload_bytes(scenario: Scenario) -> int:
    """Return how large all that is."""
    counts = preload(scenario) | {place: old.events for place, old in backlogs(scenario).items()}
    return sum(
        counts.get(place, 0) * max(scenario.streams[name].size, LEAST)
        for name, at in places(scenario).items()
        for place in at
    )


def _takeable(scenario: Scenario, stream: str) -> float:
    """Return the most events of a stream that its queues can take in the whole run, with their bounds.

    Those that cost more are fewer.
    """
    route = scenario.routes[scenario.route_of(stream)]
    names = route.sends.get(scenario.streams[stream].priority, route.queues)
    return max(_most(scenario, name) for name in names) / scenario.streams[stream].cost


def _most(scenario: Scenario, queue: str) -> float:
    told = scenario.queues[queue]
    capacity = told.capacity
    if told.autoscale is not None:
        capacity *= told.autoscale.most / told.consumers
    for event in scenario.events:
        if event.what == "capacity" and scenario.queue_of(event) == queue:
            capacity = max(capacity, event.to or 0.0)
    room = told.most_messages
    return capacity * scenario.seconds + (3 * capacity if room is None else min(room, 10 * capacity))
