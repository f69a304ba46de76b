"""What part of what a class is sure of is one replica's: all parts together are all of it, whoever has what."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.model import Partition
from proxy.steering.class_part import MOVED_WITHIN, ClassPart, RouteClass

CLASSES = {"campaign": RouteClass("shop", 2), "orders": RouteClass("shop", 1), "letters": RouteClass("mail", 2)}
CAMPAIGN = [Partition("campaign", number) for number in range(12)]


def part() -> ClassPart:
    return ClassPart(CLASSES.get)


def test_all_of_it_is_ours_when_nobody_else_has_anything_of_the_class() -> None:
    one = part()
    assert one.of("shop", 2) == 1.0
    one.add(0.0, {CAMPAIGN[0]: 0}, {Partition("orders", 0): 7, Partition("letters", 0): 7})
    assert one.of("shop", 2) == 1.0


@given(st.lists(st.integers(1, 6), min_size=1, max_size=50))
def test_the_parts_add_up_to_one_when_each_of_many_replicas_has_some(owned: list[int]) -> None:
    partitions = iter([Partition("campaign", number) for number in range(sum(owned))])
    of_each = [{next(partitions): 0 for _ in range(count)} for count in owned]
    parts = []
    for place, ours in enumerate(of_each):
        one = part()
        one.add(0.0, ours, {at: 9 for other, has in enumerate(of_each) if other != place for at in has})
        parts.append(one.of("shop", 2))
    assert sum(parts) == pytest.approx(1.0)


def test_who_has_been_idle_for_long_has_no_part_any_more() -> None:
    one = part()
    for now in (0.0, MOVED_WITHIN / 2, MOVED_WITHIN, MOVED_WITHIN + 1):
        one.add(now, {CAMPAIGN[0]: int(now)}, {CAMPAIGN[1]: 5, CAMPAIGN[2]: int(now)})
        assert one.of("shop", 2) == pytest.approx(1 / 3 if now <= MOVED_WITHIN else 1 / 2)


def test_each_class_of_a_route_has_its_own_part() -> None:
    one = part()
    one.add(0.0, {CAMPAIGN[0]: 0, Partition("orders", 0): 0}, dict.fromkeys(CAMPAIGN[1:3], 9))
    assert one.of("shop", 2) == pytest.approx(1 / 3)
    assert one.of("shop", 1) == 1.0


def test_something_is_left_for_an_event_to_come_when_nothing_of_ours_has_moved() -> None:
    one = part()
    one.add(0.0, {}, dict.fromkeys(CAMPAIGN, 3))
    assert one.of("shop", 2) == 1 / len(CAMPAIGN)
