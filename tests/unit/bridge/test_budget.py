"""The budget over all inboxes: who is paused as it fills, and who is not."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.bridge.budget import KEPT_FOR_HIGHER, OLD_PRESSURE, OWN_SHARE, RELIEF, Budget, Holding


@dataclass
class Told:
    """An inbox that the budget presses."""

    is_paused: bool = False
    is_old_paused: bool = False

    def press(self, cause: str, *, on: bool) -> None:
        assert (cause, on) == ("budget", not self.is_paused), "told what is new only"
        self.is_paused = on

    def press_old(self, *, on: bool) -> None:
        assert on is not self.is_old_paused
        self.is_old_paused = on


def joined(budget: Budget, rank: int) -> tuple[Told, Holding]:
    told = Told()
    return told, budget.join(told, rank)


def fill(holding: Holding, size: int) -> None:
    """Add so much by hundreds, then ten bytes, so that one more like the last would be little."""
    for step in [size % 100] + [100] * (size // 100 - 1) + [10] * 10:
        holding.add(step)


def test_the_lowest_class_is_paused_first_and_resumed_with_a_distance_when_what_is_in_common_fills_and_empties() -> (
    None
):
    budget = Budget(16_000, 3)  # 1000 for each of eight, 8000 in common; four hold nothing, and four fetch by tens
    made = [joined(budget, rank) for rank in range(3)]
    _, filler = joined(budget, 0)
    for _ in range(4):
        joined(budget, 0)
    for _, holding in made:
        fill(holding, 1000)

    def state() -> list[bool]:
        return [told.is_paused for told, _ in made]

    fill(filler, 1000 + 6350)
    states = []
    for change in (0, 10, 800, 800, -800, -800, -790, -10):
        for _ in range(abs(change) // 10):
            filler.add(10 if change > 0 else -10)
        states.append(state())
    assert states == [
        [False, False, False],
        [False, False, True],
        [False, True, True],
        [True, True, True],
        [False, True, True],
        [False, False, True],
        [False, False, True],
        [False, False, False],
    ]


def test_an_inbox_flows_within_its_own_part_when_others_fill_all_the_rest() -> None:
    budget = Budget(8000, 3)
    (lowest, own), (_, other) = joined(budget, 2), joined(budget, 0)
    other.add(2000 + 4000)
    fill(own, 1580)
    states = [lowest.is_paused]
    for change in (9, 10, -208, -1):  # 80 and 70 % of 2000, with ten more
        own.add(change)
        states.append(lowest.is_paused)
    assert states == [False, False, True, True, False]


def test_an_inbox_whose_fetches_are_large_takes_one_when_it_is_empty_and_others_fill_all_the_rest() -> None:
    budget = Budget(8000, 3)
    (told, own), (_, other) = joined(budget, 0), joined(budget, 0)
    other.add(2000 + 4000)
    states = []
    for change in (1900, -1899, -1):
        own.add(change)
        states.append(told.is_paused)
    assert states == [True, True, False], "another would exceed its part, until nothing is left"


def test_all_are_paused_when_fetches_have_exceeded_their_parts_and_all_is_used() -> None:
    budget = Budget(8000, 3)
    (told, own), (_, other) = joined(budget, 0), joined(budget, 0)
    own.add(1)
    other.add(7998)
    assert not told.is_paused
    other.add(1)
    assert (told.is_paused, told.is_old_paused) == (True, True)
    other.add(-1)
    assert (told.is_paused, told.is_old_paused) == (False, False), "what stands still may hold nearly all"


def test_there_is_room_for_an_empty_inbox_when_many_fetch_at_once_until_what_is_in_common_is_short() -> None:
    budget = Budget(15_000, 3)  # 250 for each of thirty, 7500 in common
    many = [joined(budget, 0) for _ in range(29)]
    quick, own = joined(budget, 0)
    own.add(1)
    while fetching := [holding for told, holding in many if not told.is_paused]:
        for holding in fetching:
            holding.add(100)
    assert not quick.is_paused
    assert budget.used < 15_000


def test_nothing_is_looked_at_for_a_single_event_when_little_is_used_although_large_fetches_came_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    budget, looks = Budget(100_000, 3), list[int]()
    made = [joined(budget, 0) for _ in range(30)]
    for _, holding in made:
        holding.add(4000)
        holding.add(-4000)
    monkeypatch.setattr(budget, "_look", lambda: looks.append(budget.used))
    made[0][1].add(1)
    assert (budget.used, looks) == (1, [])


def test_the_highest_class_flows_on_when_first_fetches_of_lower_ones_exceed_their_parts() -> None:
    budget = Budget(8000, 3)
    (highest, own), (lowest, _) = joined(budget, 0), joined(budget, 2)
    others = [joined(budget, 2) for _ in range(6)]
    own.add(1)
    for told, other in others:
        if not told.is_paused:
            other.add(1920)
    assert budget.used == 7681
    assert [lowest.is_paused, highest.is_paused] == [True, False]


def test_what_catches_up_is_paused_before_the_lowest_class_and_not_within_its_own_part() -> None:
    budget = Budget(8000, 3)
    (told, own), (_, other) = joined(budget, 0), joined(budget, 0)
    other.add(2000 + int(OLD_PRESSURE * 4000))
    fill(own, int(OLD_PRESSURE * 2000) - 15)
    assert not told.is_old_paused
    own.add(10)
    assert (told.is_old_paused, told.is_paused) == (True, False)


def test_parts_are_shared_out_anew_when_inboxes_join_and_leave() -> None:
    budget = Budget(8000, 3)
    (told, own), (_, other) = joined(budget, 0), joined(budget, 0)
    other.add(6000)
    fill(own, 1500)
    assert not told.is_paused
    more = [joined(budget, 0)[1] for _ in range(2)]
    own.add(0)
    assert told.is_paused, "1000 is its own now"
    for one in more:
        one.leave()
    own.add(0)
    assert not told.is_paused


def test_an_inbox_that_left_is_counted_until_the_lane_is_through_with_what_it_was_handed() -> None:
    budget = Budget(8000, 3)
    (told, own), (_, other) = joined(budget, 0), joined(budget, 0)
    fill(other, 5600)
    fill(own, 2000)
    other.leave()
    assert (budget.used, told.is_paused) == (7600, False)
    other.add(-5600)
    own.add(1)
    assert (budget.used, told.is_paused, budget._own, budget._in_common) == (2001, False, 4000, 0)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(-900, 300)), max_size=80), st.integers(2, 6))
def test_the_budget_is_kept_and_nobody_is_paused_within_his_own_part_whatever_comes_and_goes(
    steps: list[tuple[int, int]], inboxes: int
) -> None:
    limit = 6000
    budget = Budget(limit, 3)
    made = [joined(budget, number % 3) for number in range(inboxes)]
    own = OWN_SHARE * limit / inboxes
    for number, change in steps:
        told, holding = made[number % inboxes]
        if change > 0 and told.is_paused:
            continue
        holding.add(max(change, -holding.used))
        uses = [one.used for _, one in made]
        assert budget.used == sum(uses)
        assert budget.used < limit + 300, "one exceeds it before all are paused"
        assert budget._in_common == sum(max(use - budget._own, 0) for use in uses)
        for told, holding in made:
            point = 1 - 0.1 * holding.rank
            if budget.used < (1 - KEPT_FOR_HIGHER) * limit:
                assert told.is_paused <= (holding.used + holding.step > (point - RELIEF) * own - 1)
                assert told.is_paused <= (holding.used > 0)
            assert told.is_paused >= (budget.used >= limit)
            full = budget._in_common >= point * budget._common and holding.used >= point * own
            assert told.is_paused >= full


class Thorough(Budget):
    """Looks at all points at every change, also where nothing is near one."""

    def count(self, holding: Holding, size: int) -> None:
        self._is_calm = False
        super().count(holding, size)


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("count"), st.integers(0, 5), st.integers(-3_000, 3_000)),
            st.tuples(st.just("bound"), st.just(0), st.integers(2_000, 20_000)),
            st.tuples(st.just("leave"), st.integers(0, 5), st.just(0)),
        ),
        max_size=60,
    )
)
def test_the_same_inboxes_are_paused_when_points_are_looked_at_only_where_one_is_near(
    steps: list[tuple[str, int, int]],
) -> None:
    budgets = Budget(10_000, 3), Thorough(10_000, 3)
    made = [[joined(budget, number % 3) for number in range(6)] for budget in budgets]
    for what, number, amount in steps:
        for budget, inboxes in zip(budgets, made, strict=True):
            _, holding = inboxes[number]
            if what == "bound":
                budget.go_by(amount)
            elif what == "leave" and not holding.is_left:
                holding.leave()
            elif what == "count" and not holding.is_left:
                holding.add(max(amount, -holding.used))
        states = [[(told.is_paused, told.is_old_paused) for told, _ in inboxes] for inboxes in made]
        assert states[0] == states[1]
