"""One turn of the control loop: report, judge, tell everyone who listens (the seed's observer broadcast)."""

from collections.abc import Callable

from proxy.congestion.collector import RouteStatistics
from proxy.congestion.detector import Verdict, judge
from proxy.settings import Detector

Observer = Callable[[Verdict], None]


class ControlLoop:
    """Statistics of every route, and who hears the verdicts on it."""

    def __init__(self, routes: list[str], classes: int, thresholds: Detector) -> None:
        self.statistics = {route: RouteStatistics(route, classes) for route in routes}
        """Where publications are counted, by route."""
        self._thresholds = thresholds
        self._observers: dict[str, list[Observer]] = {route: [] for route in routes}

    def observe(self, route: str, observer: Observer) -> None:
        """Tell `observer` every verdict on `route` from now on, in the order of joining."""
        self._observers[route].append(observer)

    def forget(self, route: str, observer: Observer) -> None:
        """Tell `observer` nothing more; one that was never told is passed over."""
        self._observers[route] = [one for one in self._observers[route] if one != observer]

    def turn(self) -> None:
        """Judge every route once; the caller decides when (interval or cron)."""
        for route, statistics in self.statistics.items():
            verdict = judge(statistics.report(), self._thresholds)
            for observer in self._observers[route]:
                observer(verdict)
