"""What a route's gates, control and throttles are made of: what is alike before and after a change is kept; pure."""

from proxy.congestion.group import Rules
from proxy.settings import Cap, Route, Settings


def rules_of(route: Route) -> Rules:
    """Return what a route says of its queues."""
    return Rules(route.judged_by, group_min=route.group_min, untether=route.untether, tags=route.tagged)


def judge(route: Route) -> tuple[str, bool]:
    """Return who judges a route, and whether that is only watched."""
    return route.policy, route.shadow


def token_of(cap: Cap) -> tuple[bool, bool]:
    """Return what a gate of a cap can't change: whether its tokens are bytes, and whom it binds."""
    return cap.bytes is not None, cap.strict


def dividing(settings: Settings) -> tuple[str, float]:
    """Return what a divider is made of and can't change."""
    return settings.class_budget.catch_up.place, settings.class_budget.lowest_share


def judging(settings: Settings, name: str) -> tuple[object, ...]:
    """Return what the control of a route under `class_budget` goes by."""
    route = settings.routes[name]
    return (
        route.queue_names,
        route.law,
        rules_of(route),
        settings.queue_delays,
        settings.class_budget,
        settings.costs(name),
    )


def throttling(settings: Settings, name: str) -> tuple[object, ...]:
    """Return what the throttles of a route's event types, and what these lead to, are made of.

    Rates alone, and what finds them, are not.
    """
    route, classes = settings.routes[name], settings.classes.values()
    own: tuple[object, ...] = ()
    if route.policy == "per_type":
        own = settings.throttling.tick, *((one.increase, one.decrease, one.floor, one.ceiling) for one in classes)
    elif route.policy == "class_budget":
        tiers = settings.class_budget.catch_up, [one.catch_up for one in classes]
        own = *tiers, dividing(settings), settings.costs(name)
    cap = None if route.cap is None else (token_of(route.cap), dividing(settings))
    return route.policy, route.shadow, route.queues, cap, own
