"""Events and batches for tests."""

from proxy.bridge.broker import Address
from proxy.model import Event, Partition
from proxy.settings import RoutingKey

PARTITION = Partition("orders", 0)
ADDRESS = Address("exchange", RoutingKey(constant="queue"), "text/plain")


def event(number: int, *, value: bytes | None = b"x", timestamp_ms: int | None = 0) -> Event:
    """Return an event whose position is `p<number>`: positions are opaque, so tests use no ints."""
    return Event(f"p{number}", timestamp_ms, None, value, (), len(value or b""))


def events(start: int, end: int) -> list[Event]:
    """Return events numbered `start..end-1`."""
    return [event(number) for number in range(start, end)]
