"""The few figures of a run by which policies are compared, simulated or real. Pure."""

from collections.abc import Sequence
from typing import Any

from proxy.simulation.figures import Figures, Judged
from proxy.simulation.scenario import Scenario
from proxy.simulation.trace import Trace

DIGITS = 4
"""Significant digits that are kept; a run says no more."""


def outcome(scenario: Scenario, trace: Trace, judged: Sequence[Judged]) -> dict[str, Any]:
    """Return the figures of one run, shares as shares and times in seconds; None where there was nothing to measure.

    `p1_p99` and `use` are judged where the scenario judges them, the worst window of several; else after the warm-up.
    """
    figures = Figures(scenario, trace)
    top, low = scenario.classes[0], scenario.classes[-1]
    its = {top, *(name for name, stream in scenario.streams.items() if stream.priority == top)}
    waits = [one.value for one in judged if one.expectation.figure in {f"{name}.consumed_p99" for name in its}]
    uses = [
        one.value for one in judged if one.at_least is not None and one.expectation.figure.partition(".")[0] == "use"
    ]
    settled = [one for one in judged if one.expectation.figure.startswith("settled_after.")]
    return {
        "p1_p99": _short(max(filter(None, waits), default=None) if waits else figures.value(f"{top}.consumed_p99")),
        "p1_goodput": _short(figures.value(f"{top}.goodput")),
        "use": _short(min(filter(None, uses), default=None) if uses else figures.value("use")),
        "p3_share": _short(figures.value(f"{low}.share")) if low != top else None,
        "queue_delay_p99": _short(figures.value("queue_delay_p99")),
        "nack_ratio": _short(figures.value("nack_ratio")),
        "settled": {one.expectation.figure.partition(".")[2]: _short(one.value) for one in settled},
        "lost": trace.lost,
        "expected": len(judged),
        "missed": [[one.expectation.figure, _short(one.value)] for one in judged if not one.holds],
    }


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{DIGITS}g}")
