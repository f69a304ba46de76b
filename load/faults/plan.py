"""Which faults there are, what each may cost, and in which order they come. Pure."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

RECOVERY_SECONDS = 10.0
TAKEOVER_SECONDS = 7.0
"""After a replica's `kill -9`, until its partitions flow again."""


@dataclass(frozen=True)
class Kind:
    """One kind of fault."""

    name: str
    what: str
    """In words."""
    goal: float = RECOVERY_SECONDS
    """Seconds from the fault's end until every partition flows and every replica is ready."""
    zombies: int = 0
    """Replicas that may come back and write one batch that others have taken over."""
    keeps_order: bool = True
    """Else events behind the position that the replicas knew may come before those that stand there."""


KINDS = (
    Kind("rabbitmq-restart", "RabbitMQ stopped in order, and started again"),
    Kind("rabbitmq-killed", "RabbitMQ killed (kill -9), and started again"),
    Kind("memory-alarm", "RabbitMQ's memory alarm: publishing connections are blocked"),
    Kind("disk-alarm", "RabbitMQ's disk alarm, likewise"),
    Kind("connections-closed", "RabbitMQ closes every connection of Tidegate's user"),
    Kind("queue-deleted", "a queue deleted at a moment when it is empty, later declared and bound again"),
    Kind("exchange-deleted", "the exchange deleted, later declared with its bindings again"),
    Kind("permission-exchange", "the right to write to the exchange taken away, and given back"),
    Kind("permission-all", "every right to write taken away, dead letters included, and given back"),
    Kind("amqp-reset", "every connection to RabbitMQ reset"),
    Kind("amqp-black-hole", "nothing passes to and from RabbitMQ; then what was on its way arrives"),
    Kind("amqp-slow", "200 ms each way with jitter, 1 % of the segments lost, to RabbitMQ"),
    Kind("kafka-reset", "every connection to Kafka reset"),
    Kind("kafka-black-hole", "nothing passes to and from Kafka; then what was on its way arrives"),
    Kind("kafka-cut-off", "one replica alone can't reach Kafka, for longer than the session timeout", zombies=1),
    Kind("kafka-slow", "200 ms each way with jitter, 1 % of the segments lost, to Kafka"),
    Kind("kafka-restart", "Kafka stopped in order, and started again"),
    Kind("kafka-killed", "Kafka killed (kill -9), and started again"),
    Kind("partitions-added", "a topic gets one more partition"),
    Kind("topic-recreated", "a topic deleted with what is in it, and created again"),
    Kind(
        "topic-refilled",
        "a topic deleted, created again at once, and filled beyond every offset known before",
        keeps_order=False,
    ),
    Kind("log-truncated", "the log truncated under readers that stand still"),
    Kind(
        "replica-killed", "a replica killed (kill -9), started again when the others have taken over", TAKEOVER_SECONDS
    ),
    Kind("replica-terminated", "a replica ended in order (SIGTERM), started again when the others have taken over"),
    Kind("replica-stopped", "a replica stopped (SIGSTOP) for longer than the session timeout, then resumed", zombies=1),
    Kind("metric-disk-full", "the disk of one replica's metric log is full"),
)
NAMES = tuple(kind.name for kind in KINDS)


def named(name: str) -> Kind:
    """Return the kind of this name. Raises KeyError."""
    return {kind.name: kind for kind in KINDS}[name]


def order(kinds: Sequence[Kind], seed: int) -> Iterator[Kind]:
    """Yield faults without end: every kind once in an order drawn from the seed, then again in another."""
    chance = random.Random(seed)
    while True:
        yield from chance.sample(kinds, len(kinds))
