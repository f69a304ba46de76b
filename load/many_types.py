"""Thousands of event types by class: their topics, and settings that an operator would write for them, by patterns."""

import random
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import yaml

from load.stack import Stack

CLASSES = {"P1": 0.1, "P2": 0.3, "P3": 0.6}
"""Shares of the types."""
SEED = 1


class Place(NamedTuple):
    """One partition."""

    topic: str
    partition: int


@dataclass(frozen=True)
class ManyTypes:
    """So many event types, a topic each; a route and a queue for each class, called alike."""

    count: int
    partitions: int
    """Of each topic."""
    group: str = "scale"

    @cached_property
    def topics(self) -> list[str]:
        """All, in order of class."""
        ends = [round(self.count * share) for share in (CLASSES["P1"], CLASSES["P1"] + CLASSES["P2"], 1)]
        return [
            self.topic(priority, number)
            for priority, first, end in zip(CLASSES, [0, *ends], ends, strict=False)
            for number in range(first, end)
        ]

    @cached_property
    def places(self) -> list[Place]:
        """All partitions, in an order that has nothing to do with their names, the same in every run."""
        every = [Place(topic, number) for topic in self.topics for number in range(self.partitions)]
        return random.Random(SEED).sample(every, len(every))

    def topic(self, priority: str, number: int) -> str:
        """Return the name of a topic of a class."""
        return f"{self.group}.{priority}.{number:05}"

    def queue(self, priority: str) -> str:
        """Return the queue of a class."""
        return f"{self.group}.{priority}"

    def write(self, file: Path, stack: Stack, admin_port: int) -> Path:
        """Write the settings of one process, what is not named here at its default; return the file."""
        told = {
            "log": {"hosts": [stack.kafka], "group": self.group},
            "broker": {"hosts": [f"127.0.0.1:{stack.amqp_port}"]},
            "routes": {one: {"exchange": "", "queues": [self.queue(one)]} for one in CLASSES},
            "event_types": {
                f"every-{one}": {
                    "pattern": f"{self.group}.{one}.*",
                    "class": one,
                    "route": one,
                    "routing_key": {"constant": self.queue(one)},
                }
                for one in CLASSES
            },
            "metric_log": {"folder": str(file.with_suffix(""))},
            "admin": {"listen": f"127.0.0.1:{admin_port}"},
        }
        file.write_text(yaml.safe_dump(told, sort_keys=False), encoding="utf-8")
        return file
