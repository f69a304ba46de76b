"""When each event of a scenario is due and into which topic it goes: settled before the first one is sent. Pure."""

from collections.abc import Iterator
from heapq import merge
from typing import NamedTuple

from load.control.payload import LEAST
from proxy.simulation.offers import rate_at
from proxy.simulation.scenario import Scenario, Stream

STEP = 0.005
"""Seconds over which a rate counts as constant."""
AHEAD = 1.3
"""Endless streams hold so many times what could be taken of them."""
LEAST_EACH = 50
"""... and so many events a partition at least."""
PRELOAD_BYTES = 2 * 1024**3
"""What all endless streams of a scenario may put into the log at most."""


class Due(NamedTuple):
    """One event."""

    at: float
    """Second of the run."""
    topic: int
    """Place of its topic among all topics."""
    partition: int


def topics(scenario: Scenario) -> list[tuple[str, str, int]]:
    """Return stream, topic and partitions of every topic, in the order of their places."""
    return [
        (name, topic, stream.partitions) for name, stream in scenario.streams.items() for topic in scenario.topics(name)
    ]


def schedule(scenario: Scenario) -> Iterator[Due]:
    """Yield every event of the streams that run dry, in the order of their instants."""
    parts, first = [], 0
    for stream in scenario.streams.values():
        if stream.rate.endless is None:
            parts.append(_of(stream, first, scenario.seconds))
        first += stream.types
    return merge(*parts)


def _of(stream: Stream, first: int, seconds: float) -> Iterator[Due]:
    """Yield a stream's events, evenly along its rate; its active types take turns, partition by partition."""
    active = stream.active or stream.types
    owed, number = 0.0, 0
    for step in range(round(seconds / STEP)):
        begins = step * STEP
        more = rate_at(stream.rate, begins + STEP / 2) * STEP
        while number + 1 <= owed + more:
            at = begins + STEP * (number + 1 - owed) / more
            turn = number % active
            rotated = int(at / stream.rotation) * active if stream.active else 0
            yield Due(at, first + (rotated + turn) % stream.types, number // active % stream.partitions)
            number += 1
        owed += more


def preload(scenario: Scenario) -> dict[int, int]:
    """Return how many events each partition of an endless stream's topics holds before the run, by topic's place."""
    counts: dict[int, int] = {}
    first = 0
    for name, stream in scenario.streams.items():
        if stream.rate.endless is not None:
            partitions = stream.types * stream.partitions
            each = max(LEAST_EACH, round(AHEAD * _takeable(scenario, name) / partitions))
            counts |= dict.fromkeys(range(first, first + stream.types), each)
        first += stream.types
    return counts


def preload_bytes(scenario: Scenario) -> int:
    """Return how large all that is."""
    places = topics(scenario)
    sizes = [(scenario.streams[stream].size, partitions) for stream, _, partitions in places]
    return sum(count * max(sizes[at][0], LEAST) * sizes[at][1] for at, count in preload(scenario).items())


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
