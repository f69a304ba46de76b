"""What the congestion detector says of each route: the last of it for /metrics, and as records."""

from collections.abc import Callable
from math import isinf

from proxy import records
from proxy.congestion.budget_verdict import BudgetVerdict
from proxy.congestion.detector import Verdict
from proxy.congestion.group import Tether
from proxy.settings import Settings


class Verdicts:
    """Observes every route's control."""

    def __init__(self, settings: Settings, record: Callable[[records.Record], None]) -> None:
        self.last: dict[str, Verdict] = {}
        """Of each route that the statistics collector reports on."""
        self.last_of_budgets: dict[str, BudgetVerdict] = {}
        """Of each route under `class_budget`."""
        self._recorded: dict[str, BudgetVerdict] = {}
        """... that was recorded."""
        self._p50: dict[str, float | None] = {}
        """Publish latency in seconds that the collector reported last of each route under `class_budget`."""
        self._settings = settings
        self._record = record

    def go_by(self, settings: Settings) -> None:
        """Record what these settings say beside the verdicts from now on."""
        self._settings = settings

    def forget(self, route: str) -> None:
        """Keep no verdict on a route that is judged otherwise from now on, or is gone."""
        self.last.pop(route, None)
        self.last_of_budgets.pop(route, None)
        self._recorded.pop(route, None)
        self._p50.pop(route, None)

    def on_verdict(self, verdict: Verdict) -> None:
        """Record a verdict with what it was seen in, so that it can be replayed."""
        self.last[verdict.route] = verdict
        seen, thresholds = verdict.statistics, self._settings.detector
        self._record(
            records.Verdict(
                route=verdict.route,
                congested=verdict.congested,
                cause=verdict.cause.value,
                p50_us=None if seen.p50 is None else int(seen.p50 * 1e6),
                errors=seen.errors,
                samples=seen.samples,
                threshold_us=int(thresholds.publish_latency_p50 * 1e6),
                threshold_errors=thresholds.publish_errors,
                min_samples=thresholds.min_samples,
            )
        )

    def on_statistics(self, verdict: Verdict) -> None:
        """Keep what the collector has seen of a route that another loop judges."""
        self._p50[verdict.route] = verdict.statistics.p50

    def on_budget_verdict(self, verdict: BudgetVerdict) -> None:
        """Record a verdict of a control tick when it says something new, and once per route interval."""
        before = self._recorded.get(verdict.route)
        self.last_of_budgets[verdict.route] = verdict
        interval = self._settings.metric_log.route_interval
        is_new = before is None or _said(verdict) != _said(before) or verdict.cuts
        if before is not None and not is_new and verdict.reading.at - before.reading.at < interval:
            return
        self._recorded[verdict.route] = verdict
        seen, then = verdict.reading, before.reading if before is not None else None
        errors = seen.failed - (then.failed if then is not None else 0)
        confirmed = sum(seen.confirmed) - (sum(then.confirmed) if then is not None else 0)
        classes = list(self._settings.classes)
        self._record(
            records.Verdict(
                route=verdict.route,
                congested=verdict.congested,
                cause=verdict.cause.value,
                p50_us=_in_us(self._p50.get(verdict.route)),
                errors=errors,
                samples=confirmed + errors,
                cuts=verdict.cuts,
                hot=[name for name, is_hot in zip(classes, verdict.hot, strict=True) if is_hot],
                queue_delay_us=_in_us(verdict.delay),
                drain_rate=round(verdict.drain.rate, 3),
                depth=None if verdict.delay is None else seen.ready,
                depth_cost=None if verdict.delay is None or verdict.is_even else round(verdict.waiting, 3),
                rates={
                    name: round(rate, 3) for name, rate in zip(classes, verdict.rates, strict=True) if not isinf(rate)
                },
                ruled_by=verdict.ruled_by,
                queues={view.name: _in_us(view.delay) for view in verdict.queues if view.name} or None,
                unbound={name: state.value for name, state in verdict.states.items() if state is not Tether.ACTIVE}
                or None,
            )
        )


def _said(verdict: BudgetVerdict) -> tuple[object, ...]:
    """Return what makes a verdict another one; which queue rules changes too often to be news while all is well."""
    ruled_by = verdict.ruled_by if any(verdict.hot) else None
    return verdict.congested, verdict.cause, verdict.hot, ruled_by, verdict.states


def _in_us(seconds: float | None) -> int | None:
    return None if seconds is None or isinf(seconds) else int(seconds * 1e6)
