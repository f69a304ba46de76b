"""What consumers could take: known while something waited, at least what they took elsewhere."""

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest

from proxy.tuning.intake import Stretch, filled, intake, joined, sharpened, smoothed
from proxy.tuning.recording import Recording

Make = Callable[..., dict[str, Any]]


def waits(rates: list[tuple[float, float]], chance: Random, seconds: float = 40.0) -> Iterator[tuple[float, int, int]]:
    """Yield instants, confirms since the one before, depth: kept at about 20 whatever the consumers take."""
    depth, tick = 20, 0.25
    for number in range(1, round(seconds / tick)):
        at = number * tick
        rate = next(value for second, value in reversed(rates) if second < at)
        taken = sum(chance.random() < 0.5 for _ in range(round(2 * rate * tick)))
        confirmed = chance.randint(max(0, taken - 5), taken + 5)
        confirmed = max(confirmed, taken - depth + 10)
        depth += confirmed - taken
        yield at, confirmed, depth


@pytest.mark.parametrize("rates", [[(0, 300)], [(0, 400), (10, 100), (20, 400)], [(0, 50), (20, 300)]])
def test_the_capacity_and_its_changes_are_found_when_something_waits(
    rates: list[tuple[float, float]], interval: Make, verdict: Make
) -> None:
    told = [verdict(at, samples=new, depth=depth) for at, new, depth in waits(rates, Random(1))]
    found = intake(Recording.of([*told, interval(1), interval(40)]), "r")
    assert found is not None
    assert len(found.capacity) == len(rates)
    for (second, rate), (true_second, true_rate) in zip(found.capacity, rates, strict=True):
        assert second == pytest.approx(true_second, abs=0.5)
        assert rate == pytest.approx(true_rate, rel=0.08)
    assert found.known > 0.95


def test_consumers_that_were_never_busy_can_do_twice_what_they_did(interval: Make, route: Make) -> None:
    told = [route(at, confirmed=50, depth=0) for at in range(1, 41)]
    found = intake(Recording.of([*told, interval(1), interval(40)]), "r")
    assert found is not None
    assert (found.capacity, found.known, found.bound, found.consumers) == (((0.0, 100.0),), 0.0, None, 4)


def test_the_bound_is_the_greatest_depth_when_something_was_refused(interval: Make, route: Make) -> None:
    told = [route(at, confirmed=50, depth=30 + at % 7, nacked=at == 20) for at in range(1, 41)]
    found = intake(Recording.of([*told, interval(1), interval(40)]), "r")
    assert found is not None
    assert found.bound == 36


def test_nothing_is_known_when_no_depth_is(interval: Make, route: Make) -> None:
    told = [route(at, confirmed=50, depth=None) for at in range(1, 41)]
    assert intake(Recording.of([*told, interval(1), interval(40)]), "r") is None


def stretch(begins: float, ends: float, rate: float, *, was_enough: bool = True) -> Stretch:
    return Stretch(begins, ends, rate * (ends - begins), ends - begins, was_enough=was_enough)


def test_between_two_rates_the_higher_one_is_filled_in() -> None:
    known = [stretch(0, 10, 100), stretch(12, 20, 400)]
    assert list(filled(known, [stretch(10, 12, 50, was_enough=False)])) == [(0.0, 100.0), (10, 400.0)]


def test_more_is_filled_in_when_more_was_taken() -> None:
    known = [stretch(0, 10, 100), stretch(12, 20, 100)]
    found = list(filled(known, [stretch(10, 12, 300, was_enough=False)]))
    assert found == [(0.0, 100.0), (10, 300.0), (12, 100.0)]


def test_stretches_that_differ_by_chance_only_are_one() -> None:
    chance = Random(3)
    every = [stretch(at / 4, (at + 1) / 4, chance.gauss(400, 20)) for at in range(100)]
    assert len(joined(every)) == 1


def test_a_rate_that_falls_on_and_on_is_a_ramp_and_one_that_turns_back_a_step() -> None:
    ramp = list(smoothed([(0.0, 300.0), (2.0, 200.0), (4.0, 100.0)], 6.0))
    assert [rate for _, rate in ramp] == [300 - 12.5 * step for step in range(17)]
    assert (round(ramp[1][0], 2), round(ramp[-1][0], 2)) == (1.12, 4.88)
    steps = [(0.0, 400.0), (10.0, 100.0), (13.0, 400.0)]
    assert list(smoothed(steps, 20.0)) == steps


def test_nothing_is_said_of_consumers_that_are_away(interval: Make, route: Make) -> None:
    told = [
        route(at, confirmed=0 if 10 < at <= 14 else 100, depth=30, consumers=0 if 10 < at <= 14 else 4)
        for at in range(1, 41)
    ]
    found = intake(Recording.of([*told, interval(1), interval(40)]), "r")
    assert found is not None
    assert found.absent == ((10.0, 15.0),)
    assert found.capacity == ((0.0, 100.0),)


def test_a_short_stretch_between_two_rates_says_when_the_one_became_the_other() -> None:
    found = sharpened([stretch(0, 10, 400), stretch(10, 10.2, 250), stretch(10.2, 15, 100)])
    assert [(one.begins, round(one.ends, 3), one.rate) for one in found] == [(0, 10.1, 400), (10.1, 15, 100)]
    beyond = [stretch(0, 10, 400), stretch(10, 10.2, 50), stretch(10.2, 15, 100)]
    assert sharpened(beyond) == beyond
