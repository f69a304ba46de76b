"""What `tidegate check` prints of settings that can be used: a summary, warnings, JSON. No secret is in any of them."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from proxy.config.items import listing, printable
from proxy.config.logs import log_lines, log_warnings
from proxy.config.retention_lines import keep, lifts
from proxy.config.route_lines import messages, misled_letters, route_line
from proxy.congestion import laws
from proxy.settings import AdminSettings, EventType, Route, Settings, Slo, TypePattern
from proxy.settings.parts import duration_text, size_text

_WILD = frozenset("*?")
_NAMED = 5
_RARE = 0.2
"""Seconds between two looks at a queue in use from which on it grows longer than any threshold."""


def as_json(settings: Settings) -> str:
    """Return every setting in force, inheritance resolved, durations in seconds, sizes in bytes, secrets masked."""
    return json.dumps(settings.model_dump(mode="json"), indent=2)


def describe(settings: Settings) -> str:
    """Return the settings in force in a dozen lines: where from, where to, what first, within which bounds."""
    every = _streams(settings)
    by_class = Counter(stream.priority for stream in every)
    by_route = Counter(stream.route for stream in every)
    lines = [
        *log_lines(settings.log),
        f"broker   {listing(settings.broker.hosts, _NAMED)}, virtual host {settings.broker.virtual_host}",
        f"types    {len(settings.event_types)} event types, {len(settings.patterns)} patterns",
        f"report   every {_reporting(settings)}",
    ]
    for name, route in settings.routes.items():
        lines.append(route_line(name, route, by_route[name]))
    lines += messages(settings.routes)
    for rank, (name, priority) in enumerate(settings.classes.items()):
        rule = f"+{priority.increase:g} x{priority.decrease:g} from {priority.floor:g} to {priority.ceiling:g}"
        delay = f", queue delay {_delay(settings.queue_delays[rank])}" if _has_budgets(settings) else ""
        costs = _costs([stream.cost for stream in every if stream.priority == name])
        behind = _catch_up(settings, name) if _has_budgets(settings) else ""
        lines.append(
            f"class    {rank + 1}. {name}: {rule}{delay}{behind}{costs}{_slo(priority.slo)}, {by_class[name]} types"
        )
    limits = settings.limits
    inbox = f"{limits.inbox_events} events / {size_text(limits.inbox_bytes)}"
    confirm = duration_text(limits.confirm_deadline)
    lines += [
        f"inbox    {inbox} per type, {size_text(limits.inboxes_bytes)} in all",
        f"event    at most {size_text(limits.event_bytes)}, confirmed within {confirm}",
        f"keep     {keep(settings)}",
        f"commit   every {duration_text(limits.commit_interval)}, {limits.uncommitted_events} ahead per partition",
        *_around(settings),
    ]
    return "\n".join(map(printable, lines))


def _around(settings: Settings) -> Iterator[str]:
    """Say who else is spoken to, where anybody is."""
    admin, notices, traces = settings.admin, settings.notices, settings.traces
    if admin.listen is None:
        yield "admin    none: no probes, no metrics, no page"
    else:
        proofs = ["a token"] * (admin.token is not None)
        proofs += ["a client's certificate"] * (admin.tls is not None and admin.tls.client_ca_file is not None)
        asked = f", to whoever shows {' or '.join(proofs)}" if proofs else ", to this host" * admin.is_local
        yield f"admin    {'https' if admin.tls else 'http'}://{admin.listen}{asked}"
    if notices.webhook is not None or notices.topic is not None:
        hook = notices.webhook
        to = f"topic {notices.topic}" if hook is None else f"{hook.shown}{', signed' if hook.key else ''}"
        yield f"notices  to {to}, of classes held back for {duration_text(notices.after)}"
    if traces.endpoint is not None:
        yield f"traces   to {traces.endpoint}, {traces.sample * 100:.6g} % of what no producer has sampled"


def warnings(settings: Settings) -> list[str]:
    """Return what is allowed and yet perhaps not meant, one sentence each."""
    found = [*_of_routes(settings), *_of_classes(settings), *_of_patterns(settings)]
    found += [
        f"law {name}: {place} of an installed package is never used: Tidegate's own has that name; rename it"
        for name, place in laws.shadowed().items()
    ]
    stopping = [_name(stream) for stream in _streams(settings) if stream.dead_letter is None]
    if stopping:
        which = listing(stopping, _NAMED)
        found.append(f"event_types: without `dead_letter` the first undeliverable event stops a type; so {which}")
    found += misled_letters(settings)
    found += log_warnings(settings.log, [_name(one) for one in _streams(settings) if one.routing_key.header])
    found += _of_admin(settings.admin)
    return list(map(printable, found))


def _of_admin(admin: AdminSettings) -> Iterator[str]:
    if admin.listen is None or admin.is_local:
        return
    if not admin.asks_proof:
        yield (
            f"admin.listen: whoever reaches {admin.listen} reads /metrics and /scaling, and gets nothing else; with "
            "admin.token or admin.tls.client_ca_file these need proof, too, and all is served"
        )
    elif admin.token is not None and admin.tls is None:
        yield "admin.token: goes in the clear; give admin.tls, unless something before it speaks TLS"


def _of_routes(settings: Settings) -> Iterator[str]:
    used = {stream.route for stream in _streams(settings)}
    for name, route in settings.routes.items():
        if not route.queues and route.policy == "class_budget":
            yield f"routes.{name}: no `queues`, therefore steered by nacks and latency only: its queues may grow long"
        elif not route.queues:
            yield f"routes.{name}: no `queues`, therefore nothing is known of their depth"
        if name not in used:
            yield f"routes.{name}: no event type takes it"
        if route.policy == "class_budget" and route.queues:
            yield from _of_judged_queues(name, route, [stream for stream in _streams(settings) if stream.route == name])
    yield from _of_rare_polls(settings)
    yield from _of_shared_queues(settings)
    unbudgeted = [
        _name(stream) for stream in _streams(settings) if stream.cost != 1 and not _is_charged(settings, stream)
    ]
    if unbudgeted:
        which = listing(unbudgeted, _NAMED)
        yield f"event_types: only `policy: class_budget` charges `cost`; it does nothing for {which}"


def _of_judged_queues(name: str, route: Route, streams: Sequence[EventType | TypePattern]) -> Iterator[str]:
    """Warn of what can't be known of the queues of a route, and of whom a strategy leaves alone."""
    if route.judged_by == "sum" or len(route.queues) == 1:
        if route.strategy is None and len(route.queues) > 1:
            yield (
                f"routes.{name}: nobody said what leads to its {len(route.queues)} queues, so they are judged together "
                "and one slow queue among them is noticed late; write {name: NAME, routing_keys: [...]}, or name a "
                "strategy if every event goes to all of them"
            )
        return
    if any(queue.routing_keys for queue in route.judged):
        unknown = [_name(one) for one in streams if one.routing_key.constant is None]
        if unknown:
            wants = ", nor how many consumers one wants" if route.scales_apart else ""
            yield (
                f"routes.{name}: {listing(unknown, _NAMED)} take their routing key from each event, so what goes to "
                f"which queue is not known{wants}; they are counted for every queue, whose delay is then taken for less"
            )
    lost = [_name(one) for one in streams if not route.way(_name(one), one.routing_key)]
    if lost:
        yield f"routes.{name}: no queue says that it takes {listing(lost, _NAMED)}; nothing is known of their delay"
    if route.strategy == "max" or route.untether or route.strategy == "tagged":
        wants = "; how many consumers one that may do so wants is not known" if route.scales_apart else ""
        yield (
            f"routes.{name}: a queue that does not rule grows to its bound; with reject-publish it then nacks every "
            f"event, also those for the others: give it a message TTL or drop-head{wants}"
        )


def _of_rare_polls(settings: Settings) -> Iterator[str]:
    """Warn of depths that come too rarely for anyone to be steered by."""
    queues = {
        queue for route in settings.routes.values() if route.policy == "class_budget" for queue in route.queue_names
    }
    broker = settings.broker
    if queues and broker.depth_interval > _RARE:
        every, most = duration_text(broker.depth_interval), duration_text(_RARE)
        yield f"broker.depth_interval: {every} is too long to keep queues short; class_budget wants {most} at most"
    elif queues and broker.depth_polls * _RARE < 1:
        yield f"broker.depth_polls: {broker.depth_polls} a second for all queues are too few to keep any of them short"


def _of_shared_queues(settings: Settings) -> Iterator[str]:
    """Warn of queues whose drain rate a route takes for less than it is, as it can't see what another route sends."""
    takers: dict[str, list[str]] = {}
    for name, route in settings.routes.items():
        for queue in dict.fromkeys(route.queue_names):
            takers.setdefault(queue, []).append(name)
    shared: dict[tuple[str, ...], list[str]] = {}
    for queue, names in takers.items():
        if len(names) > 1 and any(settings.routes[name].policy == "class_budget" for name in names):
            shared.setdefault(tuple(names), []).append(queue)
    for routes, queues in shared.items():
        which = listing(queues, _NAMED)
        yield (
            f"routes: {listing(routes, _NAMED)} name the same queues: {which}; class_budget then takes their consumers "
            "for slower than they are and sends less"
        )


def _of_classes(settings: Settings) -> Iterator[str]:
    for (high, above), (low, below) in pairwise(settings.classes.items()):
        if above.increase < below.increase or above.decrease < below.decrease:
            yield f"classes.{high}: grows slower or is cut deeper than {low}, which is less important"
    top, own = next(iter(settings.classes.items()))
    if own.catch_up and "catch_up" in own.model_fields_set:
        yield f"classes.{top}: `catch_up: true` does nothing: what is old of the most important class goes as ever"
    yield from lifts(settings)
    if not _has_budgets(settings):
        if "catch_up" in settings.class_budget.model_fields_set:
            yield "class_budget.catch_up: no route has `policy: class_budget`, which alone looks for what is old"
        return
    for (high, above_delay), (low, below_delay) in pairwise(zip(settings.classes, settings.queue_delays, strict=True)):
        if above_delay < below_delay:
            delays = f"{_delay(above_delay)} is below {_delay(below_delay)} of {low}"
            yield f"classes.{high}: its queue delay of {delays}, which is less important and would give way later"


def _of_patterns(settings: Settings) -> Iterator[str]:
    patterns = [entry.pattern for entry in settings.patterns]
    for place, later in enumerate(patterns):
        earlier = [pattern for pattern in patterns[:place] if overlap(pattern, later)]
        if earlier:
            yield f"event_types: topics that match {later} and an earlier pattern go to it: {listing(earlier, _NAMED)}"


def overlap(first: str, second: str) -> bool:
    """Tell whether some topic matches both patterns."""
    if _apart(first, second) or _apart(first[::-1], second[::-1]):
        return False
    # reach: places of `second` up to which some common text of the part of `first` read so far can go
    reach = _past_stars({0}, second)
    for sign in first:
        if sign == "*":
            reach = set(range(min(reach), len(second) + 1)) if reach else reach
            continue
        step = set()
        for place in reach:
            if place < len(second) and second[place] == "*":
                step.add(place)
            elif place < len(second) and (sign == "?" or second[place] in {"?", sign}):
                step.add(place + 1)
        reach = _past_stars(step, second)
    return len(second) in reach


def _past_stars(reach: set[int], pattern: str) -> set[int]:
    past = set(reach)
    for place in sorted(reach):
        end = place
        while end < len(pattern) and pattern[end] == "*":
            end += 1
            past.add(end)
    return past


def _apart(first: str, second: str) -> bool:
    """Tell whether the patterns differ before either has a wild character: quick, and true of most pairs."""
    for one, other in zip(first, second, strict=False):
        if one in _WILD or other in _WILD:
            return False
        if one != other:
            return True
    return False


def _is_charged(settings: Settings, stream: EventType | TypePattern) -> bool:
    return settings.routes[stream.route].policy == "class_budget"


def _catch_up(settings: Settings, priority: str) -> str:
    tier = settings.class_budget.catch_up
    if tier.after is None or not settings.catches_up(priority):
        return ""
    behind = "everything" if tier.place == "last" else "what is live"
    return f", older than {duration_text(tier.after)} behind {behind}"


def _slo(slo: Slo | None) -> str:
    if slo is None:
        return ""
    return f", slo {slo.share * 100:.6g} % within {duration_text(slo.within)} of {slo.judges} time"


def _has_budgets(settings: Settings) -> bool:
    return any(route.policy == "class_budget" for route in settings.routes.values())


def _costs(costs: Sequence[float]) -> str:
    if not costs or set(costs) == {1.0}:
        return ""
    return f", cost {min(costs):g}" + (f" to {max(costs):g}" if max(costs) > min(costs) else "")


def _delay(seconds: float) -> str:
    return duration_text(round(seconds, 3))


def _streams(settings: Settings) -> list[EventType | TypePattern]:
    return [*settings.event_types.values(), *settings.patterns]


def _name(stream: EventType | TypePattern) -> str:
    return stream.name if isinstance(stream, EventType) else stream.pattern


def _reporting(settings: Settings) -> str:
    period = settings.statistics.period
    return f"cron {settings.statistics.cron}" if period is None else duration_text(period)
