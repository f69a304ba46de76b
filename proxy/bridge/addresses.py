"""Where events of a type go, by what their route says."""

from proxy.bridge.broker import Address
from proxy.bridge.shared import Shared
from proxy.settings import EventType, Route


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


def queues_of(event_type: EventType, route: Route) -> tuple[str, ...]:
    """Return the queues to which events of a type may go, as far as the settings tell; none if they don't."""
    key = event_type.routing_key
    if not route.exchange and key.constant is not None:
        return (key.constant,)
    return route.way(event_type.name, key)
