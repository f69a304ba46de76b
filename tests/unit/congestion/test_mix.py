"""What waits costs what was put in last."""

import pytest

from proxy.congestion.mix import MOST, Mix
from proxy.congestion.reading import Inflow


def inflow(confirmed: tuple[int, ...], costs: tuple[float, ...], others: float = 0.0, cost: float = 1.0) -> Inflow:
    """Return own events so far at a cost each, beside `others` a second at `cost`."""
    charged = tuple(count * each for count, each in zip(confirmed, costs, strict=True))
    return Inflow(confirmed, tuple(True for _ in confirmed), others, charged, cost)


def test_a_message_costs_one_when_nothing_was_ever_said_of_cost() -> None:
    mix = Mix()
    mix.add(0.0, Inflow((5, 7), (True, True)))
    assert (mix.cost_of_last(3), mix.mean, mix.lump) == (3.0, 1.0, 1.0)


def test_what_waits_is_what_came_last_when_costs_differ() -> None:
    mix = Mix()
    mix.add(0.0, inflow((0, 0), (1.0, 10.0)))
    mix.add(1.0, inflow((8, 0), (1.0, 10.0)))
    mix.add(2.0, inflow((8, 4), (1.0, 10.0)))
    assert [mix.cost_of_last(count) for count in (0, 1, 4, 6, 12)] == [0.0, 10.0, 40.0, 42.0, 48.0]
    assert mix.mean == 4.0
    assert mix.lump == pytest.approx(408 / 48)


def test_events_between_two_looks_are_taken_for_evenly_mixed() -> None:
    mix = Mix()
    mix.add(0.0, inflow((0, 0), (1.0, 10.0)))
    mix.add(1.0, inflow((6, 2), (1.0, 10.0)))
    assert mix.cost_of_last(4) == pytest.approx(13.0)


def test_what_was_there_before_costs_what_is_usual_since() -> None:
    mix = Mix()
    assert mix.cost_of_last(100) == 100.0
    mix.add(0.0, inflow((0,), (3.0,)))
    mix.add(1.0, inflow((10,), (3.0,)))
    assert mix.cost_of_last(100) == pytest.approx(300.0)


def test_what_other_replicas_put_in_counts_by_its_own_cost() -> None:
    mix = Mix()
    mix.add(0.0, inflow((0,), (1.0,), others=30.0, cost=10.0))
    mix.add(1.0, inflow((60,), (1.0,), others=30.0, cost=10.0))
    assert mix.cost_of_last(90) == pytest.approx(360.0)
    assert mix.cost_of_last(9) == pytest.approx(36.0)


def test_no_more_looks_are_remembered_than_are_needed_when_a_run_is_long() -> None:
    mix = Mix()
    for tick in range(3 * MOST):
        mix.add(tick * 0.05, inflow((tick,), (2.0,)))
    assert len(mix._sums) == MOST
    assert mix.cost_of_last(2 * MOST) == pytest.approx(4 * MOST)
