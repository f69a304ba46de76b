"""Partitions that stand still: what is said of them, when, and what the status tells."""

from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from proxy.bridge.broker import LaneState
from proxy.bridge.event_log import Standing
from proxy.kafka_log.stalls import GRACE, LOOK_SECONDS, Stalls
from proxy.model import Partition
from proxy.operations.status import Status
from proxy.positions.share import Share

SILENT = Standing("node", "node 2 at kafka-2:9092, which leads it, does not answer: no answer in time")
REFUSED = Standing("refused", "node 2 at kafka-2:9092 answers KAFKA_STORAGE_ERROR (56)")


class World:
    """Partitions of which some are hindered, and a clock."""

    def __init__(self, count: int = 3) -> None:
        self.now = 0.0
        self.hindered: dict[Partition, Standing] = {}
        self.asked = 0
        self.shares = [Share(Partition("orders", number), is_paused=False, is_placed=True) for number in range(count)]
        self.suspects: set[Partition] | None = None
        self.stalls = Stalls(self._hindrance, lambda: self.now, lambda: self.suspects)

    def _hindrance(self, at: Partition) -> Standing | None:
        self.asked += 1
        return self.hindered.get(at)

    def hinder(self, standing: Standing | None) -> None:
        self.hindered = {} if standing is None else {share.partition: standing for share in self.shares}

    def turn(self) -> None:
        self.stalls.turn({share.partition: share for share in self.shares})

    def look(self, seconds: float) -> list[Any]:
        with capture_logs() as said:
            for _ in range(round(seconds / LOOK_SECONDS)):
                self.now += LOOK_SECONDS
                self.turn()
        return [(entry["event"], entry.get("cause"), entry["count"]) for entry in said]


def test_partitions_are_said_to_stand_still_once_with_their_node_when_they_have_for_a_while() -> None:
    world = World()
    world.hinder(SILENT)
    assert world.look(GRACE) == []
    assert not world.stalls.standing
    with capture_logs() as said:
        world.look(0)
    assert world.look(60) == [("partitions_stand_still", "node", 3)]
    assert world.stalls.standing == dict.fromkeys(world.hindered, SILENT)
    world.hinder(None)
    assert world.look(10) == [("partitions_flow", None, 3)]
    assert not world.stalls.standing
    assert not said


def test_it_is_said_anew_when_the_cause_is_another() -> None:
    world = World()
    world.hinder(SILENT)
    world.look(GRACE + LOOK_SECONDS)
    world.hinder(REFUSED)
    assert world.look(60) == [("partitions_stand_still", "refused", 3)]


def test_nothing_is_said_when_the_owner_paused_them_or_others_own_them_by_now_or_it_was_soon_over() -> None:
    world = World()
    world.hinder(SILENT)
    world.look(GRACE)
    world.hinder(None)
    assert world.look(10) == []
    world.hinder(SILENT)
    world.look(GRACE + LOOK_SECONDS)
    world.shares[0].is_paused = True
    assert len(world.stalls.standing) == 3, "as of the last look"
    world.shares[1:] = []
    assert world.look(60) == []
    assert not world.stalls.standing


def test_a_few_are_named_and_all_are_counted_when_many_stand_still() -> None:
    world = World(1_000)
    world.hinder(SILENT)
    with capture_logs() as said:
        for _ in range(20):
            world.now += LOOK_SECONDS
            world.turn()
    (entry,) = said
    assert entry["partitions"] == [f"orders-{number}" for number in range(10)]
    assert entry["count"] == 1_000
    assert entry["why"] == SILENT.why


def test_the_partitions_are_looked_at_once_a_second_when_there_are_many_polls() -> None:
    world = World()
    for _ in range(100):
        world.now += LOOK_SECONDS / 100
        world.turn()
    assert world.asked <= 2 * len(world.shares)


def test_only_those_that_may_be_hindered_are_asked_for_when_that_is_known() -> None:
    world = World(1_000)
    world.hinder(SILENT)
    first, second, third = (share.partition for share in world.shares[:3])
    world.suspects = {first, second}
    world.shares[2].is_placed = False
    world.shares[1].is_paused = True
    world.look(GRACE + LOOK_SECONDS)
    assert world.stalls.standing.keys() == {first, third}
    assert world.asked == round((GRACE + LOOK_SECONDS) / LOOK_SECONDS)


@pytest.mark.parametrize(("standing", "is_ready"), [(0, True), (1, True), (2, False)])
def test_readiness_names_what_stands_still_and_ends_when_all_do(standing: int, is_ready: bool) -> None:
    listener = SimpleNamespace(
        is_stopped=False, event_type=SimpleNamespace(topic="orders"), dead_letters=SimpleNamespace(is_stuck=False)
    )
    assignment: Any = SimpleNamespace(listeners={"orders": listener}, flows=lambda: [None, None])
    lanes: Any = {"main": SimpleNamespace(state=LaneState.OPEN)}
    stood = {Partition("orders", number): SILENT for number in range(standing)}
    nothing: Any = None
    catalog: Any = SimpleNamespace(topics=frozenset({"orders"}), unread=[], has_looked=True)
    depths: Any = SimpleNamespace(missing=list)
    standstill: Any = SimpleNamespace(standing=lambda: stood, outside=lambda: None)
    ready = Status(assignment, lanes, depths, nothing, standstill, {}, catalog, caps={}).ready()
    assert ready["ready"] is is_ready
    assert ready["standing_partitions"] == standing
    assert ready["standing"] == {f"orders-{number}": SILENT.why for number in range(standing)}
