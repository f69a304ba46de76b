"""A plain scenario: one queue that takes 100 a second, orders at 20."""

from proxy.simulation.scenario import Expectation, Queue, RouteIn, Scenario, Stream

ORDERS = Stream(priority="P1", rate=20.0)


def plain(*expected: Expectation, why: str = "For a test.", streams: dict[str, Stream] | None = None) -> Scenario:
    """Return one of ten seconds, the first to warm up."""
    return Scenario(
        name="plain",
        why=why,
        seconds=10,
        warm_up=1,
        queues={"work": Queue(capacity=100)},
        routes={"shop": RouteIn(queues=("work",))},
        streams=streams or {"orders": ORDERS},
        expect=expected,
    )
