"""What part of the lowest class's share is one replica's: all parts together are the share, whoever has what."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.model import Partition
from proxy.steering.lowest_part import MOVED_WITHIN, LowestPart

ROUTES = {"campaign": "shop", "letters": "mail"}
CAMPAIGN = [Partition("campaign", number) for number in range(12)]


def part() -> LowestPart:
    return LowestPart(ROUTES.get)


def test_all_of_it_is_ours_when_nobody_else_has_anything_of_the_class() -> None:
    lowest = part()
    assert lowest.of("shop") == 1.0
    lowest.add(0.0, {CAMPAIGN[0]: 0}, {Partition("orders", 0): 7, Partition("letters", 0): 7})
    assert lowest.of("shop") == 1.0


@given(st.lists(st.integers(1, 6), min_size=1, max_size=50))
def test_the_parts_add_up_to_one_when_each_of_many_replicas_has_some(owned: list[int]) -> None:
    partitions = iter([Partition("campaign", number) for number in range(sum(owned))])
    of_each = [{next(partitions): 0 for _ in range(count)} for count in owned]
    parts = []
    for place, ours in enumerate(of_each):
        lowest = part()
        lowest.add(0.0, ours, {at: 9 for other, has in enumerate(of_each) if other != place for at in has})
        parts.append(lowest.of("shop"))
    assert sum(parts) == pytest.approx(1.0)


def test_who_has_been_idle_for_long_has_no_part_any_more() -> None:
    lowest = part()
    for now in (0.0, MOVED_WITHIN / 2, MOVED_WITHIN, MOVED_WITHIN + 1):
        lowest.add(now, {CAMPAIGN[0]: int(now)}, {CAMPAIGN[1]: 5, CAMPAIGN[2]: int(now)})
        assert lowest.of("shop") == pytest.approx(1 / 3 if now <= MOVED_WITHIN else 1 / 2)


def test_something_is_left_for_an_event_to_come_when_nothing_of_ours_has_moved() -> None:
    lowest = part()
    lowest.add(0.0, {}, dict.fromkeys(CAMPAIGN, 3))
    assert lowest.of("shop") == 1 / len(CAMPAIGN)
