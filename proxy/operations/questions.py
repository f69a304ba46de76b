"""The operator's four questions, answered in a sentence each: what is late, why, what may I drop, is it getting better.

Pure, from what the page and `tidegate top` are told, so that both say the same, of one replica or of several.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from proxy.config.items import listing

TREND_SECONDS = 60
"""Of the past, by which it is judged whether it gets better."""
_FEWEST_POINTS = 5
"""With less there is no trend."""
_STEADY = 0.01
"""A change of the lag within a minute that is no trend, as a share of it."""
_LEAST_TREND = 0.05
"""Events a second that are no trend: one more or less within a minute is in the nature of a count."""
_NAMED = 3
_MINUTE, _HOUR = 60, 3600


class Waiting(NamedTuple):
    """An event type of which something waits."""

    name: str
    priority: str
    awaits: str | None
    events: int
    """Its lag where that is known, else what is in its inbox."""


def late(classes: Mapping[str, Mapping[str, Any]], nearly_lost: Sequence[str] = ()) -> str:
    """Return what the log may soon drop, and which classes' oldest event waits for longer than it should.

    Classes are in the order of importance.
    """
    told = [
        *nearly_lost,
        *[
            f"{name}: {_events(one['lag'])} waiting, the oldest for {duration(one['lag_age_s'])}"
            for name, one in classes.items()
            if (one["lag_age_s"] or 0) > one["late_after_s"]
        ],
    ]
    if told:
        return "; ".join(told) + "."
    ages = [one["lag_age_s"] for one in classes.values() if one["lag_age_s"] is not None]
    if not ages:
        return "Not known yet."
    oldest = max(ages)
    return "Nothing." if not oldest else f"Nothing. The oldest event that waits is {duration(oldest)} old."


def why(
    routes: Mapping[str, Mapping[str, Any]],
    held: Sequence[Mapping[str, Any]],
    waiting: Sequence[Waiting],
    unread: Sequence[str] = (),
) -> str:
    """Return what holds events back: what is not read, a lane, a verdict, a person, or what most types wait for."""
    told = [*unread]
    told += [f"route {name}: its connection is {one['lane']['state']}" for name, one in routes.items() if _is_shut(one)]
    told += [
        f"route {name}: {one['verdict']['why']}"
        for name, one in routes.items()
        if _is_congested(one) and not one.get("shadow")
    ]
    if any(one.awaits == "rate" for one in waiting):
        told += [
            f"route {name}, a moment ago: {one['congested_lately']}"
            for name, one in routes.items()
            if one.get("congested_lately") and not (_is_shut(one) or _is_congested(one) or one.get("shadow"))
        ]
    told += [
        f"{listing([*one['types'], *one['classes'], *one.get('routes', [])])}: "
        f"{one.get('policy') or one['mode']} by {one['by']}"
        for one in held
        if one["mode"] != "run"
    ]
    watched = [
        f"route {name}, in shadow, holds nothing back, though {one['verdict']['why']}"
        for name, one in routes.items()
        if _is_congested(one) and one.get("shadow")
    ]
    if told:
        return "; ".join([*told, *watched]) + "."
    reasons = Counter(one.awaits for one in waiting if one.awaits)
    if not reasons:
        return "; ".join(watched or ["Nothing holds events back"]) + "."
    most = [
        f"{count} {'type waits' if count == 1 else 'types wait'} for {_FOR.get(it, it)}"
        for it, count in reasons.most_common(2)
    ]
    return "; ".join([*(watched or ["No route is congested"]), ", ".join(most)]) + "."


def droppable(classes: Mapping[str, Mapping[str, Any]], waiting: Iterable[Waiting]) -> str:
    """Return the least important class that waits, how much of all it holds, and the types that hold most of it."""
    lags = {name: one["lag"] or 0 for name, one in classes.items()}
    lowest = next((name for name in reversed(lags) if lags[name]), None)
    if lowest is None:
        return "Nothing waits."
    share = 100 * lags[lowest] / sum(lags.values())
    place = "the only class that waits" if share == 100 else "the least important class that waits"  # noqa: PLR2004
    of_it = sorted((one for one in waiting if one.priority == lowest and one.events), key=lambda one: -one.events)
    most = listing([f"{one.name} ({one.events:,})" for one in of_it[:_NAMED]])
    return f"{lowest}, {place}: {_events(lags[lowest])}, {share:.0f} % of all" + (f"; most in {most}." if most else ".")


def better(lags: Sequence[tuple[float, int]]) -> str:
    """Return whether the lag falls, from pairs of an instant in seconds and the lag of all classes, oldest first."""
    if len(lags) < _FEWEST_POINTS:
        return "Not known yet."
    last_at, last = lags[-1]
    first_at, first = next(point for point in lags if last_at - point[0] <= TREND_SECONDS)
    seconds = last_at - first_at
    if not last:
        return "Nothing waits."
    rate = (last - first) / seconds if seconds > 0 else 0.0
    if abs(rate) < _LEAST_TREND or abs(last - first) <= _STEADY * max(last, first):
        return f"It stays as it is: {_events(last)}."
    if rate > 0:
        return f"No: {_events(last)}, {rate:,.1f} more every second."
    return f"Yes: {_events(last)}, {-rate:,.1f} less every second; done in {duration(last / -rate)} if it goes on so."


def duration(seconds: float | None) -> str:
    """Return it in the units that suit it, like `0.4 s`, `3 min 20 s`, `2 h 5 min`."""
    if seconds is None:
        return "a time that is not known"
    if seconds < 10:  # noqa: PLR2004
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return f"{whole // _MINUTE} min {whole % _MINUTE} s"
    return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE} min"


def severity(route: Mapping[str, Any]) -> int:
    """Return how much a route holds back: 3 all, 2 what is over a verdict's rates, 1 what one just left, 0 nothing."""
    return 3 if _is_shut(route) else 2 if _is_congested(route) else 1 if route.get("congested_lately") else 0


def _is_shut(route: Mapping[str, Any]) -> bool:
    return bool(route["lane"]["state"] != "open")


def _is_congested(route: Mapping[str, Any]) -> bool:
    return not _is_shut(route) and bool(route["verdict"] and route["verdict"]["congested"])


def _events(count: int | None) -> str:
    if count is None:
        return "events"
    return "1 event" if count == 1 else f"{count:,} events"


_FOR = {
    "rate": "their turn at the rate that is allowed",
    "lane": "room on the connection",
    "lease": "the group's word",
    "outcomes": "confirms",
    "retry": "the pause after a nack, or a queue whose node is down",
    "commit": "a commit",
    "dead_letters": "dead letters to be taken",
    "restart": "a restart: they have stopped",
    "resume": "a person to resume them",
}
