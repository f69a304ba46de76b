"""A lane whose window adapts, on brokers of which one knows what a window can bring, under virtual time."""

import asyncio

import pytest

from proxy.publish_lane.pieces import UNPROVEN_EVENTS
from proxy.publish_lane.window_law import FIRST, LEAST_AIM, TIMES
from proxy.simulation import virtual_time
from tests.support.served_lane import ServedLane, Serving
from tests.unit.publish_lane.test_lane import in_virtual_time

FIXED = (50, 100, 200, 400, 800, 2_000)
WARM, SECONDS = 3.0, 1.0


async def measured(
    serving: Serving, *, window: int = 4_000, adapts: bool = True, warm: float = WARM
) -> tuple[float, float]:
    served = ServedLane(serving, window=window, adapts=adapts)
    async with served.running():
        await asyncio.sleep(warm if adapts else 0.5)
        return await served.rate(SECONDS)


@pytest.mark.parametrize(
    "serving",
    [
        Serving(),
        Serving(way=0.0055),
        Serving(way=0.0205),
        Serving(way=0.05),
        Serving(sync=0.005),
        Serving(event=0.0005),
    ],
    ids=["near", "5 ms", "20 ms", "50 ms", "disk", "slow"],
)
def test_it_brings_what_the_best_fixed_window_does_at_the_latency_that_it_aims_at(serving: Serving) -> None:
    fixed = {window: virtual_time.run(measured(serving, window=window, adapts=False)) for window in FIXED}
    rate, latency = virtual_time.run(measured(serving))
    best = max(one for one, _ in fixed.values())
    smallest = min(window for window, (one, _) in fixed.items() if one >= 0.95 * best)
    assert rate >= 0.95 * best
    # This broker's turns cost nothing, and no real one's do: that is what the window is wider for.
    assert latency <= max(1.25 * fixed[smallest][1], 1.4 * TIMES * (serving.way + 2 * serving.sync), 1.4 * LEAST_AIM)


@pytest.mark.parametrize(
    "serving",
    [Serving(piece=0.0005), Serving(sync=0.02), Serving(sync=0.005, way=0.0205)],
    ids=["dear pieces", "slow disk", "far disk"],
)
def test_it_does_not_narrow_until_nothing_passes_when_latency_is_not_of_its_making(serving: Serving) -> None:
    rate, latency = virtual_time.run(measured(serving, warm=9.0))
    best, _ = virtual_time.run(measured(serving, window=4_000, adapts=False))
    assert rate >= 0.75 * best
    assert latency < 0.25


@in_virtual_time
async def test_it_follows_a_way_that_becomes_longer_and_shorter() -> None:
    serving = Serving()
    served = ServedLane(serving)
    async with served.running():
        await asyncio.sleep(WARM)
        near = served.lane.window
        serving.way = 0.05
        await asyncio.sleep(25)
        assert served.lane.window > 2 * near
        assert (await served.rate(SECONDS))[0] >= 0.95 / serving.event
        serving.way = 0.0005
        await asyncio.sleep(25)
        assert served.lane.window < 1.5 * near


@in_virtual_time
async def test_it_does_not_open_while_the_broker_blocks_or_says_nothing() -> None:
    serving = Serving(way=0.0205)
    served = ServedLane(serving)
    async with served.running():
        await asyncio.sleep(WARM)
        before = served.lane.window
        serving.is_blocked = True
        await asyncio.sleep(5)
        assert served.lane.window <= before
        served.wire.unblock()
        for _ in range(20):
            await asyncio.sleep(0.05)
            assert served.lane.window <= 1.1 * before


@in_virtual_time
async def test_it_begins_anew_with_every_connection() -> None:
    served = ServedLane(Serving(way=0.05))
    async with served.running():
        await asyncio.sleep(WARM)
        assert served.lane.window > 2 * FIRST
        served.wire.lose()
        await asyncio.sleep(0.14)
        assert served.lane.in_flight == UNPROVEN_EVENTS
        await asyncio.sleep(0.05)
        assert served.lane.window == FIRST


@in_virtual_time
async def test_it_does_not_open_when_the_broker_refuses() -> None:
    serving = Serving(way=0.0205)
    served = ServedLane(serving)
    async with served.running():
        await asyncio.sleep(0.12)
        before = served.lane.window
        serving.refuses = True
        await asyncio.sleep(0.5)
        assert served.lane.window <= before


@pytest.mark.parametrize("bound", [1, 7, 150])
def test_it_fills_its_bound_and_never_exceeds_it_when_more_would_help(bound: int) -> None:
    in_flight, widths = virtual_time.run(seen(bound))
    assert max(in_flight) == max(widths) == widths[-1] == bound


async def seen(bound: int) -> tuple[list[int], list[int]]:
    """Return how much was in flight on a long way, and how wide the window was, every 3 ms of three seconds."""
    served = ServedLane(Serving(way=0.05), window=bound)
    in_flight, widths = list[int](), list[int]()
    async with served.running():
        for _ in range(1_000):
            await asyncio.sleep(0.003)
            in_flight.append(served.lane.in_flight)
            widths.append(served.lane.window)
    return in_flight, widths


@in_virtual_time
async def test_a_fixed_window_stays_as_it_is() -> None:
    served = ServedLane(Serving(way=0.05), window=300, adapts=False)
    async with served.running():
        for _ in range(100):
            await asyncio.sleep(0.05)
            assert served.lane.window == 300


@pytest.mark.parametrize("serving", [Serving(), Serving(way=0.0205), Serving(event=0.005)], ids=["near", "far", "slow"])
def test_the_lowest_class_has_its_trickle_of_a_window_that_adapts(serving: Serving) -> None:
    share = virtual_time.run(lowest_share(serving))
    assert 0.02 <= share <= 0.035


async def lowest_share(serving: Serving) -> float:
    served = ServedLane(serving)
    async with served.running(0, 2):
        await asyncio.sleep(12)
    ended = {rank: sender.ended for rank, sender in served.senders.items()}
    return ended[2] / sum(ended.values())
