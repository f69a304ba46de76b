"""What a process says of its routes and of itself, and what is advised."""

from collections.abc import Iterator, Mapping

from load.metric_fleet.fleet import Fleet
from load.metric_fleet.flow import Flow
from load.metric_fleet.group import Life
from load.metric_fleet.happenings import BY
from load.metric_fleet.kinds import CLASSES, ROUTES
from load.metric_fleet.samples import Pools
from load.metric_fleet.slo import PROMISES
from load.metric_fleet.tally import Tally, buckets
from proxy import records
from proxy.congestion.buckets import DIGITS, HIGHEST_US, LOWEST_US
from proxy.records import Layout, RouteInterval, RoutePlan, Start

VERSION = "0.1.0"
"""Of Tidegate, as every process of the fleet says."""
_STATES = {"blocked": "blocked", "unconfirmed": "lost"}


def start_record() -> Start:
    """Return the first record of a process."""
    return Start(
        version=VERSION,
        layout=Layout(unit="us", lowest=LOWEST_US, highest=HIGHEST_US, digits=DIGITS),
        classes=list(CLASSES),
        routes={route.name: RoutePlan(policy=route.policy, queues=list(route.queues)) for route in ROUTES},
        slos=PROMISES,
    )


def route_intervals(
    flow: Flow, of_routes: Mapping[str, Tally], at: int, interval_s: float, pools: Pools
) -> Iterator[RouteInterval]:
    """Yield the record of each route at an instant."""
    for route in ROUTES:
        tally, one = of_routes[route.name], flow.episode_at(route.name, at)
        is_congested = one is not None and one.start_ms <= at < one.end_ms
        consumers, drain = flow.capacity(route.name, at)
        cause = one.cause if one is not None and is_congested else "none"
        delay_us = one.delay_us if one is not None and is_congested else 0
        depths = dict.fromkeys(route.queues, 0 if cause == "latency" else 2)  # confirms may be slow, and nothing waits
        ruling = one.ruled_by if one is not None and one.ruled_by else route.queues[0]
        depths[ruling] += round(drain * delay_us / 1e6)
        yield RouteInterval(
            interval_s=interval_s,
            route=route.name,
            state=_STATES.get(cause, "open"),
            in_flight=37,
            confirmed=tally.confirmed,
            nacked=tally.nacked,
            unknown=tally.unknown,
            undeliverable=tally.dead_lettered.total(),
            depth=sum(depths.values()),
            consumers=0 if cause == "no_consumers" else consumers,
            queues=dict(depths),
            publish_us=buckets(tally.publish, pools),
        )


def advice(fleet: Fleet, life: Life, at: int) -> Iterator[records.Record]:
    """Yield what a process advises once a minute: consumers wanted, retention near, what a shadow would have held."""
    for route in ROUTES:
        congested = [one for one in fleet.flow.episodes[route.name] if one.start_ms <= at < one.end_ms]
        consumers, drain = fleet.flow.capacity(route.name, at)
        yield records.Scaling(
            route=route.name, queue=None, wanted=consumers * (2 if congested else 1), consumers=consumers,
            drain_rate=drain, demand_rate=drain * (1.6 if congested else 0.7), why="more comes than goes",
        )  # fmt: skip
    kind = fleet.kinds[0]
    yield records.Retention(
        type=kind.name, topic=kind.topic, partition=life.replica % kind.partitions, left_s=4_200.0, lag=1_200,
        lifted_to=None,
    )  # fmt: skip
    yield records.Shadow(
        by=BY, why=None, type=kind.name, interval_s=60.0, route=kind.route, sent=60, held=at // 1000 % 7
    )  # fmt: skip
