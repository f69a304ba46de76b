"""Which faults there are, what each may cost, and in which order they come. Pure."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

RECOVERY_SECONDS = 10.0
TAKEOVER_SECONDS = 7.0
"""After a replica's `kill -9`, until its partitions flow again."""
RAW_SECONDS = 4.0
"""After a plain client gets through again, while a node of a cluster stays lost, until every partition flows."""
OUTAGE_SECONDS = 15.0
"""... and in all, from the moment the node is lost."""


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
    takes_cluster: bool = False
    is_outage: bool = False
    """A node of a cluster is lost, and events must flow before it comes back."""
    is_silent: bool = False
    """... without a word; somebody must say which node it is."""


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
    Kind("producers-clock", "the producers' clocks an hour ahead or back"),
    Kind("consumers-killed", "the services behind RabbitMQ die with what they hold, and come back"),
)


def _outage(name: str, what: str, *, silent: bool) -> Kind:
    return Kind(name, what, takes_cluster=True, is_outage=True, is_silent=silent)


CLUSTER_KINDS = (
    _outage("leader-killed", "the leader of a partition killed (kill -9)", silent=False),
    _outage("leader-silent", "the leader of a partition stands still (SIGSTOP)", silent=True),
    _outage("follower-killed", "a follower of a partition killed", silent=False),
    _outage("follower-silent", "a follower of a partition stands still", silent=True),
    _outage("controller-killed", "Kafka's active controller killed", silent=False),
    _outage("controller-silent", "Kafka's active controller stands still", silent=True),
    _outage("coordinator-killed", "the group's coordinator killed", silent=False),
    _outage("coordinator-silent", "the group's coordinator stands still", silent=True),
    _outage("kafka-node-cut-off", "a leader reaches no other node of Kafka; clients reach it", silent=False),
    _outage("queue-leader-killed", "the node that leads a quorum queue killed", silent=False),
    _outage("queue-leader-silent", "the node that leads a quorum queue stands still", silent=True),
    _outage(
        "rabbitmq-node-cut-off", "the node that leads a quorum queue reaches no other; clients reach it", silent=False
    ),
    _outage("rabbitmq-node-unreachable", "one replica alone can't reach a node of RabbitMQ", silent=True),
    Kind(
        "kafka-node-hidden", "one replica alone can't reach a leader, beyond its session", zombies=1, takes_cluster=True
    ),
    Kind("kafka-rolling", "each node of Kafka stopped and started again, one after another", takes_cluster=True),
    Kind("rabbitmq-rolling", "each node of RabbitMQ stopped and started again, one after another", takes_cluster=True),
    Kind("partitions-reassigned", "a topic's partitions taken from their leaders, and given back", takes_cluster=True),
)
NAMES = tuple(kind.name for kind in (*KINDS, *CLUSTER_KINDS))


def named(name: str) -> Kind:
    """Return the kind of this name. Raises KeyError."""
    return {kind.name: kind for kind in (*KINDS, *CLUSTER_KINDS)}[name]


def order(kinds: Sequence[Kind], seed: int) -> Iterator[Kind]:
    """Yield faults without end: every kind once in an order drawn from the seed, then again in another."""
    chance = random.Random(seed)
    while True:
        yield from chance.sample(kinds, len(kinds))
