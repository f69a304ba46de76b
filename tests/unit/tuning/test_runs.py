"""What came through: counted from all that was there, also what came before."""

from proxy.simulation.scenario import Scenario
from proxy.simulation.trace import Trace
from proxy.tuning.runs import through

SCENARIO = Scenario.model_validate(
    {
        "name": "made",
        "why": "by hand",
        "seconds": 20,
        "warm_up": 5,
        "queues": {"work": {"capacity": 100}},
        "routes": {"shop": {"queues": ["work"]}},
        "streams": {
            "campaign": {"priority": "P3", "rate": 0},
            "old": {"priority": "P3", "rate": {"backlog": 100, "age": "1h"}, "joins": "campaign"},
        },
        "expect": [{"figure": "use", "at_least": 0, "why": "so"}],
    }
)


def test_a_backlog_that_came_before_counts_as_there() -> None:
    trace = Trace(20.0)
    trace.offered["old"].add(0.0, 100)
    for at in range(20):
        trace.consumed["old"].add(at, 3_600.0)
    assert through(SCENARIO, trace, "P3") == 15 / 95


def test_nothing_came_through_when_nothing_was_there() -> None:
    assert through(SCENARIO, Trace(20.0), "P3") is None
