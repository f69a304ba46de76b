"""Whatever is sent at whatever cost: it is charged once, waiting messages cost what they cost, and work is shared."""

import asyncio
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.congestion.divider import Divider
from proxy.congestion.mix import Mix
from proxy.congestion.reading import Inflow
from proxy.simulation import virtual_time
from proxy.steering.budgeted import BudgetedThrottle, Charge, Tiers
from proxy.steering.gate import Gate

RATE = 300.0
COSTS = (1.0, 10.0, 0.5)
_sent = st.lists(st.tuples(*[st.integers(0, 5) for _ in COSTS]), max_size=30)
_cost = st.sampled_from([0.1, 0.5, 1.0, 2.0, 7.0, 10.0, 40.0])


def budget() -> Gate:
    """Return a budget of which the lowest of three classes has `RATE`, those above as much as they want."""
    gate = Gate(Divider(tiers=3, pools=3, now=asyncio.get_running_loop().time()))
    gate.set_rate(0, inf, inf)
    gate.set_rate(1, inf, inf)
    gate.set_rate(2, RATE, RATE * 0.05, debt=200.0)
    return gate


@given(_sent, st.integers(0, 200))
@settings(max_examples=200)
def test_waiting_messages_cost_no_less_and_no_more_than_they_can_when_anything_was_sent(
    sent: list[tuple[int, ...]], ready: int
) -> None:
    mix, counts, in_order = Mix(), [0] * len(COSTS), list[float]()
    mix.add(0.0, Inflow(tuple(counts), (True,) * len(COSTS), 0.0, (0.0,) * len(COSTS)))
    for tick, more in enumerate(sent, start=1):
        counts = [count + new for count, new in zip(counts, more, strict=True)]
        charged = tuple(count * cost for count, cost in zip(counts, COSTS, strict=True))
        mix.add(tick * 0.05, Inflow(tuple(counts), (True,) * len(COSTS), 0.0, charged))
        pieces = sum(more)
        mean = sum(new * cost for new, cost in zip(more, COSTS, strict=True)) / pieces if pieces else 0.0
        in_order += [mean] * pieces
    told = mix.cost_of_last(ready)
    if ready <= len(in_order):
        assert told == pytest.approx(sum(in_order[len(in_order) - ready :]), abs=1e-6)
    assert ready * min(COSTS) - 1e-6 <= told <= ready * max(COSTS) + 1e-6


@given(st.lists(st.tuples(st.integers(0, 2), _cost, st.integers(1, 40), st.floats(0, 1)), min_size=1, max_size=12))
@settings(max_examples=60)
def test_every_event_is_charged_once_when_some_are_not_sent_and_some_give_up(
    types: list[tuple[int, float, int, float]],
) -> None:
    async def story() -> None:
        gate, sent = budget(), 0.0

        async def send(rank: int, cost: float, want: int, kept: float) -> None:
            nonlocal sent
            throttle = BudgetedThrottle(gate, Tiers(rank, 3), Charge(cost, turn=max(one[1] for one in types)))
            for turn in range(5):
                granted = await throttle.admit(want, size=100.0, again=turn == 3)
                used = int(kept * granted)
                throttle.settle(used, used * 100)
                sent += used * cost

        runs = [asyncio.create_task(send(*one)) for one in types]
        await asyncio.sleep(0.5)
        runs[0].cancel()
        await asyncio.gather(*runs, return_exceptions=True)
        assert gate.taken == pytest.approx(sent, abs=1e-6)
        assert gate.callers == gate.requests == 0

    virtual_time.run(story())


@given(st.lists(_cost, min_size=2, max_size=5), st.integers(0, 2))
@settings(max_examples=15)
def test_types_of_a_class_share_the_work_and_not_the_events_when_they_cost_differently(
    costs: list[float], above: int
) -> None:
    seconds = 30.0

    async def story() -> None:
        gate, done = budget(), [0.0] * len(costs)

        async def send(place: int) -> None:
            throttle = BudgetedThrottle(gate, Tiers(2, 3), Charge(costs[place], turn=max(costs)))
            while True:
                granted = await throttle.admit(10_000, size=100.0, again=False)
                throttle.settle(granted, granted * 100)
                done[place] += granted * costs[place]

        async def urgent() -> None:
            throttle = BudgetedThrottle(gate, Tiers(0, 3), Charge(10.0, turn=10.0))
            while above:
                await asyncio.sleep(0.1)
                granted = await throttle.admit(above, size=100.0, again=False)
                throttle.settle(granted, granted * 100)

        runs = [asyncio.create_task(send(place)) for place in range(len(costs))] + [asyncio.create_task(urgent())]
        await asyncio.sleep(seconds)
        for run in runs:
            run.cancel()
        await asyncio.gather(*runs, return_exceptions=True)
        left = RATE - above * 10.0 * 10
        assert sum(done) == pytest.approx(left * seconds, rel=0.03, abs=2 * max(costs) + 30), (
            "what is above is subtracted as it costs"
        )
        assert max(done) - min(done) <= 0.06 * max(done) + 2 * max(costs)

    virtual_time.run(story())
