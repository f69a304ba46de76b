"""A bus, a hand on the clock, and a client that keeps the rules."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.nakadi.bus import Bus
from tests.nakadi.event_types import Problem
from tests.nakadi.stream import Parameters, Stream
from tests.nakadi.subscription import Result, Subscription

Batch = dict[str, Any]


@dataclass
class Rig:
    """Events are numbered from 0 in each partition."""

    bus: Bus = field(default_factory=lambda: Bus(Random(1)))
    now: float = 0.0

    def publish(self, name: str, count: int, number: int = 0) -> None:
        """Publish so many more events, making the event type if need be."""
        if name not in self.bus.event_types:
            self.bus.create(name)
        end = self.bus.event_types[name].partitions[number].end
        self.bus.append(name, number, [b"%d" % place for place in range(end, end + count)], self.now)

    def subscribe(self, *names: str, **more: Any) -> Subscription:
        """Return the subscription to event types, from the beginning."""
        for name in names:
            if name not in self.bus.event_types:
                self.bus.create(name)
        asked = {"owning_application": "tests", "event_types": list(names), "read_from": "begin"} | more
        return self.bus.subscribe(asked, self.now)[0]

    def open(self, found: Subscription, **asked: Any) -> Stream:
        """Open a stream."""
        return found.open(Parameters(**{"batch_flush_timeout": 1.0} | asked), self.bus.chance, self.now)

    def pull(self, found: Subscription, stream: Stream) -> list[Batch]:
        """Return all that the stream sends now."""
        found.advance(self.now)
        lines: list[Batch] = []
        while (line := stream.pull(self.now)) is not None:
            assert line.endswith(b"}\n")
            lines.append(json.loads(line))
        return lines

    def events(self, found: Subscription, stream: Stream) -> list[list[int]]:
        """Return the events of what the stream sends now, by line."""
        return [line.get("events", []) for line in self.pull(found, stream)]

    def commit(self, found: Subscription, stream: Stream, lines: Sequence[Batch]) -> list[Result]:
        """Commit lines."""
        return found.commit(stream.id, [line["cursor"] for line in lines], self.now)

    def refusal(self, what: Any, *arguments: Any, **more: Any) -> int:
        """Return the status that something is refused with, 0 if it is not."""
        try:
            what(*arguments, **more)
        except Problem as refused:
            return refused.status
        return 0
