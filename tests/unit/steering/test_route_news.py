"""A route that stands says so once, and that it goes on."""

from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from proxy.congestion.class_budget import RouteBudget
from proxy.congestion.reading import QueueReading, Reading
from proxy.congestion.signs import Sign
from proxy.settings import ClassBudget
from proxy.steering.route_news import GRACE, RouteNews

IDLE = RouteBudget("r", (0.5, 0.08), ClassBudget()).judge(Reading(at=0.0, confirmed=(0, 0), waited=(False, False)))


def said(*steps: tuple[float, Sign]) -> list[str]:
    news = RouteNews()
    with capture_logs() as logs:
        for at, cause in steps:
            news.on_verdict(replace(IDLE, cause=cause, reading=replace(IDLE.reading, at=at)))
    assert {log["route"] for log in logs} <= {"r"}
    return [log["event"] for log in logs]


@pytest.mark.parametrize("cause", [Sign.NO_CONSUMERS, Sign.UNACKED, Sign.UNCONFIRMED])
def test_a_stop_is_said_once_and_that_it_is_over_when_it_lasts(cause: Sign) -> None:
    steps = [(0.0, Sign.NONE), (1.0, cause), (1.0 + GRACE, cause), (60.0, cause), (61.0, Sign.DEPTH), (62.0, Sign.NONE)]
    assert said(*steps) == ["route_stands", "route_goes_on"]
    again = [(70.0, cause), (70.0 + GRACE, cause)]
    assert said(*steps, *again) == ["route_stands", "route_goes_on", "route_stands"]


def test_nothing_is_said_when_a_stop_is_over_at_once_or_is_said_by_others() -> None:
    assert said((0.0, Sign.NO_CONSUMERS), (GRACE - 0.1, Sign.NO_CONSUMERS), (GRACE, Sign.NONE)) == []
    assert said((0.0, Sign.BLOCKED), (60.0, Sign.BLOCKED), (61.0, Sign.DEPTH), (90.0, Sign.DEPTH)) == []


def test_the_queues_that_nobody_consumes_are_named() -> None:
    budget, news = RouteBudget("r", (0.5, 0.08), ClassBudget()), RouteNews()
    with capture_logs() as logs:
        for tick in range(100):
            queue = QueueReading(ready=50, consumers=0, at=tick / 10, fresh_for=0.3)
            reading = Reading(at=tick / 10, queues=(queue,), names=("work",), confirmed=(0, 0), waited=(False, False))
            news.on_verdict(budget.judge(reading))
    assert [(log["event"], log["queues"]) for log in logs] == [("route_stands", ["work"])]
