"""When a process calls itself ready."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from proxy.bridge.broker import LaneState
from proxy.operations.status import Status


def listener(name: str, *, is_stopped: bool = False, is_stuck: bool = False) -> Any:
    outage = SimpleNamespace(destination="queue 'dead'", why="nacked")
    return SimpleNamespace(
        event_type=SimpleNamespace(name=name, topic=f"topic.{name}"),
        is_stopped=is_stopped,
        dead_letters=SimpleNamespace(is_stuck=is_stuck, outage=outage),
    )


def ready(
    *listeners: Any,
    topics: frozenset[str],
    partitions: int = 0,
    missing: Sequence[str] = (),
    outside: str | None = None,
) -> dict[str, Any]:
    assignment: Any = SimpleNamespace(
        listeners={one.event_type.topic: one for one in listeners}, flows=lambda: [None] * partitions
    )
    lanes: Any = {"main": SimpleNamespace(state=LaneState.OPEN)}
    unread = [one.event_type.name for one in listeners if one.event_type.topic not in topics]
    catalog: Any = SimpleNamespace(topics=topics, unread=unread, has_looked=True)
    nothing: Any = None
    depths: Any = SimpleNamespace(missing=lambda: list(missing))
    standstill: Any = SimpleNamespace(standing=dict, outside=lambda: outside)
    return Status(assignment, lanes, depths, nothing, standstill, {}, catalog, caps={}).ready()


def test_it_is_ready_when_other_replicas_own_all_partitions() -> None:
    assert ready(listener("a"), topics=frozenset({"topic.a"}))["ready"]


@pytest.mark.parametrize("topics", [frozenset[str](), frozenset({"topic.other"})])
def test_it_is_not_ready_when_every_topic_is_gone_or_refused(topics: frozenset[str]) -> None:
    told = ready(listener("a"), topics=topics)
    assert not told["ready"]
    assert told["unread_types"] == ["a"]


def test_it_is_not_ready_when_the_only_type_that_could_be_read_has_stopped() -> None:
    told = ready(listener("a", is_stopped=True), listener("b"), topics=frozenset({"topic.a"}), partitions=2)
    assert not told["ready"]
    assert (told["stopped_types"], told["unread_types"]) == (["a"], ["b"])


def test_it_is_not_ready_and_says_why_when_the_group_lets_it_have_no_part() -> None:
    told = ready(listener("a"), topics=frozenset({"topic.a"}), outside="this login may not use it")
    assert (told["ready"], told["outside_group"]) == (False, "this login may not use it")


def test_a_type_is_named_with_the_cause_when_its_dead_letters_are_not_taken() -> None:
    told = ready(listener("a", is_stuck=True), topics=frozenset({"topic.a"}), partitions=2)
    assert told["ready"]
    assert told["waiting_types"] == {"a": "queue 'dead' takes no dead letters: nacked"}


def test_queues_that_are_missing_are_named_and_no_more_than_twenty() -> None:
    queues = [f"q{number}" for number in range(30)]
    told = ready(listener("a"), topics=frozenset({"topic.a"}), missing=queues)
    assert told["ready"]
    assert told["missing_queues"] == queues[:20]
