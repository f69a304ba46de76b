"""The seed's AIMD: one batch size per event type, coefficients by class (`policy: per_type`).

Source: Zalando, "Enhancing Distributed System Load Shedding with TCP Congestion Control Algorithm", 2024-04-22.
On "not congested" `size += increase`, on "congested" `size *= decrease`; nothing else: no slow start, no idle guard,
no memory. A real number, kept between floor and ceiling. Example P3 (+5, x0.4) from 20: congested 8, then 13.
"""

from proxy.congestion.detector import Verdict
from proxy.settings import PriorityClass


class AimdBatchSize:
    """Batch size of one event type, in events per tick; starts at the class's increase."""

    unit = "events a tick, of one event type"

    def __init__(self, coefficients: PriorityClass, value: float | None = None) -> None:
        """Make one that begins at a `value` found before, as far as the class allows it."""
        found = coefficients.increase if value is None else value
        self.value = min(max(found, coefficients.floor), coefficients.ceiling)
        self._coefficients = coefficients

    def on_verdict(self, verdict: Verdict) -> None:
        """Grow by the class's increase, shrink by its decrease, stay when nothing was said."""
        if verdict.congested is None:
            return
        own = self._coefficients
        changed = self.value * own.decrease if verdict.congested else self.value + own.increase
        self.value = min(max(changed, own.floor), own.ceiling)
