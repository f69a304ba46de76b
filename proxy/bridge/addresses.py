"""Where events of a type go, by what their route says."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from proxy.bridge.broker import Address, Lane
from proxy.bridge.returned import Place, Places
from proxy.bridge.shared import Shared
from proxy.model import Event
from proxy.settings import EventType, Route, RoutingKey


def address_of(event_type: EventType, rank: int, route: Route, around: Shared) -> Address:
    """Return where events of a type go on a route; `rank` is the place of their class."""
    below = around.classes - 1 - rank
    return Address(
        route.exchange,
        event_type.routing_key,
        event_type.content_type,
        priority=route.priority_of(event_type.priority, below=below, alone=around.has_one_class),
        origin=route.origin,
        carries_key=route.key == "header",
    )


def key_of(source: RoutingKey, event: Event) -> bytes | None:
    """Return what an event is routed by, of its own; the last header counts. None if there is no such header."""
    if source.header is None:
        return event.key or b""
    found = [value for name, value in event.headers if name == source.header]
    return found[-1] if found else None


class Behind:
    """The queues to which events of a type may go over a route and its lane, as far as the settings tell."""

    def __init__(self, event_type: EventType, route: Route, lane: Lane) -> None:
        self.is_direct = not route.exchange
        """Each key names a queue."""
        self._key = event_type.routing_key
        self._lane = lane
        queues = route.way(event_type.name, self._key)
        if self.is_direct and self._key.constant is not None:
            queues = (self._key.constant,)
        self._places = self._places_of(queues)

    def runs(self, events: Sequence[Event], start: int, end: int) -> Iterator[tuple[int, int, Places]]:
        """Yield where neighbours of `events[start:end]` begin and end that may go to the same queues, and to which."""
        if not self.is_direct or self._key.constant is not None:
            yield start, end, self._places
            return
        for key, run in groupby(range(start, end), lambda index: key_of(self._key, events[index])):
            numbers = list(run)
            yield numbers[0], numbers[-1] + 1, self._places_of([key.decode(errors="replace")] if key else [])

    def _places_of(self, queues: Iterable[str]) -> Places:
        return tuple([Place(self._lane, queue) for queue in queues])
