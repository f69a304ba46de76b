"""Events that the server publishes by itself, quick enough to outrun a bridge: so many a second, or a store of them."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.nakadi import views
from tests.nakadi.bus import Bus

TICK_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Load:
    """`rate` events a second over all event types in turn, each of about `size` bytes, for `seconds`."""

    names: Sequence[str]
    rate: float
    size: int
    seconds: float


class Generator:
    """Makes events that are told apart by `eid` and say when they were made."""

    def __init__(self, bus: Bus, clock: Callable[[], float], size: int) -> None:
        self._bus = bus
        self._clock = clock
        self._made = 0
        self._size = size
        self._turn = 0

    def publish(self, names: Sequence[str], count: int) -> None:
        """Publish so many events, spread over the partitions of the event types."""
        now = self._clock()
        places = [(name, number) for name in names for number in range(len(self._bus.event_types[name].partitions))]
        share, more = divmod(count, len(places))
        for place in range(len(places)):
            name, number = places[(self._turn + place) % len(places)]
            events = self._events(share + (place < more), now)
            if events:
                self._bus.append(name, number, events, now)
        self._turn += more

    def _events(self, count: int, now: float) -> list[bytes]:
        head = b'{"metadata":{"eid":"00000000-0000-4000-8000-'
        tail = f'","occurred_at":"{views.moment(now)}"}},"data":"'.encode()
        tail += b"x" * max(self._size - len(head) - 12 - len(tail) - 2, 0) + b'"}'
        first = self._made
        self._made += count
        return [b"%b%012x%b" % (head, number, tail) for number in range(first, first + count)]

    async def run(self, load: Load) -> None:
        """Publish at a rate until its time is over."""
        loop = asyncio.get_running_loop()
        began, done = loop.time(), 0
        while (passed := loop.time() - began) < load.seconds:
            due = int(passed * load.rate)
            if due > done:
                self.publish(load.names, due - done)
                done = due
            await asyncio.sleep(TICK_SECONDS)
