"""A batch size becomes a pace."""

import asyncio
from dataclasses import dataclass
from math import inf

import pytest

from proxy.bridge.throttle import OpenThrottle, PacedThrottle, inbox_mark
from proxy.congestion.collector import Statistics
from proxy.congestion.detector import Cause, Verdict
from proxy.congestion.per_type import AimdBatchSize
from proxy.settings import PriorityClass
from proxy.simulation import virtual_time

TICK = 0.1


@dataclass
class Fixed:
    """A batch size that no verdict changes."""

    value: float

    def on_verdict(self, verdict: Verdict) -> None:
        """Stay."""


def admitted(size: float, seconds: float, *, want: int = 10**6) -> list[tuple[float, int]]:
    """Return when how many were admitted to someone who always wants more."""

    async def ask() -> list[tuple[float, int]]:
        loop = asyncio.get_running_loop()
        throttle = PacedThrottle(TICK, Fixed(size))
        seen = []
        while loop.time() < seconds:
            granted = await throttle.admit(want, size=1.0, again=False)
            seen.append((loop.time(), granted))
        return [entry for entry in seen if entry[0] < seconds - 1e-6]

    return virtual_time.run(ask())


@pytest.mark.parametrize("size", [0.25, 1.0, 1.5, 7.3, 15.0, 5000.0])
def test_one_batch_size_is_admitted_per_tick_on_average_when_more_is_wanted(size: float) -> None:
    total = sum(count for _, count in admitted(size, 100.0))
    assert total == pytest.approx(size * 1000, rel=0.01, abs=1)


@pytest.mark.parametrize("size", [0.25, 1.5, 15.0])
def test_never_more_than_one_batch_size_is_admitted_at_once_when_it_was_idle_before(size: float) -> None:
    async def ask() -> int:
        throttle = PacedThrottle(TICK, Fixed(size))
        await throttle.admit(1, size=1.0, again=False)
        await asyncio.sleep(60)
        return await throttle.admit(10**6, size=1.0, again=False)

    assert virtual_time.run(ask()) < size + 1


def test_everything_is_admitted_at_once_when_control_is_off() -> None:
    async def ask() -> tuple[int, float]:
        return await OpenThrottle().admit(12345, size=1.0, again=False), asyncio.get_running_loop().time()

    assert virtual_time.run(ask()) == (12345, 0.0)


def test_what_could_not_be_used_may_go_later_when_it_is_given_back() -> None:
    async def ask() -> tuple[int, float]:
        throttle = PacedThrottle(TICK, Fixed(5))
        await throttle.admit(5, size=1.0, again=False)
        throttle.settle(0, 0)
        return await throttle.admit(5, size=1.0, again=False), asyncio.get_running_loop().time()

    assert virtual_time.run(ask()) == (5, 0.0)


def test_releases_fall_on_shifted_ticks_when_a_phase_is_given() -> None:
    async def ask() -> float:
        throttle = PacedThrottle(TICK, Fixed(5), phase=0.03)
        await throttle.admit(5, size=1.0, again=False)
        await throttle.admit(5, size=1.0, again=False)
        return asyncio.get_running_loop().time()

    assert virtual_time.run(ask()) == pytest.approx(0.03)


def test_a_grown_batch_size_is_used_at_once_when_a_small_one_made_it_wait_for_long() -> None:
    async def ask() -> float:
        size = AimdBatchSize(PriorityClass(increase=5, decrease=0.01, floor=0.001))
        throttle = PacedThrottle(TICK, size)
        for congested in (True, True, True):
            throttle.on_verdict(Verdict("r", congested, Cause.NONE, Statistics("r", 0, 0, None)))
        assert throttle.batch_size == 0.001
        waiting = asyncio.create_task(throttle.admit(10, size=1.0, again=False))
        await asyncio.sleep(1)
        throttle.on_verdict(Verdict("r", congested=False, cause=Cause.NONE, statistics=Statistics("r", 0, 0, None)))
        assert await waiting == 6  # 5.001, rounded up
        return asyncio.get_running_loop().time()

    assert virtual_time.run(ask()) == pytest.approx(1.0)


def test_the_wait_is_as_long_as_before_when_the_batch_size_shrinks_meanwhile() -> None:
    async def ask() -> float:
        size = Fixed(2.0)
        throttle = PacedThrottle(TICK, size)
        await throttle.admit(2, size=1.0, again=False)
        waiting = asyncio.create_task(throttle.admit(2, size=1.0, again=False))
        await asyncio.sleep(0.05)
        size.value = 0.25
        assert await waiting == 1
        return asyncio.get_running_loop().time()

    assert virtual_time.run(ask()) == pytest.approx(0.4)


@pytest.mark.parametrize(("size", "mark"), [(15.0, 300.0), (0.01, 1.0), (5000.0, 100_000.0)])
def test_twenty_ticks_of_a_batch_size_may_wait_in_the_process(size: float, mark: float) -> None:
    assert inbox_mark(PacedThrottle(TICK, Fixed(size))) == mark


def test_the_bound_of_the_inbox_decides_when_a_throttle_has_no_batch_size() -> None:
    assert inbox_mark(OpenThrottle()) == inf
