"""What a summary of the settings says of routes, and of the messages that they send."""

from collections.abc import Iterator, Mapping

from proxy.config.items import listing
from proxy.model import Origin
from proxy.settings import Route, Settings
from proxy.settings.parts import duration_text, size_text
from proxy.settings.route import DEFAULT_LAW

_NAMED = 5
_ORIGINS = {
    Origin.ID: "topic, partition, position and instant stand in the message id, no header repeats them (origin: id)",
    Origin.FULL: "topic, partition, position and timestamp are headers, too (origin: full)",
}


def route_line(name: str, route: Route, types: int) -> str:
    """Return one line on a route that so many event types take."""
    judged = listing(route.queue_names, _NAMED) or "no queues"
    if len(route.queues) > 1:
        judged += f" (judged by {route.judged_by})"
    window = f"{'up to ' if route.adapts else ''}{route.most_in_flight} events / {size_text(route.in_flight_bytes)}"
    exchange = route.exchange or "(default exchange)"
    return (
        f"route    {name}: {exchange}, {judged}, {_policy(route)}{_cap(route)}{_scaling(route)}{_priority(route)}, "
        f"in flight {window}, {types} types"
    )


def messages(routes: Mapping[str, Route]) -> Iterator[str]:
    """Yield what messages tell of where they come from; a line for each way that a route has, naming it if several."""
    ways: dict[tuple[Origin, str], list[str]] = {}
    for name, route in routes.items():
        ways.setdefault((route.origin, route.key), []).append(name)
    for (origin, key), names in ways.items():
        of_key = "the key is a header" if key == "header" else "the key is not sent"
        which = f"of {listing(names, _NAMED)}: " if len(ways) > 1 else ""
        yield f"messages {which}{_ORIGINS[origin]}; {of_key}"


def misled_letters(settings: Settings) -> Iterator[str]:
    """Warn of dead letters that go where events are worked on."""
    streams = {**settings.event_types, **{one.pattern: one for one in settings.patterns}}
    worked: set[tuple[str, str | None]] = {
        ("", queue) for route in settings.routes.values() for queue in route.queue_names
    }
    worked |= {(settings.routes[one.route].exchange, one.routing_key.constant) for one in streams.values()}
    misled: dict[str, list[str]] = {}
    for name, one in streams.items():
        to = one.dead_letter
        if to is not None and (to.exchange, to.routing_key) in worked:
            place = f"{to.exchange}:{to.routing_key}" if to.exchange else to.routing_key
            misled.setdefault(place, []).append(name)
    for place, names in misled.items():
        yield (
            f"event_types: dead letters of {listing(names, _NAMED)} go to {place}, where events are sent to be worked "
            "on, so its consumers get what could not be delivered; name a queue of its own in dead_letter"
        )


def _scaling(route: Route) -> str:
    if route.scaling is None:
        return ""
    unit, seconds = route.scaling.consumers_per_process, duration_text(route.scaling.work_off)
    whose = " of each queue" if route.scales_apart else ""
    return f", wanted consumers{whose} in multiples of {unit}, a backlog done in {seconds}"


def _priority(route: Route) -> str:
    if route.priorities:
        return f", message priority {listing(f'{name} {number}' for name, number in route.priorities.items())}"
    return "" if route.message_priority == "class" else f", message priority {route.message_priority}"


def _policy(route: Route) -> str:
    policy = route.policy if route.law == DEFAULT_LAW else f"{route.policy} by {route.law}"
    return f"{policy} in shadow (holds nothing back)" if route.shadow else policy


def _cap(route: Route) -> str:
    if route.cap is None:
        return ""
    rate = f"{route.cap.events:g} events" if route.cap.events is not None else size_text(route.cap.bytes or 0)
    return f", at most {rate}/s{' (strict)' if route.cap.strict else ''}"
