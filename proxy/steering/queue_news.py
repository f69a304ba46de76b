"""Says what an operator must know of a route's queues: who lingers, rests or has gone, and who holds too much.

What consumers hold can be overtaken by nothing and is not counted as waiting, so a long prefetch is a delay that no
control can shorten; all that can be done is to say so.
"""

from math import isfinite

import structlog

from proxy.congestion.budget_verdict import BudgetVerdict
from proxy.congestion.group import Tether
from proxy.congestion.receiver import View

_say = structlog.get_logger("tidegate.queues")

LONG_HOLD = 0.2
"""Seconds of work at the consumers beyond which it is said; advised are 0.05."""
HELD_FOR = 10.0
"""Seconds for which it must be so: the broker's statistics are some seconds old."""
AGAIN = 3600.0
"""Seconds until the same is said again."""
_EFFECTS = {
    Tether.LINGER: "it holds up the whole route and rests in 5 s unless it moves",
    Tether.RESTING: "it does not count for 10 s; what it can't take is refused or shed",
    Tether.ACTIVE: "it counts again",
    Tether.ABSENT: "it has had no consumers for 5 s and does not count",
}


class QueueNews:
    """Observes the verdicts on one route."""

    def __init__(self) -> None:
        self._states: dict[str, Tether] = {}
        self._long_since: dict[str, float] = {}
        self._said_at: dict[str, float] = {}

    def on_verdict(self, verdict: BudgetVerdict) -> None:
        """Say what is new."""
        for queue, state in verdict.states.items():
            # At the start nobody has been seen yet.
            if queue in self._states and state is not self._states[queue]:
                say = _say.info if state is Tether.ACTIVE else _say.warning
                say("queue_" + state.value, route=verdict.route, queue=queue, effect=_EFFECTS[state])
        self._states = verdict.states
        for view in verdict.queues:
            self._weigh(verdict.route, view, verdict.reading.at)

    def _weigh(self, route: str, view: View, now: float) -> None:
        drain = view.estimate
        if view.unacked is None or drain is None or not drain.is_capacity or not drain.rate:
            return
        held = view.unacked * view.cost / drain.rate
        if held <= LONG_HOLD or not isfinite(held):
            self._long_since.pop(view.name, None)
            return
        since = self._long_since.setdefault(view.name, now)
        if now - since < HELD_FOR or now - self._said_at.get(view.name, -AGAIN) < AGAIN:
            return
        self._said_at[view.name] = now
        _say.warning(
            "prefetch_is_long",
            route=route,
            queue=view.name or None,
            unacked=view.unacked,
            seconds=round(held, 2),
            effect="events of every class wait so long at the consumers, the most important ones too",
            remedy="lower the consumers' prefetch: 50 ms of work for all of them together, one event each at least",
        )
