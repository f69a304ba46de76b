"""Which of several queues counts and which rules, with the documents' times."""

from dataclasses import replace
from math import inf

import pytest

from proxy.congestion.group import LEAVES_AFTER, RESTS_FOR, STUCK_FOR, Counted, Group, Rules, Tether
from proxy.congestion.receiver import View
from tests.support.queue_views import HIGHEST, view

TICK = 0.05


def count(group: Group, seconds: float, views: list[View], start: float = 100.0) -> Counted:
    """Return who counts after the same was seen for some seconds."""
    for step in range(round(seconds / TICK) + 1):
        counted = group.count(start + step * TICK, views)
    return counted


def names(counted: Counted) -> set[str]:
    return {one.name for one in counted.views}


@pytest.mark.parametrize(("strategy", "rules"), [("min", "slow"), ("max", "fast"), ("tagged", "middle")])
def test_the_strategy_says_who_rules_when_queues_differ(strategy: str, rules: str) -> None:
    group = Group(Rules(strategy, tags=frozenset({"fast", "middle"})), HIGHEST)
    views = [view("fast", 0.01), view("middle", 0.1), view("slow", inf)]
    assert group.ruling(group.count(0.0, views).views, 0).name == rules


def test_a_class_is_ruled_by_the_queues_that_it_goes_to_when_others_are_slower() -> None:
    group = Group(Rules("min"), HIGHEST)
    counted = group.count(0.0, [view("one", 0.01, feeds=(True, False)), view("two", 0.4, feeds=(False, True))])
    assert [group.ruling(counted.views, rank).name for rank in (0, 1)] == ["one", "two"]


def test_a_queue_leaves_the_group_when_it_has_had_no_consumer_for_five_seconds() -> None:
    group = Group(Rules("min"), HIGHEST)
    count(group, 1.0, [view("one"), view("two")])
    alone = [view("one"), view("two", consumers=0)]
    assert names(count(group, LEAVES_AFTER - 0.2, alone, start=101.0)) == {"one", "two"}
    counted = count(group, 0.2, alone, start=101.0 + LEAVES_AFTER)
    assert names(counted) == {"one"}
    assert counted.states == {"one": Tether.ACTIVE, "two": Tether.ABSENT}


def test_a_queue_stays_in_the_group_when_the_process_stood_still_or_the_depth_is_not_known() -> None:
    group = Group(Rules("min"), HIGHEST)
    count(group, 1.0, [view("one"), view("two")])
    alone = [view("one"), view("two", consumers=0)]
    assert names(count(group, 1.0, alone, start=200.0)) == {"one", "two"}
    unseen = [view("one"), replace(view("two", consumers=0), is_known=False)]
    assert names(count(group, 2 * LEAVES_AFTER, unseen, start=201.0)) == {"one", "two"}


def test_all_are_looked_at_when_nobody_has_a_consumer() -> None:
    assert names(Group(Rules("min"), HIGHEST).count(0.0, [view("one", consumers=0), view("two", consumers=0)])) == {
        "one",
        "two",
    }


@pytest.mark.parametrize(("group_min", "is_connected"), [(0, True), (1, True), (2, False)])
def test_nobody_is_connected_when_fewer_are_there_than_must_be(group_min: int, is_connected: bool) -> None:
    group = Group(Rules("min", group_min=group_min), HIGHEST)
    assert group.count(0.0, [view("one"), view("two", consumers=0)]).is_connected is is_connected


def test_a_stuck_queue_lingers_rests_and_counts_again_when_it_may_be_untethered() -> None:
    group = Group(Rules("min", untether=True), HIGHEST)
    views, seen = [view("one", 0.0), view("two", inf)], []
    for step in range(round(35 / TICK)):
        counted = group.count(step * TICK, views)
        state = counted.states["two"]
        assert names(counted) == ({"one"} if state is Tether.RESTING else {"one", "two"})
        if not seen or seen[-1][1] is not state:
            seen.append((step * TICK, state))
    assert [state for _, state in seen] == [
        Tether.ACTIVE,
        Tether.LINGER,
        Tether.RESTING,
        Tether.ACTIVE,
        Tether.LINGER,
        Tether.RESTING,
    ]
    begins = [at for at, _ in seen]
    assert begins == pytest.approx([0, STUCK_FOR, 2 * STUCK_FOR, 2 * STUCK_FOR + RESTS_FOR, 25, 30], abs=2 * TICK)


@pytest.mark.parametrize(
    ("one", "two"),
    [(0.0, 0.43), (0.1, inf), (inf, inf), (0.0, None)],
    ids=["not at its end", "nobody at the beginning", "all at the end", "not known"],
)
def test_a_queue_stays_active_when_it_is_not_stuck_beside_one_that_is_free(one: float, two: float | None) -> None:
    group = Group(Rules("min", untether=True), HIGHEST)
    assert count(group, 20.0, [view("one", one), view("two", two)]).states["two"] is Tether.ACTIVE


def test_five_seconds_begin_anew_when_a_stuck_queue_moved_for_a_moment() -> None:
    group = Group(Rules("min", untether=True), HIGHEST)
    stuck, free = [view("one"), view("two", inf)], [view("one"), view("two", 0.1)]
    count(group, STUCK_FOR - 0.5, stuck, start=0.0)
    count(group, 0.1, free, start=5.0)
    assert count(group, STUCK_FOR - 0.5, stuck, start=6.0).states["two"] is Tether.ACTIVE


def test_a_stuck_queue_rules_for_ever_when_nobody_untethers_it() -> None:
    group = Group(Rules("min"), HIGHEST)
    assert names(count(group, 60.0, [view("one"), view("two", inf)])) == {"one", "two"}


def test_something_counts_when_all_rest() -> None:
    group = Group(Rules("min", untether=True), HIGHEST)
    for step, (one, two) in enumerate([(inf, 0.0)] * 201 + [(0.0, inf)] * 500):
        assert group.count(step * TICK, [view("one", one), view("two", two)]).views
