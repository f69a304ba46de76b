"""Cursors seen, counted and moved from outside the group, against Kafka's protocol and a board in memory."""

import argparse
from collections.abc import AsyncIterator

import pytest

from proxy.bridge.move import Direction
from proxy.cursor.adapters import Opened
from proxy.cursor.carrying import carry_out
from proxy.cursor.choice import Chosen, Plans, Wanted, choose, planned
from proxy.cursor.command import _Moving
from proxy.kafka_log.cursors import KafkaCursors
from proxy.kafka_log.own_topic import Member
from proxy.model import Partition
from proxy.operations.plan import LIFE_MS, Plan
from proxy.operations.scope import Scope
from proxy.positions.identity import Committed
from proxy.positions.port import EARLIEST, LATEST
from proxy.settings import Settings
from tests.contract.log_adapters import ScriptedWorld
from tests.support.memory_board import MemoryBoard

AT = Partition("orders", 0)
T0 = 1_700_000_000_000
NOW_MS = T0 + 3_600_000


class Duty:
    """Whoever is on duty, one topic of one partition, and a group that has done with the first five events."""

    def __init__(self, world: ScriptedWorld, cursors: KafkaCursors, settings: Settings) -> None:
        self.world, self.cursors, self.settings = world, cursors, settings
        self.board, self.plans = MemoryBoard(), Plans()
        self.group = world.cluster.group("tide")
        self.topic_id = ""

    async def choose(self, direction: Direction, time: int | None, offset: int | None = None) -> Chosen:
        self.plans.take(await self.board.news())
        wanted = Wanted(direction, Scope(("orders",), ()), time, offset, None)
        (chosen,), self.committed = await choose(wanted, self.settings, self.cursors, self.plans, NOW_MS)
        return chosen

    async def pin(self, direction: Direction, chosen: Chosen) -> Plan:
        name = f"{self.plans.next_number(self.committed)}-ab"
        plan = Plan(name, direction, "ann", None, NOW_MS, NOW_MS + LIFE_MS, planned([chosen]))
        await self.board.pin(plan.key, plan.as_json())
        return plan


@pytest.fixture
async def duty() -> AsyncIterator[Duty]:
    async with ScriptedWorld.open() as world:
        await world.create("orders", 1)
        hosts = [f"{host}:{port}" for host, port in world.cluster.advertised.values()]
        settings = Settings.model_validate(
            {
                "log": {"hosts": hosts, "group": "tide"},
                "broker": {"hosts": ["localhost:1"]},
                "routes": {"main": {"exchange": "events", "queues": ["mail"]}},
                "event_types": {
                    "orders": {
                        "name": "orders",
                        "topic": "orders",
                        "priority": "P2",
                        "route": "main",
                        "routing_key": "mail",
                        "dead_letter": {"routing_key": "dead"},
                    }
                },
            }
        )
        cursors = KafkaCursors(settings.log)
        await cursors.open()
        try:
            made = Duty(world, cursors, settings)
            for at in range(30):
                world.cluster.produce("orders", 0, value=b"%d" % at, timestamp_ms=T0 + (at if at != 7 else 1_000))
                if at == 9:
                    await world.leave_gap("orders")
            made.topic_id = (await cursors.topics())["orders"].id
            made.group.committed[AT] = Committed(5, made.topic_id)
            yield made
        finally:
            await cursors.close()


@pytest.mark.parametrize(("first", "end"), [(0, 34), (5, 20), (9, 15), (10, 14), (13, 34), (6, 7)])
async def test_a_range_holds_its_events_and_no_gaps_however_batches_lie(duty: Duty, first: int, end: int) -> None:
    track = duty.world.cluster.tracks[AT]
    events = [one for at, one in zip(track.offsets, track.events, strict=True) if first <= at < end]
    for before_ms in (None, T0 + 20):
        count = duty.cursors.range(first, end, before_ms)
        while not count.is_done:
            await duty.cursors.read_on(AT, count)
        newer = sum(before_ms is not None and (one.timestamp_ms or 0) >= before_ms for one in events)
        assert (count.events, count.newer) == (len(events), newer)


async def test_a_skip_is_committed_once_when_no_replica_is_in_the_group(duty: Duty) -> None:
    chosen = await duty.choose(Direction.SKIP, LATEST)
    assert (chosen.first, chosen.range, chosen.is_moved) == (5, (5, 34), True)
    plan = await duty.pin(Direction.SKIP, chosen)
    carried = await carry_out({AT: plan.id}, [plan], duty.cursors, duty.board, duty.plans, 5)
    assert (carried.left, carried.silent, [(one.done, one.to) for one in carried.moved]) == ([], [], [(5, 34)])
    assert duty.group.committed[AT] == Committed(34, duty.topic_id, "1-ab")
    assert not (await duty.choose(Direction.SKIP, LATEST)).is_moved


async def test_a_rewind_asked_for_again_changes_nothing_and_a_later_plan_has_a_greater_number(duty: Duty) -> None:
    chosen = await duty.choose(Direction.REWIND, EARLIEST)
    plan = await duty.pin(Direction.REWIND, chosen)
    assert (await duty.choose(Direction.REWIND, EARLIEST)).asked_before == plan.id  # under way
    await carry_out({AT: plan.id}, [plan], duty.cursors, duty.board, duty.plans, 5)
    duty.group.committed[AT] = Committed(9, duty.topic_id, plan.id)  # read on since
    again = await duty.choose(Direction.REWIND, EARLIEST)
    assert (again.is_moved, again.asked_before) == (False, plan.id)
    assert duty.plans.next_number(duty.committed) == 2


async def test_who_has_not_moved_or_answered_in_time_is_named_when_a_replica_is_in_the_group(duty: Duty) -> None:
    duty.board.present = [Member("m-1", "host")]
    plan = await duty.pin(Direction.SKIP, await duty.choose(Direction.SKIP, None, 20))
    carried = await carry_out({AT: plan.id}, [plan], duty.cursors, duty.board, duty.plans, 0.3)
    assert (carried.left, carried.silent, carried.moved) == ([AT], duty.board.present, [])
    assert duty.group.committed[AT] == Committed(5, duty.topic_id)


class OpenBoard(MemoryBoard):
    """A board that a command opens and names."""

    topic = "tide.tidegate"

    async def open(self) -> None:
        pass


async def test_a_rewind_that_was_made_waits_for_nobody_when_other_replicas_have_come_since(duty: Duty) -> None:
    plan = await duty.pin(Direction.REWIND, await duty.choose(Direction.REWIND, EARLIEST))
    duty.group.committed[AT] = Committed(9, duty.topic_id, plan.id)
    board = OpenBoard(duty.board.notes)
    board.present = [Member("m-2", "host")]  # never heard of the plan, which is dead by now
    options = argparse.Namespace(dry_run=False, yes=True, json=True, why=None)
    wanted = Wanted(Direction.REWIND, Scope(("orders",), ()), EARLIEST, None, None)
    found = Opened(duty.cursors, board, None)  # type: ignore[arg-type]
    moving = _Moving(options, duty.settings, wanted, "ann", found)
    assert await moving.run() == 0
    assert duty.group.committed[AT] == Committed(9, duty.topic_id, plan.id)
