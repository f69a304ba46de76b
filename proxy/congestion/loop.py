"""One turn of the control loop: report, judge, tell everyone who listens (the seed's observer broadcast)."""

from collections.abc import Callable, Collection

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
        self._classes = classes
        self._observers: dict[str, list[Observer]] = {route: [] for route in routes}

    def go_by(self, routes: Collection[str], thresholds: Detector) -> None:
        """Judge these routes by these thresholds from now on; those that were judged before count on."""
        self._thresholds = thresholds
        for route in self.statistics.keys() - set(routes):
            del self.statistics[route], self._observers[route]
        for route in routes:
            if route not in self.statistics:
                self.statistics[route] = RouteStatistics(route, self._classes)
                self._observers[route] = []

    def observe(self, route: str, observer: Observer) -> None:
        """Tell `observer` every verdict on `route` from now on, in the order of joining."""
        self._observers[route].append(observer)

    def forget(self, route: str, observer: Observer) -> None:
        """Tell `observer` nothing more; one that was never told is passed over, and a route that is gone."""
        if route in self._observers:
            self._observers[route] = [one for one in self._observers[route] if one != observer]

    def turn(self) -> None:
        """Judge every route once; the caller decides when (interval or cron)."""
        for route, statistics in list(self.statistics.items()):
            verdict = judge(statistics.report(), self._thresholds)
            for observer in self._observers[route]:
                observer(verdict)
