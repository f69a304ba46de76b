"""What is said of queues, and how often."""

from collections.abc import MutableMapping
from dataclasses import replace
from typing import Any

from structlog.testing import capture_logs

from proxy.congestion.budget_verdict import BudgetVerdict
from proxy.congestion.class_budget import RouteBudget
from proxy.congestion.drain_rate import Drain
from proxy.congestion.group import Tether
from proxy.congestion.reading import Reading
from proxy.settings import ClassBudget
from proxy.steering.queue_news import AGAIN, HELD_FOR, QueueNews

IDLE = RouteBudget("r", (0.5, 0.08), ClassBudget()).judge(Reading(at=0.0, confirmed=(0, 0), waited=(False, False)))


def seen(at: float, *, unacked: int | None = None, is_capacity: bool = True, **states: Tether) -> BudgetVerdict:
    drain = Drain(300.0, 300.0, (300.0, 0.0), 0.0, is_capacity=is_capacity)
    view = replace(IDLE.queues[0], name="work", estimate=drain, unacked=unacked)
    return replace(IDLE, queues=(view,), states=states, reading=replace(IDLE.reading, at=at))


def said(*verdicts: BudgetVerdict) -> list[MutableMapping[str, Any]]:
    news = QueueNews()
    with capture_logs() as logs:
        for verdict in verdicts:
            news.on_verdict(verdict)
    return logs


def test_each_step_is_announced_once_when_a_queue_lingers_rests_and_comes_back() -> None:
    steps = [Tether.ACTIVE, Tether.LINGER, Tether.LINGER, Tether.RESTING, Tether.ACTIVE, Tether.ABSENT]
    logs = said(*(seen(float(at), work=state) for at, state in enumerate(steps)))
    assert [(log["event"], log["queue"], log["log_level"]) for log in logs] == [
        ("queue_linger", "work", "warning"),
        ("queue_resting", "work", "warning"),
        ("queue_active", "work", "info"),
        ("queue_absent", "work", "warning"),
    ]


def test_nothing_is_announced_when_a_queue_is_seen_for_the_first_time() -> None:
    assert said(seen(0.0, work=Tether.ABSENT)) == []


def test_a_second_of_work_at_the_consumers_is_said_with_its_length_and_a_remedy_once_an_hour() -> None:
    steps = [0.0, HELD_FOR, HELD_FOR + 5, HELD_FOR + AGAIN - 1, HELD_FOR + AGAIN]
    logs = said(*(seen(at, unacked=300) for at in steps))
    assert [(log["event"], log["seconds"], log["unacked"]) for log in logs] == [("prefetch_is_long", 1.0, 300)] * 2
    assert "prefetch" in logs[0]["remedy"]


def test_nothing_is_said_of_the_prefetch_when_it_is_short_not_known_or_not_known_to_last() -> None:
    assert said(seen(0.0, unacked=30), seen(60.0, unacked=30)) == []
    assert said(seen(0.0), seen(60.0)) == []
    assert said(seen(0.0, unacked=300, is_capacity=False), seen(60.0, unacked=300, is_capacity=False)) == []
    assert said(seen(0.0, unacked=300), seen(5.0, unacked=30), seen(HELD_FOR + 1, unacked=300)) == []


def test_what_consumers_hold_is_long_by_its_cost_and_not_by_its_number() -> None:
    dear = [
        replace(one, queues=(replace(one.queues[0], cost=10.0),))
        for one in (seen(0.0, unacked=30), seen(60.0, unacked=30))
    ]
    assert [log["seconds"] for log in said(*dear)] == [1.0]
