"""What is told of policies that are only watched: records, metrics. /state and `check` say of which routes."""

import asyncio
from collections.abc import Callable, Iterable, Mapping

import structlog
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from proxy import records
from proxy.steering.shadow import RouteShadow

_say = structlog.get_logger("tidegate.shadow")


class ShadowNews:
    """Records what every shadow would have held back. `interval` in seconds."""

    def __init__(
        self, shadows: Mapping[str, RouteShadow], write: Callable[[records.Record], None], interval: float
    ) -> None:
        self._shadows = shadows
        self._write = write
        self._interval = interval
        self._told_at = 0.0

    async def run(self) -> None:
        """Record every interval until cancelled; say of which routes nothing is held back, whenever these change."""
        self._told_at = asyncio.get_running_loop().time()
        said: list[str] = []
        while True:
            routes = list(self._shadows)
            if routes != said and routes:
                _say.warning(
                    "in_shadow",
                    routes=routes,
                    effect="their policy decides and records, and holds nothing back",
                    remedy="set `shadow: false` for it to be obeyed",
                )
            said = routes
            await asyncio.sleep(self._interval)
            for name, shadow in list(self._shadows.items()):
                self._tell(name, shadow)
                await asyncio.sleep(0)
            self._told_at = asyncio.get_running_loop().time()

    def finish(self) -> None:
        """Record what became of the last, unfinished interval."""
        for name, shadow in self._shadows.items():
            self._tell(name, shadow)

    def _tell(self, route: str, shadow: RouteShadow) -> None:
        interval = asyncio.get_running_loop().time() - self._told_at
        for one in shadow.watched():
            self._write(
                records.Shadow(
                    by="settings",
                    why=None,
                    type=one.event_type.name,
                    class_=one.event_type.priority,
                    interval_s=round(interval, 6),
                    route=route,
                    sent=one.sent,
                    held=one.held,
                    passed=one.passed,
                    waiting=one.waiting,
                    longest_s=round(one.longest, 3),
                )
            )


def shadow_families(shadows: Mapping[str, RouteShadow]) -> Iterable[CounterMetricFamily | GaugeMetricFamily]:
    """Yield what /metrics tells, by route and class."""
    labels = ["route", "class"]
    held = CounterMetricFamily("tidegate_shadow_held_events", "Would have waited, since the start.", labels=labels)
    waiting = GaugeMetricFamily("tidegate_shadow_waiting_events", "Would wait in the log.", labels=labels)
    for route, shadow in shadows.items():
        for name, (of_class, now) in shadow.by_class().items():
            held.add_metric([route, name], of_class)
            waiting.add_metric([route, name], now)
    yield from (held, waiting)
