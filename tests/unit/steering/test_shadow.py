"""A policy that is only watched: everything goes at once; what it would have done is known."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from proxy.congestion.collector import Way
from proxy.congestion.divider import Divider
from proxy.congestion.reading import Inflow, QueueReading, Reading
from proxy.settings import EventType, RoutingKey
from proxy.simulation import virtual_time
from proxy.steering.budgeted import BudgetedThrottle, Tiers
from proxy.steering.gate import Gate
from proxy.steering.shadow import RouteShadow, ShadowThrottle, Watched

WAY = Way(("work",))


def kind(name: str, priority: str = "P3") -> EventType:
    return EventType(name=name, topic=name, priority=priority, route="main", routing_key=RoutingKey(constant="q"))


def lived(story: Callable[[], Awaitable[None]]) -> None:
    async def live() -> None:
        await story()

    virtual_time.run(live())


def gate(rate: float) -> Gate:
    made = Gate(Divider(tiers=3, pools=1, now=asyncio.get_running_loop().time()))
    made.set_rate(0, rate, max(1.0, rate * 0.05))
    return made


@asynccontextmanager
async def running(shadow: RouteShadow) -> AsyncIterator[None]:
    task = asyncio.create_task(shadow.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()


def around(
    shadow: RouteShadow, name: str, to: Gate, rank: int = 2, *, catches_up: bool = False, way: Way = WAY
) -> ShadowThrottle:
    inner = BudgetedThrottle(to, Tiers(rank, 3, catches_up=catches_up))
    return shadow.around(kind(name), rank, way, inner, catches_up=catches_up)


async def send(throttle: ShadowThrottle, events: int, *, again: bool = False) -> None:
    before = asyncio.get_running_loop().time()
    assert await throttle.admit(events, size=10.0, again=again) == events
    throttle.settle(events, events * 10)
    assert asyncio.get_running_loop().time() == before, "it was held back"


def one(shadow: RouteShadow) -> Watched:
    (told,) = shadow.watched()
    return told


def reading(confirmed: int, ready: int, at: float = 0.0, *, others: float | None = 0.0, failed: int = 0) -> Reading:
    counts = (0, 0, confirmed)
    return Reading(
        at=at,
        queues=(QueueReading(ready, 4, at, 1.0),),
        names=("work",),
        inflows=(Inflow(counts, (True, True, True), others),),
        confirmed=counts,
        others=others,
        failed=failed,
        waited=(False, False, False),
    )


def test_everything_goes_at_once_and_the_rest_would_wait_when_the_rate_is_less() -> None:
    async def story() -> None:
        shadow = RouteShadow(3)
        throttle = around(shadow, "t", gate(10.0))
        async with running(shadow):
            await send(throttle, 100)
            await asyncio.sleep(2.0)
            told = one(shadow)
            assert (told.sent, told.passed + told.waiting) == (100, 100)
            assert told.passed == pytest.approx(20, abs=2)
            assert told.held == pytest.approx(99, abs=2)
            assert told.longest == pytest.approx(2.0, abs=0.1)
            await asyncio.sleep(20.0)
            told = one(shadow)
            assert (told.sent, told.held, told.waiting) == (0, 0, 0), "counted in the interval before"
            assert list(shadow.watched()) == []

    lived(story)


def test_nothing_would_wait_when_the_rate_is_enough() -> None:
    async def story() -> None:
        shadow = RouteShadow(3)
        throttle = around(shadow, "t", gate(1e6))
        async with running(shadow):
            for _ in range(100):
                await send(throttle, 3)
                await asyncio.sleep(0.02)
            told = one(shadow)
            assert (told.sent, told.passed, told.held, told.waiting) == (300, 300, 0, 0)

    lived(story)


def test_higher_classes_would_go_first_when_both_would_wait() -> None:
    async def story() -> None:
        shadow = RouteShadow(3)
        to = gate(100.0)
        low, high = around(shadow, "low", to), around(shadow, "high", to, rank=1)
        async with running(shadow):
            for _ in range(50):
                await send(low, 20)
                await send(high, 5)
                await asyncio.sleep(0.1)
            told = {one.event_type.name: one for one in shadow.watched()}
            assert told["high"].passed == pytest.approx(250, abs=10)
            assert told["low"].passed == pytest.approx(250, abs=15)
            assert told["low"].waiting == 1_000 - told["low"].passed

    lived(story)


def test_what_goes_again_and_letters_are_not_counted_twice() -> None:
    async def story() -> None:
        shadow = RouteShadow(3)
        throttle = around(shadow, "t", gate(10.0))
        async with running(shadow):
            await send(throttle, 5)
            await send(throttle, 5, again=True)
            await throttle.admit_letters(7, size=10.0)
            await asyncio.sleep(0.1)
            assert one(shadow).sent == 5

    lived(story)


def test_the_queue_that_is_seen_lacks_what_would_wait_and_only_that() -> None:
    async def story() -> None:
        shadow = RouteShadow(3)
        throttle = around(shadow, "t", gate(10.0))
        async with running(shadow):
            await send(throttle, 1_000)
            await asyncio.sleep(1.0)
            passed = 1_000 - throttle.waiting.events
            seen = shadow.as_held(reading(1_000, 700))
            assert seen.confirmed == (0, 0, passed) == seen.inflows[0].confirmed
            assert seen.charged == (0, 0, passed)
            assert seen.queues[0] is not None
            # 300 are done; of what would have been let through more than that is not there yet.
            assert seen.queues[0].ready == 0
            await asyncio.sleep(39.0)
            seen = shadow.as_held(reading(1_000, 690, at=40.0))
            assert seen.queues[0] is not None
            assert seen.queues[0].ready == pytest.approx(390 - 300 + 290 - 10, abs=15)

    lived(story)


def test_events_that_the_broker_refused_are_in_no_queue() -> None:
    async def story() -> None:
        shadow = RouteShadow(3)
        throttle = around(shadow, "t", gate(1e-3))
        async with running(shadow):
            await send(throttle, 1_000)
            await asyncio.sleep(0.1)
            seen = shadow.as_held(reading(200, 150))
            assert seen.queues[0] is not None
            assert seen.queues[0].ready == 0
            seen = shadow.as_held(reading(200, 240, at=1.0))  # somebody else's: 40
            assert seen.queues[0] is not None
            assert seen.queues[0].ready == 90, "50 that were done, 40 of others"

    lived(story)


def test_refusals_say_nothing_while_something_would_wait() -> None:
    async def story() -> None:
        shadow = RouteShadow(3)
        throttle = around(shadow, "t", gate(10.0))
        async with running(shadow):
            assert shadow.as_held(reading(0, 0, failed=3)).failed == 3
            await send(throttle, 100)
            await asyncio.sleep(0.1)
            assert shadow.as_held(reading(100, 50, failed=50)).failed == 3
            await asyncio.sleep(20.0)
            assert shadow.as_held(reading(100, 0, failed=51)).failed == 4

    lived(story)


def test_others_are_taken_to_hold_back_alike() -> None:
    async def story() -> None:
        shadow = RouteShadow(3, lambda: 0.5)
        throttle = around(shadow, "t", gate(10.0))
        async with running(shadow):
            shadow.as_held(reading(0, 0, at=0.0, others=100.0))
            await send(throttle, 100)
            await asyncio.sleep(2.0)
            seen = shadow.as_held(reading(100, 500, at=2.0, others=100.0))
            passed = 100 - throttle.waiting.events
            assert seen.others == pytest.approx(passed)
            assert seen.inflows[0].others == pytest.approx(passed)
            assert seen.queues[0] is not None
            assert seen.queues[0].ready == 500 - 2 * (100 - passed)
            assert shadow.as_held(reading(100, 500, at=2.1, others=None)).others is None

    lived(story)


def test_a_type_made_anew_goes_on_with_what_would_wait_and_none_is_watched_twice() -> None:
    async def story() -> None:
        shadow = RouteShadow(3)
        to = gate(10.0)
        before = around(shadow, "t", to)
        async with running(shadow):
            await send(before, 50)
            await asyncio.sleep(1.0)
            after = around(shadow, "t", to)
            await send(before, 50)  # was on its way
            await asyncio.sleep(1.0)
            told = one(shadow)
            assert (told.sent, told.passed + told.waiting) == (100, 100)
            assert told.passed == pytest.approx(20, abs=2)
            shadow.forget(kind("t"), before)
            assert [watched.event_type.name for watched in shadow.watched()] == ["t"]
            held = shadow.by_class()["P3"][0]
            assert held == pytest.approx(99, abs=2)
            shadow.forget(kind("t"), after)
            assert list(shadow.watched()) == []
            assert shadow.by_class() == {"P3": (held, 0)}
            await asyncio.sleep(0)
            assert to.callers == 0

    lived(story)


def test_it_goes_as_another_class_when_it_is_lifted() -> None:
    async def story() -> None:
        shadow = RouteShadow(3)
        to = gate(1e6)
        throttle = around(shadow, "t", to)
        async with running(shadow):
            throttle.lift(1)
            await send(throttle, 5)
            await asyncio.sleep(0.1)
            throttle.lift(None)
            await send(throttle, 3)
            await asyncio.sleep(0.1)
            assert shadow.as_held(reading(8, 0)).confirmed == (0, 5, 3)

    lived(story)
