"""An event type that says something else begins anew by itself: in order, once, and nothing else stops."""

import asyncio
from typing import Any

from structlog.testing import capture_logs

from proxy.model import Outcome, Reason
from proxy.settings import DeadLetter, Settings
from proxy.steering.budgeted import BudgetedThrottle, HeldThrottle
from tests.support.reloaded import MAILS, ORDERS, Running, lived, of


def test_a_changed_type_goes_on_where_it_was_when_all_that_is_out_is_confirmed() -> None:
    async def story(it: Running) -> None:
        it.produce("orders", 5)
        await asyncio.sleep(1)
        it.app.go_by(of(orders={"content_type": "text/new"}, mails={}))
        await asyncio.sleep(0.5)
        it.produce("orders", 3)
        await asyncio.sleep(0.5)
        assert it.written("orders") == ["p0", "p1", "p2", "p3", "p4"], "nothing before the outcomes of the old one"
        it.lane.finish()
        await asyncio.sleep(1)
        assert it.written("orders") == [f"p{at}" for at in range(8)]
        assert set(it.content_types("orders")) == {"text/new"}
        it.lane.finish()
        await asyncio.sleep(1)
        assert it.committed(ORDERS) == 8

    lived(story)


def test_what_waits_goes_the_new_way_when_it_was_read_under_the_old_settings() -> None:
    async def story(it: Running) -> None:
        it.lane.room = asyncio.Semaphore(2)
        it.produce("orders", 6)
        await asyncio.sleep(1)
        it.app.go_by(of(orders={"content_type": "text/new"}, mails={}))
        await asyncio.sleep(0.1)
        it.lane.finish_written()
        it.lane.batches.clear()
        await asyncio.sleep(1)
        it.lane.give_room(100)
        await asyncio.sleep(1)
        assert it.written("orders") == [f"p{at}" for at in range(6)]
        assert set(it.content_types("orders")) == {"text/new"}

    lived(story)


def test_no_other_type_waits_when_one_changes() -> None:
    async def story(it: Running) -> None:
        it.produce("orders", 5)
        await asyncio.sleep(1)
        before = it.app.assignment.listeners["mails"]
        flow = before.inbox.flows[MAILS]
        it.app.go_by(of(orders={"content_type": "text/new"}, mails={}))
        it.produce("mails", 4)
        await asyncio.sleep(0.3)
        assert it.written("mails") == ["p0", "p1", "p2", "p3"]
        it.lane.finish()
        await asyncio.sleep(1)
        assert it.app.assignment.listeners["mails"] is before, "nothing of it has changed"
        assert before.inbox.flows[MAILS] is flow
        assert it.app.assignment.listeners["orders"].event_type.content_type == "text/new"

    lived(story)


def test_events_come_twice_rather_than_never_when_no_outcome_comes_in_time() -> None:
    async def story(it: Running) -> None:
        it.produce("orders", 2)
        await asyncio.sleep(1)
        it.app.go_by(of(orders={"content_type": "text/new"}, mails={}))
        await asyncio.sleep(8)
        assert it.written("orders") == ["p0", "p1", "p0", "p1"]
        late, fresh = it.lane.batches[0], it.lane.batches[-1]
        it.lane.batches = [late]
        it.lane.finish()
        await asyncio.sleep(1)
        assert it.committed(ORDERS) in {None, 0}, "an outcome of the old epoch moves nothing"
        it.lane.batches = [fresh]
        it.lane.finish()
        await asyncio.sleep(1)
        assert it.committed(ORDERS) == 2

    lived(story)


def test_the_last_of_several_changes_holds_when_they_come_while_one_is_under_way() -> None:
    async def story(it: Running) -> None:
        it.produce("orders", 2)
        await asyncio.sleep(1)
        for number in range(5):
            it.app.go_by(of(orders={"content_type": f"text/{number}"}, mails={}))
            await asyncio.sleep(0.01)
        it.lane.finish()
        await asyncio.sleep(2)
        it.produce("orders", 1)
        await asyncio.sleep(1)
        assert it.content_types("orders") == ["text/4"]
        assert not it.app.assignment.successors
        running = [task.get_name() for task in asyncio.all_tasks() if task.get_name() == "listener orders"]
        assert len(running) == 1
        assert it.app.liveness.faults() == {}

    lived(story)


def test_a_type_that_goes_and_comes_back_goes_on_where_it_was() -> None:
    async def story(it: Running) -> None:
        it.produce("mails", 3)
        await asyncio.sleep(1)
        it.lane.finish()
        await asyncio.sleep(1)
        it.app.go_by(of(orders={}))
        await asyncio.sleep(5)
        assert list(it.app.assignment.listeners) == ["orders"]
        assert not [task for task in asyncio.all_tasks() if task.get_name() == "listener mails"]
        it.produce("mails", 2)
        it.produce("orders", 1)
        await asyncio.sleep(3)
        assert (it.written("mails"), it.written("orders")) == (["p0", "p1", "p2"], ["p0"])
        it.app.go_by(of(orders={}, mails={}))
        await asyncio.sleep(6)
        assert it.written("mails") == ["p0", "p1", "p2", "p3", "p4"]

    lived(story)


def test_a_new_type_is_read_when_its_topic_is_there() -> None:
    async def story(it: Running) -> None:
        it.cluster.create_topic("texts")
        it.produce("texts", 2)
        it.app.go_by(of(orders={}, mails={}, texts={}))
        await asyncio.sleep(6)
        assert it.written("texts") == ["p0", "p1"]

    lived(story)


def test_counts_are_whole_when_a_type_changes_between_two_records() -> None:
    async def story(it: Running) -> None:
        it.produce("orders", 4)
        await asyncio.sleep(0.2)
        it.lane.finish()
        it.app.go_by(of(orders={"priority": "P3"}, mails={}))
        await asyncio.sleep(1)
        it.produce("orders", 3)
        await asyncio.sleep(0.5)
        it.lane.finish()
        await asyncio.sleep(15)
        found = [(one["class"], one["confirmed"]) for one in it.records if one["kind"] == "type" and one["confirmed"]]
        assert found == [("P1", 4), ("P3", 3)]

    lived(story)


def test_nothing_is_said_or_begun_anew_when_nothing_differs() -> None:
    async def story(it: Running) -> None:
        flows = it.app.assignment.flows()
        with capture_logs() as said:
            it.app.go_by(of(orders={}, mails={}))
            await asyncio.sleep(3)
        assert it.app.assignment.flows() == flows
        assert not [one for one in said if one["event"] != "topics_subscribed"]

    lived(story)


def test_what_is_done_is_committed_when_nothing_follows_the_change() -> None:
    async def story(it: Running) -> None:
        it.produce("orders", 5)
        await asyncio.sleep(1)
        it.app.go_by(of(orders={"content_type": "text/new"}, mails={}))
        await asyncio.sleep(0.5)
        it.lane.finish()
        await asyncio.sleep(3)
        assert it.committed(ORDERS) == 5

    lived(story)


def test_nothing_goes_the_new_way_when_the_log_has_not_taken_what_is_done() -> None:
    async def story(it: Running) -> None:
        it.produce("orders", 2)
        await asyncio.sleep(1)
        it.app.go_by(of(orders={"content_type": "text/new"}, mails={}))
        await asyncio.sleep(0.1)
        it.cluster.refuses_commits = 1.0
        it.lane.finish()
        it.produce("orders", 1)
        await asyncio.sleep(1)
        assert it.content_types("orders") == []
        it.cluster.refuses_commits = 0.0
        await asyncio.sleep(6)
        assert (it.written("orders"), it.content_types("orders")) == (["p0", "p1", "p2"], ["text/new"])

    lived(story)


def paced(**orders: Any) -> Settings:
    """Return settings in which both costs and both classes are there whatever orders are like."""
    others = {"mails": {"cost": 2.0}, "texts": {"cost": 1.0}, "news": {"priority": "P2"}}
    return of("per_type", orders=orders, **others)


def test_a_throttle_keeps_its_state_when_nothing_that_it_goes_by_has_changed() -> None:
    async def story(it: Running) -> None:
        throttles = [it.app.assignment.listeners["orders"].throttle]
        for orders in ({"content_type": "text/new"}, {"priority": "P2"}, {"priority": "P2", "cost": 2.0}):
            it.app.go_by(paced(**orders))
            await asyncio.sleep(1)
            throttles.append(it.app.assignment.listeners["orders"].throttle)
        assert throttles[1] is throttles[0], "it keeps what it has learned"
        assert len(set(map(id, throttles))) == 3
        judged = it.app.steering.control._observers["r"]
        paced_by = [throttle.inner for throttle in throttles]
        assert len([one for one in judged if getattr(one, "__self__", None) in paced_by]) == 1, "the last one only"

    lived(story, paced())


def test_a_throttle_stands_where_its_class_does_when_a_lifted_type_changes() -> None:
    async def story(it: Running) -> None:
        before = it.app.assignment.listeners["orders"]
        assert isinstance(before.throttle, HeldThrottle)
        assert isinstance(before.throttle.inner, BudgetedThrottle)
        tiers = before.throttle.inner._tiers
        own = tiers.first
        before.lift(own + 1)
        assert tiers.first == own + 1
        it.app.go_by(of("class_budget", orders={"content_type": "text/new"}, mails={}))
        await asyncio.sleep(1)
        after = it.app.assignment.listeners["orders"]
        assert after is not before
        assert after.throttle is before.throttle
        assert tiers.first == own
        assert not after.is_lifted

    lived(story, of("class_budget", orders={}, mails={}))


def test_no_other_settings_come_into_force_when_it_is_stopping() -> None:
    async def story(it: Running) -> None:
        it.produce("orders", 2)
        await asyncio.sleep(1)
        it.app.go_by(of(orders={"content_type": "text/1"}, mails={}))
        await asyncio.sleep(0.1)
        it.app.stop()
        await asyncio.sleep(0.1)
        it.app.go_by(of(orders={"content_type": "text/2"}))
        it.lane.finish()
        await it.task
        assert it.app.in_force.event_type("orders").content_type == "text/1"
        assert it.committed(ORDERS) == 2

    lived(story)


def test_a_stopped_type_goes_on_when_it_is_given_a_dead_letter() -> None:
    async def story(it: Running) -> None:
        it.produce("orders", 2)
        await asyncio.sleep(1)
        it.lane.finish(Outcome.UNDELIVERABLE, reason=Reason.UNROUTABLE)
        await asyncio.sleep(1)
        assert it.app.assignment.listeners["orders"].is_stopped
        it.app.go_by(of(orders={"dead_letter": DeadLetter(exchange="", routing_key="dead")}, mails={}))
        await asyncio.sleep(1)
        assert it.content_types("orders") == ["application/octet-stream"]
        it.lane.finish()
        await asyncio.sleep(1)
        assert it.committed(ORDERS) == 2

    lived(story)


def test_nothing_has_changed_when_a_change_is_taken_back_while_it_is_under_way() -> None:
    async def story(it: Running) -> None:
        it.produce("orders", 2)
        await asyncio.sleep(1)
        it.app.go_by(of(orders={"content_type": "text/new"}, mails={}))
        await asyncio.sleep(0.1)
        it.app.go_by(of(orders={}, mails={}))
        it.lane.finish()
        await asyncio.sleep(1)
        it.produce("orders", 1)
        await asyncio.sleep(1)
        assert it.content_types("orders") == ["application/octet-stream"]

    lived(story)
