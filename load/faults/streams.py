"""What flows during the faults: a few event types, one of every order, P1 to P3. Pure."""

from dataclasses import dataclass

from load.events import Bulk
from proxy.model import Order

PARTITIONS = 3
"""Of each topic, to begin with."""
MOST_PARTITIONS = 100
SIZE = 256
"""Bytes of an event."""
SEED = 5
EXCHANGE = "faults"
DEAD = "faults.dead"
"""Queue of dead letters."""


@dataclass(frozen=True)
class Stream:
    """One event type; its topic, queue and routing key are called like it."""

    name: str
    order: Order
    priority: str
    rate: float
    """Events a second; 0 for what is poured into the log at the beginning, or nothing."""


FLOWING = (
    # A partition of this one waits for each confirm: three nodes on a busy disk take a tenth of a second and more.
    Stream("faults.strict", Order.STRICT, "P1", 12.0),
    Stream("faults.ordered", Order.PARTITION, "P1", 150.0),
    Stream("faults.loose", Order.NONE, "P3", 120.0),
    Stream("faults.campaign", Order.PARTITION, "P3", 120.0),
)
VOLUME = Stream("faults.volume", Order.PARTITION, "P3", 0.0)
"""What stands in the log when the rounds begin; its flow is not watched, its events are counted at the end."""
STREAMS = (*FLOWING, VOLUME)
PAYLOAD = Bulk(SIZE, seed=SEED)


def place(stream: int, partition: int) -> int:
    """Return what stands in a payload for the partition of a stream, by its place in `STREAMS`."""
    return stream * MOST_PARTITIONS + partition


def at(place: int) -> tuple[int, int]:
    """Return stream and partition of a place."""
    return divmod(place, MOST_PARTITIONS)
