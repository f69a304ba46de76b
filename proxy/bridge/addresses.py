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
