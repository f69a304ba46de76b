"""What no single part of a scenario can see: names that lead nowhere, figures that no run has."""

from collections.abc import Iterator

from proxy.config.items import listing
from proxy.config.words import nearest
from proxy.settings import DEFAULT_CLASSES
from proxy.simulation.scenario import Scenario

OF_CLASS = (
    "consumed_p50",
    "consumed_p99",
    "consumed_max",
    "bridge_p50",
    "bridge_p99",
    "goodput",
    "share",
    "late_until",
)
OF_ALL = (
    "use",
    "queue_delay_p50",
    "queue_delay_p99",
    "queue_delay_max",
    "nack_ratio",
    "sent_ratio",
    "lost",
    "truncated",
    "duplicates",
    "cuts",
    "balance",
    "group_requests",
    "group_bytes",
    "scalings",
    "consumers_most",
    "sent_most",
)
OF_QUEUE = ("use", "queue_delay_p50", "queue_delay_p99", "queue_delay_max", "scalings", "consumers_most")
AFTER = ("added_after", "settled_after", "stopped_after")


def contradictions(scenario: Scenario) -> Iterator[str]:
    """Yield every mistake that spans parts, in words."""
    if scenario.warm_up >= scenario.seconds:
        yield "warm_up is not shorter than seconds; nothing would be judged"
    yield from _wrong_streams(scenario)
    yield from _wrong_routes(scenario)
    yield from _wrong_events(scenario)
    yield from _wrong_figures(scenario)


def _wrong_streams(scenario: Scenario) -> Iterator[str]:
    classes, routes = scenario.classes, tuple(scenario.routes)
    for name, stream in scenario.streams.items():
        if stream.priority not in DEFAULT_CLASSES and "classes" not in scenario.settings:
            yield f"streams.{name}.class: allowed: {listing(DEFAULT_CLASSES)}, or others under settings.classes"
        if stream.route is None and len(routes) > 1:
            yield f"streams.{name}.route is missing; allowed: {listing(routes)}"
        elif stream.route is not None and stream.route not in routes:
            yield f"streams.{name}.route does not exist{nearest(stream.route, routes)} allowed: {listing(routes)}"
        yield from _wrong_join(scenario, name)
        if name in classes and name != stream.priority:
            yield f"streams.{name} is called like a class that is not its own; figures could mean either"


def _wrong_join(scenario: Scenario, name: str) -> Iterator[str]:
    stream = scenario.streams[name]
    if stream.joins is None:
        return
    earlier = list(scenario.streams)[: list(scenario.streams).index(name)]
    joined = scenario.streams[stream.joins] if stream.joins in earlier else None
    if joined is None or joined.joins is not None:
        yield f"streams.{name}.joins: {stream.joins} is no stream with topics of its own before it"
    elif (joined.priority, joined.types, joined.route, joined.cost, joined.size) != (
        stream.priority,
        stream.types,
        stream.route,
        stream.cost,
        stream.size,
    ):
        yield f"streams.{name}.joins: class, types, route, cost and size must be those of {stream.joins}"


def _wrong_routes(scenario: Scenario) -> Iterator[str]:
    classes, queues = scenario.classes, tuple(scenario.queues)
    for name, route in scenario.routes.items():
        for queue in sorted({*route.queues, *(queue for named in route.sends.values() for queue in named)}):
            if queue not in queues:
                yield f"routes.{name}: queue {queue} does not exist{nearest(queue, queues)} allowed: {listing(queues)}"
    for reads in (*scenario.replicas, *(event.reads for event in scenario.events)):
        for name in reads:
            if name not in classes:
                yield f"replicas: class {name} has no stream; allowed: {listing(classes)}"


def _wrong_events(scenario: Scenario) -> Iterator[str]:
    queues = tuple(scenario.queues)
    seen: set[str] = set()
    for number, event in enumerate(scenario.events):
        place = f"events[{number}]"
        if event.name in seen:
            yield f"{place}.name: {event.name} is taken; figures could mean either"
        seen.add(event.name)
        if event.at >= scenario.seconds:
            yield f"{place}.at is not before the end, second {scenario.seconds:g}"
        if event.what in {"capacity", "consumers", "foreign"}:
            if event.queue is None and len(queues) > 1:
                yield f"{place}.queue is missing; allowed: {listing(queues)}"
            elif event.queue is not None and event.queue not in queues:
                yield f"{place}.queue does not exist{nearest(event.queue, queues)} allowed: {listing(queues)}"


def _wrong_figures(scenario: Scenario) -> Iterator[str]:
    allowed = set(figure_names(scenario))
    costs = {stream.cost for stream in scenario.streams.values()}
    for number, expectation in enumerate(scenario.expect):
        if expectation.figure not in allowed and not expectation.figure.startswith("told."):
            near = nearest(expectation.figure, sorted(allowed))
            yield f"expect[{number}].figure: {expectation.figure} is unknown{near} allowed: {listing(sorted(allowed))}"
        if expectation.figure.startswith("settled_after") and len(costs) > 1:
            yield f"expect[{number}].figure: {expectation.figure} counts events; not where streams differ in cost"
        if (expectation.until or scenario.seconds) <= (expectation.since or scenario.warm_up):
            yield f"expect[{number}]: until is not after since"
    if scenario.control_off is None and not any(one.fails_with_control_off for one in scenario.expect):
        yield "mark a figure with fails_with_control_off: true, or say under control_off why none can fail"


def figure_names(scenario: Scenario) -> Iterator[str]:
    """Yield the name of every figure that a run of the scenario has; `told.CAUSE` besides."""
    for name in dict.fromkeys((*scenario.classes, *scenario.streams)):
        yield from (f"{name}.{figure}" for figure in OF_CLASS)
    yield from OF_ALL
    for name in scenario.queues:
        yield from (f"{figure}.{name}" for figure in OF_QUEUE)
    for event in scenario.events:
        yield from (f"{figure}.{event.name}" for figure in AFTER)
