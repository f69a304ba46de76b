"""Routes come, go and lead elsewhere: only their types pause, and a lane lasts as long as anything is out on it."""

import asyncio
from collections.abc import Mapping
from typing import Any

from proxy.settings import Route, Settings
from tests.support.reloaded import MAILS, ORDERS, Running, lived, of


def routed(orders: str = "r", mails: str = "r", policy: str = "static", **routes: Mapping[str, Any]) -> Settings:
    """Return settings in which the types go by these routes; each route is `r` but for what is given."""
    given = of(policy, orders={"route": orders}, mails={"route": mails})
    own = {"exchange": "x", "policy": policy, "queues": ("q1",)}
    made = {name: Route.model_validate({**own, **route}) for name, route in ({"r": {}} | routes).items()}
    return Settings(**{key: getattr(given, key) for key in Settings.model_fields} | {"routes": made})


def lanes_run() -> set[str]:
    return {name for task in asyncio.all_tasks() if (name := task.get_name()).startswith("lane")}


def test_only_its_types_begin_anew_when_a_route_leads_elsewhere() -> None:
    async def story(it: Running) -> None:
        it.produce("orders", 3)
        it.produce("mails", 3)
        await asyncio.sleep(1)
        mails = it.app.assignment.listeners["mails"]
        it.app.go_by(routed(mails="other", other={}))
        await asyncio.sleep(1)
        it.lane.finish()
        await asyncio.sleep(1)
        orders = it.app.assignment.listeners["orders"]
        flow = it.app.assignment.listeners["mails"].inbox.flows[MAILS]
        assert it.app.assignment.listeners["mails"] is not mails
        it.app.go_by(routed(mails="other", other={}, r={"exchange": "y", "key": "none"}))
        await asyncio.sleep(0.5)
        it.produce("orders", 2)
        await asyncio.sleep(1)
        assert it.app.assignment.listeners["orders"] is not orders
        assert it.app.assignment.listeners["mails"].inbox.flows[MAILS] is flow, "its route leads where it did"
        assert [(batch.address.exchange, batch.address.carries_key) for batch in it.lane.batches] == [("y", False)]
        assert it.written("orders") == [f"p{at}" for at in range(5)]
        assert lanes_run() == {"lane r", "lane other", "lane dead letters"}

    lived(story, routed())


def test_events_go_over_the_new_lane_when_what_is_out_on_the_old_one_has_its_outcome() -> None:
    async def story(it: Running) -> None:
        it.produce("mails", 3)
        await asyncio.sleep(1)
        it.app.go_by(routed(mails="new", new={"exchange": "y"}))
        await asyncio.sleep(0.5)
        it.produce("mails", 2)
        await asyncio.sleep(1)
        lane = it.maker.every["new"]
        assert lanes_run() == {"lane r", "lane new", "lane dead letters"}
        assert not lane.written, "nothing before the outcomes of the old one"
        it.lane.finish()
        await asyncio.sleep(1)
        assert [event.position for event in lane.written] == ["#3", "#4"]
        lane.finish()
        await asyncio.sleep(1)
        assert it.committed(MAILS) == 5

    lived(story, routed())


def test_a_lane_is_left_when_its_route_is_gone_and_not_before_its_events_are_done_with() -> None:
    async def story(it: Running) -> None:
        old = it.maker.every["old"]
        it.produce("mails", 3)
        it.produce("orders", 1)
        await asyncio.sleep(1)
        flow = it.app.assignment.listeners["orders"].inbox.flows[ORDERS]
        it.app.go_by(routed())
        await asyncio.sleep(0.5)
        assert "lane old" in lanes_run(), "three events are out on it"
        assert set(it.app.status.ready()["routes"]) == {"r"}
        old.finish()
        await asyncio.sleep(0.5)
        assert lanes_run() == {"lane r", "lane dead letters"}
        it.produce("mails", 1)
        await asyncio.sleep(1)
        assert [event.position for event in it.lane.written if event.value == b"mails"] == ["#3"]
        assert it.app.assignment.listeners["orders"].inbox.flows[ORDERS] is flow
        assert it.app.liveness.faults() == {}
        await asyncio.sleep(3)
        told = [one for one in it.records if one["kind"] == "route" and one["route"] == "old"]
        assert sum(one["confirmed"] for one in told) == 3, "what came after it had gone is counted"

    lived(story, routed(mails="old", old={}))


def test_a_route_is_controlled_from_its_first_event_on_when_it_comes_with_a_class_budget() -> None:
    async def story(it: Running) -> None:
        it.app.go_by(routed(mails="new", new={"policy": "class_budget", "queues": ("q9",)}))
        await asyncio.sleep(0.5)
        it.produce("mails", 3)
        await asyncio.sleep(2)
        assert [event.position for event in it.maker.every["new"].written] == ["#0", "#1", "#2"]
        assert "new" in it.app.recorder.verdicts.last_of_budgets
        assert "tidegate_publish_errors" in {family.name for family in it.app.totals.families()}
        it.app.go_by(routed())
        await asyncio.sleep(2)
        assert "new" not in it.app.recorder.verdicts.last_of_budgets
        assert "new" not in it.app.steering.control.statistics

    lived(story, routed())


def test_nobody_waits_at_a_gate_that_is_gone_when_its_type_cannot_begin_anew_yet() -> None:
    async def story(it: Running) -> None:
        old = it.maker.every["old"]
        it.produce("mails", 400)
        await asyncio.sleep(1)
        assert len(old.written) < 20
        it.app._log.renew = lambda _: None  # type: ignore[method-assign]  # as where a partition can't be read for now
        it.app.go_by(routed())
        await asyncio.sleep(1)
        assert len(old.written) == 400

    lived(story, routed(mails="old", old={"cap": {"events": 10, "strict": True}}))
