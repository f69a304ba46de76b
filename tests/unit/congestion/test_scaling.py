"""How many consumers are wanted, against consumers that do what the test says."""

from collections.abc import Callable
from itertools import pairwise
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.congestion.scaling import CALM, GROWTH, KNEE_SECONDS, SOFT_KNEE_SECONDS, Scaling, Sight, Wanted

WORK_OFF = 60.0


class World:
    """A backlog, consumers that take from it, and a scaler that does what is wanted `delay` seconds late."""

    def __init__(self, capacity: Callable[[int], float], *, consumers: int = 4, unit: int = 1, delay: int = 30) -> None:
        self.scaling = Scaling(unit, WORK_OFF)
        self.capacity = capacity
        self.consumers = consumers
        self.backlog = 0.0
        self.now = 0
        self.wishes: list[int] = []
        self.counts: list[int] = []
        self.told = Wanted(None, "")
        self._delay = delay

    def live(self, seconds: int, demand: float) -> None:
        for _ in range(seconds):
            self.now += 1
            able = self.capacity(self.consumers)
            self.backlog = max(0.0, self.backlog + demand - able)
            taken = able if self.backlog else min(able, demand)
            self.told = self.scaling.look(
                Sight(
                    at=float(self.now),
                    consumers=self.consumers,
                    taken=taken,
                    is_capacity=self.backlog > 0,
                    demand=demand,
                    backlog=self.backlog,
                )
            )
            self.wishes.append(self.consumers if self.told.consumers is None else self.told.consumers)
            if len(self.wishes) > self._delay:
                self.consumers = self.wishes[-self._delay - 1]
            self.counts.append(self.consumers)


class TwoQueues:
    """Every event goes to two queues, and no faster than the slower one's consumers take: a log for both."""

    def __init__(self, *each: float) -> None:
        self.each = each
        self.scalings = [Scaling(1, WORK_OFF, is_one_of_several=True) for _ in each]
        self.counts = [[4] for _ in each]
        self.wishes: list[list[int]] = [[] for _ in each]
        self.told = [Wanted(None, "")] * len(each)
        self.backlog = 0.0
        self.now = 0

    def live(self, seconds: int, demand: float, *, delay: int = 30) -> None:
        for _ in range(seconds):
            self.now += 1
            able = [each * counts[-1] for each, counts in zip(self.each, self.counts, strict=True)]
            taken = min(*able, self.backlog + demand)
            self.backlog += demand - taken
            for place, scaling in enumerate(self.scalings):
                self.told[place] = scaling.look(
                    Sight(
                        at=float(self.now),
                        consumers=self.counts[place][-1],
                        taken=taken,
                        is_capacity=taken == able[place],
                        given=taken,
                        demand=demand,
                        backlog=self.backlog,
                    )
                )
                count = self.told[place].consumers
                self.wishes[place].append(self.counts[place][-1] if count is None else count)
                self.counts[place].append(self.wishes[place][max(0, len(self.wishes[place]) - delay)])


def linear(count: int) -> float:
    return 75.0 * count


def knee_at(most: int) -> Callable[[int], float]:
    return lambda count: 75.0 * min(count, most)


def test_as_many_are_wanted_as_take_what_comes_and_work_off_the_rest() -> None:
    world = World(linear)
    world.live(60, 150)
    assert world.consumers == 4
    world.live(300, 480)
    assert max(world.counts) <= 10, "480/s are 6.4, and the backlog of the first minute some more"
    assert world.backlog < 2 * 480
    world.live(600, 150)
    assert world.consumers == 3, "150/s are 2, used to 80 % at most: 2.5"
    changes = sum(before != after for before, after in pairwise(world.counts))
    assert changes <= 6, "no hunting"


@pytest.mark.parametrize(("quick", "least"), [(50.0, 4), (60.0, 4), (75.0, 3), (150.0, 2), (1_000.0, 4)])
def test_each_of_two_queues_gets_the_consumers_that_it_needs_and_not_those_that_the_other_needs(
    quick: float, least: int
) -> None:
    world = TwoQueues(50.0, quick)
    world.live(60, 150)
    world.live(600, 480)
    slow_most, quick_most = (max(counts) for counts in world.counts)
    assert world.backlog < 2 * 480
    assert 10 <= slow_most <= 20
    assert quick_most <= max(4, ceil(slow_most * 50 / quick) + 1), "what the slow one lets through, and one more"
    world.live(900, 150)
    assert [counts[-1] for counts in world.counts] == [4, least], "1,000/s: never measured, so never given up"
    for counts in world.counts:
        assert sum(before != after for before, after in pairwise(counts)) <= 8, "no hunting"


@pytest.mark.parametrize("is_known_by", ["what goes to them", "a queue that is never empty"])
def test_no_more_are_wanted_of_one_of_several_queues_while_its_consumers_have_time_to_spare(is_known_by: str) -> None:
    one_of_several, alone = Scaling(1, WORK_OFF, is_one_of_several=True), Scaling(1, WORK_OFF)

    def looked(since: int, until: int, given: float, backlog: float, *, is_capacity: bool = False) -> list[int | None]:
        for second in range(since, until):
            sight = Sight(
                at=float(second),
                consumers=4,
                taken=400.0,
                is_capacity=is_capacity,
                demand=200.0,
                backlog=backlog,
                given=given,
            )
            told = [scaling.look(sight) for scaling in (one_of_several, alone)]
        is_held = told[0].why.endswith("these have time to spare, the log waits for another queue")
        assert is_held is (told[0].consumers != told[1].consumers)
        return [one.consumers for one in told]

    assert looked(0, 20, 400.0, backlog=0.0, is_capacity=True) == [4, 4]
    assert looked(20, 30, 200.0, backlog=0.0) == [4, 4]
    assert looked(30, 90, 200.0, backlog=60_000.0) == [4, 6]
    assert looked(90, 93, 400.0, backlog=60_000.0) == [4, 6]
    if is_known_by == "what goes to them":
        assert looked(93, 120, 380.0, backlog=60_000.0) == [6, 6]
    else:
        assert looked(93, 120, 0.0, backlog=60_000.0, is_capacity=True) == [6, 6]


@pytest.mark.parametrize("knee", [4, 6, 8, 9, 12, 20])
def test_no_more_are_wanted_than_the_knee_once_it_was_seen(knee: int) -> None:
    world = World(knee_at(knee))
    world.live(600, 3_000)
    assert world.told.knee is not None
    assert knee <= world.told.knee <= knee + 1
    assert max(world.counts) <= GROWTH * knee
    settled = len(world.counts)
    world.live(900, 3_000)
    assert max(world.counts[settled:]) <= knee + 1
    changes = sum(before != after for before, after in pairwise(world.counts[settled:]))
    assert changes <= 2 * 900 / SOFT_KNEE_SECONDS, "tried again now and then, no hunting"


def test_one_beyond_the_knee_is_wanted_at_most_when_it_lies_at_twice_as_many() -> None:
    world = World(knee_at(8))
    world.live(1_800, 1_200)
    assert max(world.counts) == 9


def test_more_are_wanted_as_long_as_they_help_when_each_brings_a_little_less() -> None:
    world = World(lambda count: 75.0 * 4 * (count / 4) ** 0.8)
    world.live(900, 600)
    assert world.backlog < 2 * 600
    assert 10 <= world.consumers <= 16


def test_the_knee_is_tried_again_when_half_an_hour_has_passed() -> None:
    world = World(knee_at(8))
    world.live(400, 1_200)
    assert world.consumers == 8
    world.capacity = linear
    world.live(round(KNEE_SECONDS) + 400, 1_200)
    assert world.consumers >= 16


def test_consumers_are_given_up_late_and_all_at_once_when_demand_falls() -> None:
    world = World(linear, consumers=8, delay=1)
    world.live(30, 700)
    world.live(round(CALM) - 5, 75)
    assert world.consumers >= 8
    world.live(60, 75)
    assert world.consumers == 2


def test_what_is_wanted_is_a_multiple_of_what_comes_together() -> None:
    world = World(linear, consumers=8, unit=8)
    world.live(300, 1_000)
    assert world.consumers == 16


def test_one_unit_is_wanted_when_there_is_nobody_and_something_waits() -> None:
    scaling = Scaling(4, WORK_OFF)
    none = {"consumers": 0, "taken": 0.0, "is_capacity": False}
    assert scaling.look(Sight(at=1.0, demand=10.0, backlog=0.0, **none)).consumers == 4
    assert scaling.look(Sight(at=2.0, demand=0.0, backlog=0.0, **none)).consumers == 0


@pytest.mark.parametrize("unknown", ["consumers", "taken", "demand", "backlog"])
def test_nothing_is_wanted_and_the_reason_said_when_something_is_not_known(unknown: str) -> None:
    known = {"consumers": 4, "taken": 300.0, "demand": 300.0, "backlog": 0.0}
    told = Scaling(1, WORK_OFF).look(Sight(at=1.0, is_capacity=True, **(known | {unknown: None})))
    assert told.consumers is None
    assert told.why.startswith("not known: ")


@given(
    st.lists(
        st.tuples(st.integers(0, 40), st.floats(0, 1e5), st.booleans(), st.floats(0, 1e5), st.floats(0, 1e7)),
        min_size=1,
        max_size=60,
    ),
    st.integers(1, 9),
)
def test_never_more_than_half_as_many_again_as_there_were_are_wanted_whatever_is_seen(
    seen: list[tuple[int, float, bool, float, float]], unit: int
) -> None:
    scaling, most = Scaling(unit, WORK_OFF), 0
    for at, (consumers, taken, is_capacity, demand, backlog) in enumerate(seen):
        told = scaling.look(
            Sight(
                at=float(at), consumers=consumers, taken=taken, is_capacity=is_capacity, demand=demand, backlog=backlog
            )
        )
        most = max(most, consumers)
        assert told.consumers is not None
        assert told.consumers % unit == 0
        assert 0 <= told.consumers < max(most + unit, GROWTH * most) + unit
