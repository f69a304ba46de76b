"""What holds events back changes while they flow: nothing pauses, nothing waits for what is gone, states are kept."""

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from proxy.bridge.throttle import OpenThrottle, PacedThrottle, Throttle
from proxy.settings import Cap, CatchUpSettings, ClassBudget, PriorityClass, Route, Settings, Statistics
from proxy.steering.budgeted import BudgetedThrottle, CappedThrottle, HeldThrottle
from tests.support.reloaded import MAILS, Running, lived, of

KINDS = {"static": OpenThrottle, "per_type": PacedThrottle, "class_budget": BudgetedThrottle}


def steered(policy: str = "static", *, parts: dict[str, Any] | None = None, **route: Any) -> Settings:
    """Return settings in which the one route says something else of how it is steered."""
    given = of(policy, orders={}, mails={})
    made = Route.model_validate({"exchange": "x", "policy": policy, "queues": ("q1",)} | route)
    fields = {key: getattr(given, key) for key in Settings.model_fields} | {"routes": {"r": made}} | (parts or {})
    return Settings(**fields)


def inner(it: Running, topic: str = "mails") -> Throttle:
    held = it.app.assignment.listeners[topic].throttle
    assert isinstance(held, HeldThrottle)
    return held.inner


def names() -> set[str]:
    return {task.get_name() for task in asyncio.all_tasks()}


@pytest.mark.parametrize(("first", "second"), list(pairwise([*KINDS, "static", "class_budget", "per_type", "static"])))
def test_events_flow_on_when_the_policy_of_their_route_changes(first: str, second: str) -> None:
    async def story(it: Running) -> None:
        before = it.app.assignment.listeners["mails"]
        flow = before.inbox.flows[MAILS]
        it.produce("mails", 3)
        await asyncio.sleep(1)
        it.app.go_by(steered(second))
        it.produce("mails", 3)
        await asyncio.sleep(1)
        assert it.written("mails") == [f"p{at}" for at in range(6)], "nothing waits for the outcomes of the first"
        assert it.app.assignment.listeners["mails"] is before
        assert before.inbox.flows[MAILS] is flow
        assert isinstance(inner(it), KINDS[second])
        assert ("route control" in names()) is (second == "class_budget")
        assert it.app.liveness.faults() == {}
        judged = [one for one in it.app.steering.control._observers["r"] if "Paced" in str(one)]
        assert len(judged) == 2 * (second == "per_type"), "one for each type, and none of those that are gone"

    lived(story, steered(first))


def test_who_waits_for_a_throttle_that_is_gone_asks_the_next_one() -> None:
    async def story(it: Running) -> None:
        it.produce("mails", 60)
        await asyncio.sleep(2)
        assert len(it.written("mails")) < 10
        it.app.go_by(steered())
        await asyncio.sleep(0.1)
        assert len(it.written("mails")) == 60

    slow = {name: PriorityClass(increase=0.01, decrease=0.5, floor=0.01) for name in ("P1", "P2", "P3")}
    lived(story, steered("per_type", parts={"classes": slow}))


def test_a_policy_holds_back_from_the_reload_on_when_its_shadow_is_switched_off_and_not_when_on() -> None:
    async def story(it: Running) -> None:
        shadow = it.app.steering.policies.shadows["r"]
        it.produce("mails", 60)
        await asyncio.sleep(1)
        assert len(it.written("mails")) == 60
        assert sum(waiting for _, waiting in shadow.by_class().values()) > 50
        it.app.go_by(steered("per_type", parts=slow))
        it.produce("mails", 60)
        await asyncio.sleep(2)
        assert len(it.written("mails")) < 70, "it is obeyed now"
        assert isinstance(inner(it), PacedThrottle)
        assert it.app.steering.policies.shadows == {}
        it.app.go_by(steered("per_type", parts=slow, shadow=True))
        await asyncio.sleep(1)
        assert len(it.written("mails")) == 120
        assert it.app.liveness.faults() == {}
        assert [name for name in names() if name.startswith("shadow ")].count("shadow r") == 1

    slow = {"classes": {name: PriorityClass(increase=0.01, decrease=0.5, floor=0.01) for name in ("P1", "P2", "P3")}}
    lived(story, steered("per_type", parts=slow, shadow=True))


def test_a_cap_holds_and_is_let_go_when_it_comes_changes_and_goes() -> None:
    async def story(it: Running) -> None:
        it.app.go_by(steered(cap=Cap(events=10, strict=True)))
        it.produce("mails", 300)
        await asyncio.sleep(5)
        assert 40 <= len(it.written("mails")) <= 60
        gate = it.app.steering.policies.caps["r"]
        it.app.go_by(steered(cap=Cap(events=20, strict=True)))
        assert it.app.steering.policies.caps["r"] is gate, "its debts stay"
        await asyncio.sleep(5)
        assert 130 <= len(it.written("mails")) <= 160
        it.app.go_by(steered())
        await asyncio.sleep(0.2)
        assert len(it.written("mails")) == 300
        assert it.app.steering.policies.caps == {}

    lived(story)


def test_a_batch_size_is_kept_when_another_number_of_its_class_changes() -> None:
    async def story(it: Running) -> None:
        it.produce("mails", 2_000)
        for _ in range(8):
            await asyncio.sleep(0.5)
            it.lane.finish()
        found = inner(it).batch_size
        assert found is not None
        assert found > 15
        classes = of().classes | {"P1": PriorityClass(increase=15, decrease=0.5, ceiling=40.0)}
        it.app.go_by(steered("per_type", parts={"classes": classes}))
        assert inner(it).batch_size == min(found, 40.0)
        assert isinstance(inner(it), PacedThrottle)

    lived(story, steered("per_type"))


def test_a_gate_and_what_was_learnt_stay_when_thresholds_change() -> None:
    async def story(it: Running) -> None:
        policies = it.app.steering.policies
        before, gate, budget = inner(it), policies._controlled["r"].gate, policies._budgets["r"]
        laws = [level._law for level in budget._levels]
        others = of().classes | {"P2": PriorityClass(increase=10, decrease=0.6, queue_delay=0.3)}
        it.app.go_by(steered("class_budget", parts={"classes": others}))
        assert (inner(it), policies._controlled["r"].gate, policies._budgets["r"]) == (before, gate, budget)
        assert [level._law for level in budget._levels] == laws
        assert budget._thresholds[1] == 0.3
        for level in budget._levels:
            level._law.rate = 777.0
        it.app.go_by(steered("class_budget", law="cubic", parts={"classes": others}))
        assert [type(level._law).__name__ for level in budget._levels] == ["Cubic"] * 3
        assert budget.rates == (777.0,) * 3, "the new law begins at the rate that was found"

    lived(story, steered("class_budget"))


def test_other_queues_are_asked_for_when_a_route_names_them() -> None:
    async def story(it: Running) -> None:
        depths = it.app.steering.depths
        assert depths.seen("q1") is not None
        it.app.go_by(steered("class_budget", queues=("q2", "q3")))
        await asyncio.sleep(1)
        assert depths.seen("q1") is None
        assert depths.seen("q2") is not None
        assert [view.name for view in it.app.recorder.verdicts.last_of_budgets["r"].queues] == [""]
        assert it.app.assignment.listeners["mails"]._way.queues == ("q2", "q3")

    lived(story, steered("class_budget"))


def test_what_is_old_stands_behind_or_no_more_when_the_settings_say_so() -> None:
    async def story(it: Running) -> None:
        listener = it.app.assignment.listeners["mails"]
        for after in (1.0, None, 2.0):
            budget = ClassBudget(catch_up=CatchUpSettings(after=after))
            it.app.go_by(steered("class_budget", parts={"class_budget": budget, "event_types": it.now.event_types}))
            assert (listener._catch_up is None) is (after is None)
            assert listener.old_throttle is not None
        it.produce("mails", 5)
        await asyncio.sleep(1)
        assert len(it.written("mails")) == 5

    lived(story, of("class_budget", mails={"priority": "P2"}, orders={}))


def test_the_statistics_are_judged_at_other_times_when_their_interval_changes() -> None:
    async def story(it: Running) -> None:
        def count() -> int:
            return len([one for one in it.records if one["kind"] == "verdict"])

        it.app.go_by(steered(parts={"statistics": Statistics(interval=0.2)}))
        before = count()
        await asyncio.sleep(4)
        assert 15 <= count() - before <= 21

    lived(story, steered(parts={"statistics": Statistics(interval=1000)}))


def test_no_trip_is_noted_any_more_when_no_law_asks_for_them() -> None:
    async def story(it: Running) -> None:
        it.produce("mails", 3)
        await asyncio.sleep(0.5)
        trips = it.app.steering.control.statistics["r"].trips
        assert trips._out
        it.app.go_by(steered("class_budget"))
        assert not trips._out
        it.produce("mails", 3)
        await asyncio.sleep(0.5)
        assert not trips._out

    lived(story, steered("class_budget", law="vegas"))


def test_a_lifted_type_stays_lifted_when_its_route_is_steered_otherwise() -> None:
    async def story(it: Running) -> None:
        listener = it.app.assignment.listeners["mails"]
        listener.lift(1)
        it.app.go_by(steered("class_budget", cap=Cap(events=1_000)))
        throttle = inner(it)
        assert isinstance(throttle, CappedThrottle)
        assert throttle._tiers.first == 1

    lived(story, steered("class_budget"))


def bounded(**limits: Any) -> Settings:
    return steered(parts={"limits": of().limits.model_copy(update=limits)})


def test_no_more_goes_ahead_of_the_commit_than_the_new_bound_when_it_falls_and_rises() -> None:
    async def story(it: Running) -> None:
        flow = it.app.assignment.listeners["mails"].inbox.flows[MAILS]
        it.produce("mails", 40)
        await asyncio.sleep(1)
        assert len(it.written("mails")) == 5
        it.app.go_by(bounded(uncommitted_events=12))
        await asyncio.sleep(0.1)
        assert len(it.written("mails")) == 12, "without a confirm, a pause or another epoch"
        it.app.go_by(bounded(uncommitted_events=3))
        it.lane.finish()
        await asyncio.sleep(1)
        assert len(it.written("mails")) == 15
        assert it.app.assignment.listeners["mails"].inbox.flows[MAILS] is flow

    lived(story, bounded(uncommitted_events=5))


def test_a_type_is_paused_and_resumed_by_the_new_bounds_of_its_inbox() -> None:
    async def story(it: Running) -> None:
        inbox = it.app.assignment.listeners["mails"].inbox
        it.lane.room = asyncio.Semaphore(0)
        it.produce("mails", 100)
        await asyncio.sleep(1)
        waiting = inbox.events
        assert waiting > 20
        assert not inbox.is_paused
        it.app.go_by(bounded(uncommitted_events=50, inbox_events=10))
        assert inbox.is_paused
        it.app.go_by(bounded(uncommitted_events=50, inbox_events=5_000))
        assert not inbox.is_paused
        it.app.go_by(bounded(uncommitted_events=50, event_bytes=1, inbox_bytes=1, inboxes_bytes=1))
        assert inbox.is_paused
        it.app.go_by(bounded(uncommitted_events=50))
        assert not inbox.is_paused

    lived(story, bounded(uncommitted_events=50))


def test_a_type_that_comes_later_has_the_new_bounds() -> None:
    async def story(it: Running) -> None:
        now = of(orders={}, mails={}, texts={})
        limits = now.limits.model_copy(update={"uncommitted_events": 2})
        it.cluster.create_topic("texts")
        it.produce("texts", 9)
        it.app.go_by(Settings(**{key: getattr(now, key) for key in Settings.model_fields} | {"limits": limits}))
        await asyncio.sleep(6)
        assert len(it.written("texts")) == 2

    lived(story)
