"""Says when a route under `class_budget` stands, and why: that it sends nothing then is by design, and easily missed.

A connection that is blocked is said by its lane. Each stop is said once it has lasted for `GRACE`, and when it ends.
"""

import structlog

from proxy.congestion.budget_verdict import BudgetVerdict
from proxy.congestion.signs import Sign

_say = structlog.get_logger("tidegate.queues")

GRACE = 3.0
"""Seconds that a stop may last unsaid. Larger: later; smaller: consumers that are restarted make noise."""
_STOPS = {
    Sign.NO_CONSUMERS: ("messages wait in its queues and nobody takes any", "start consumers of these queues"),
    Sign.UNACKED: (
        "its consumers take messages and acknowledge none",
        "look at the consumers; a finite prefetch bounds what they hold",
    ),
    Sign.UNCONFIRMED: (
        "RabbitMQ has not confirmed what was sent for far longer than ever",
        "look at RabbitMQ: disk, memory, members of its quorum queues",
    ),
}


class RouteNews:
    """Observes the verdicts on one route."""

    def __init__(self) -> None:
        self._cause = Sign.NONE
        self._since = 0.0
        self._is_said = False

    def on_verdict(self, verdict: BudgetVerdict) -> None:
        """Say what is new."""
        now = verdict.reading.at
        if verdict.cause is not self._cause:
            self._end(verdict.route, now)
            self._cause, self._since = verdict.cause, now
        if verdict.cause in _STOPS and not self._is_said and now - self._since >= GRACE:
            self._is_said = True
            why, remedy = _STOPS[verdict.cause]
            seen = verdict.reading
            queues = [
                seen.name(place)
                for place, queue in enumerate(seen.queues)
                if queue is not None and (queue.unacked_growing or (queue.ready and not queue.consumers))
            ]
            effect = "it sends nothing or next to nothing; events wait in the log"
            _say.warning("route_stands", route=verdict.route, queues=queues, why=why, effect=effect, remedy=remedy)

    def _end(self, route: str, now: float) -> None:
        if self._is_said:
            self._is_said = False
            _say.info("route_goes_on", route=route, after_s=round(now - self._since, 1))
