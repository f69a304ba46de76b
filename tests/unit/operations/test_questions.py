"""The operator's four questions are answered in sentences that the figures bear out."""

from typing import Any

import pytest

from proxy.operations import questions
from proxy.operations.questions import Waiting


def a_class(lag: int | None, age: float | None) -> dict[str, Any]:
    return {"lag": lag, "lag_age_s": age, "late_after_s": 5.0}


def a_route(state: str = "open", *, congested: bool = False, shadow: bool = False) -> dict[str, Any]:
    verdict = {"congested": congested, "why": "its queue is long"}
    return {"lane": {"state": state}, "verdict": verdict, "shadow": shadow}


@pytest.mark.parametrize(
    ("classes", "said"),
    [
        ({"P1": a_class(1, 0.25), "P3": a_class(1234, 200)}, "P3: 1,234 events waiting, the oldest for 3 min 20 s."),
        ({"P1": a_class(1, 0.25)}, "Nothing. The oldest event that waits is 0.2 s old."),
        ({"P1": a_class(0, 0.0)}, "Nothing."),
        ({"P1": a_class(None, None)}, "Not known yet."),
    ],
)
def test_what_is_late_is_said_by_class_when_its_oldest_event_waits_too_long(classes: Any, said: str) -> None:
    assert questions.late(classes) == said


def test_what_the_log_may_drop_is_said_first_and_whatever_else_is_late() -> None:
    near = ["brand: the log may drop it in 1 min 49 s, unsent"]
    assert questions.late({"P1": a_class(0, 0.0)}, near) == f"{near[0]}."
    assert questions.late({"P3": a_class(5, 9.0)}, near) == f"{near[0]}; P3: 5 events waiting, the oldest for 9.0 s."


def test_what_is_not_read_is_said_before_what_holds_back_when_a_topic_is_missing() -> None:
    routes = {"r": a_route(congested=True)}
    assert questions.why({"r": a_route()}, [], [], ["orders is not read"]) == "orders is not read."
    assert questions.why(routes, [], [], ["orders is not read"]) == "orders is not read; route r: its queue is long."


@pytest.mark.parametrize(
    ("routes", "held", "waiting", "said"),
    [
        ({"r": a_route("lost", congested=True)}, [], [], "route r: its connection is lost."),
        ({"r": a_route(congested=True), "s": a_route()}, [], [], "route r: its queue is long."),
        ({"r": a_route("lost", shadow=True)}, [], [], "route r: its connection is lost."),
        ({"r": a_route(shadow=True)}, [], [], "Nothing holds events back."),
        ({"r": a_route()}, [("pause", "P3")], [], "P3: pause by ann."),
        ({"r": a_route()}, [("run", "P3")], [Waiting("a", "P3", "commit", 3)],
         "No route is congested; 1 type waits for a commit."),
        ({"r": a_route()}, [], [Waiting("a", "P3", "new word", 3)],
         "No route is congested; 1 type waits for new word."),
        ({"r": a_route()}, [], [], "Nothing holds events back."),
    ],
)  # fmt: skip
def test_why_is_said_by_what_is_nearest_to_the_cause(routes: Any, held: Any, waiting: Any, said: str) -> None:
    acts = [{"mode": mode, "classes": [name], "types": [], "by": "ann"} for mode, name in held]
    assert questions.why(routes, acts, waiting) == said


def test_the_last_congestion_is_said_when_types_wait_for_the_rate_that_it_left() -> None:
    routes = {"r": {**a_route(), "congested_lately": "its queue was long"}, "s": a_route()}
    waits = Waiting("a", "P3", "rate", 3)
    assert questions.why(routes, [], [waits]) == "route r, a moment ago: its queue was long."
    assert questions.why(routes, [], [waits._replace(awaits="commit")]).startswith("No route is congested; ")
    assert questions.why(routes, [], []) == "Nothing holds events back."
    now = {"r": {**a_route(congested=True), "congested_lately": "its queue is long"}}
    assert questions.why(now, [], [waits]) == "route r: its queue is long."


def test_a_route_in_shadow_is_told_as_what_it_is_beside_what_holds_events_back() -> None:
    routes, told = (
        {"r": a_route(congested=True, shadow=True)},
        "in shadow, holds nothing back, though its queue is long",
    )
    held = [{"mode": "pause", "classes": ["P3"], "types": [], "by": "ann"}]
    assert questions.why(routes, [], []) == f"route r, {told}."
    assert questions.why(routes, held, []) == f"P3: pause by ann; route r, {told}."
    said = questions.why(routes, [], [Waiting("a", "P3", "commit", 3)])
    assert said == f"route r, {told}; 1 type waits for a commit."


def test_what_may_be_dropped_is_the_least_important_class_that_waits_with_its_types() -> None:
    classes = {"P1": a_class(100, 1), "P2": a_class(300, 1), "P3": a_class(0, 0)}
    waiting = [Waiting("few", "P2", None, 1), Waiting("many", "P2", None, 299), Waiting("orders", "P1", None, 100)]
    said = questions.droppable(classes, waiting)
    assert said == ("P2, the least important class that waits: 300 events, 75 % of all; most in many (299), few (1).")
    assert questions.droppable({"P1": a_class(0, 0)}, []) == "Nothing waits."
    assert questions.droppable({"P1": a_class(1, 0)}, []) == "P1, the only class that waits: 1 event, 100 % of all."


@pytest.mark.parametrize(
    ("lags", "said"),
    [
        ([(second, 1000 - 10 * second) for second in range(10)],
         "Yes: 910 events, 10.0 less every second; done in 1 min 31 s if it goes on so."),
        ([(second, 1000 + 10 * second) for second in range(10)], "No: 1,090 events, 10.0 more every second."),
        ([(second, 1000) for second in range(10)], "It stays as it is: 1,000 events."),
        ([(second, 0) for second in range(10)], "Nothing waits."),
        ([(second, int(second < 5)) for second in range(10)], "Nothing waits."),
        ([(second, 1 + (second == 59)) for second in range(60)], "It stays as it is: 2 events."),
        ([(second, second // 10) for second in range(60)], "No: 5 events, 0.1 more every second."),
        ([(0, 1000), (1, 900)], "Not known yet."),
        ([(second, 5000 if second < 100 else 1000) for second in range(170)], "It stays as it is: 1,000 events."),
    ],
)  # fmt: skip
def test_whether_it_gets_better_is_judged_by_the_last_minute(lags: Any, said: str) -> None:
    assert questions.better(lags) == said
