"""The congestion detector: statistics against configured thresholds, one binary verdict per route.

The seed's rule (Zalando, 2024-04-22): congested when the P50 publish latency is above its threshold OR the publish
errors are above theirs. Ours beside it: with too few samples nothing is said.
"""

from dataclasses import dataclass
from enum import StrEnum

from proxy.congestion.collector import Statistics
from proxy.settings import Detector


class Cause(StrEnum):
    """What a verdict rests on."""

    NONE = "none"
    LATENCY = "latency"
    ERRORS = "errors"
    BOTH = "latency+errors"
    TOO_FEW_SAMPLES = "too_few_samples"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What every throttle of a route is told, with what it was seen in."""

    route: str
    congested: bool | None
    """None: nothing is said, every batch size stays."""
    cause: Cause
    statistics: Statistics


def judge(statistics: Statistics, thresholds: Detector) -> Verdict:
    """Return the verdict on one route's statistics."""
    if statistics.samples < thresholds.min_samples:
        return Verdict(statistics.route, None, Cause.TOO_FEW_SAMPLES, statistics)
    is_slow = statistics.p50 is not None and statistics.p50 > thresholds.publish_latency_p50
    has_errors = statistics.errors > thresholds.publish_errors
    cause = {
        (False, False): Cause.NONE,
        (True, False): Cause.LATENCY,
        (False, True): Cause.ERRORS,
        (True, True): Cause.BOTH,
    }[is_slow, has_errors]
    return Verdict(statistics.route, is_slow or has_errors, cause, statistics)
