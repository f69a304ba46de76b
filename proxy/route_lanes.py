"""The lanes of the routes, each run while a route is in force that leads over it, or events are still out on it."""

from collections.abc import Collection, Mapping

from proxy.bridge.broker import Lane, Lanes
from proxy.settings import Route
from proxy.tasks import Running, Tasks


class RouteLanes:
    """Runs them as `tasks`; without a `maker` there are never others."""

    def __init__(self, lanes: Mapping[str, Lane], maker: Lanes | None, tasks: Tasks) -> None:
        self.of: dict[str, Lane] = dict(lanes)
        """By route, of those in force."""
        self._maker = maker
        self._tasks = tasks
        self._running: dict[Lane, Running] = {}
        self._runs = False

    def begin(self) -> None:
        """Run them from now on."""
        self._runs = True
        for name, lane in self.of.items():
            if lane not in self._running:
                self._running[lane] = self._tasks.spawn(lane.run(), f"lane {name}")

    def go_by(self, routes: Mapping[str, Route]) -> None:
        """Have a lane for each of these routes; those of routes that are gone run until `leave`."""
        if self._maker is None:
            return
        found = self._maker.lanes(routes)
        self.of.clear()
        self.of.update(found)
        if self._runs:
            self.begin()

    def leave(self, used: Collection[Lane]) -> None:
        """End those that no route leads over, and nobody `used` any more."""
        kept = {*self.of.values(), *used}
        for lane in [lane for lane in self._running if lane not in kept]:
            self._tasks.retire(self._running.pop(lane))
