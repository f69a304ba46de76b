"""A wait that ends when somebody rings, or in time."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from proxy.bridge.alarm import Alarm
from proxy.simulation import virtual_time


async def waited(alarm: Alarm, seconds: float) -> float:
    """Return for how many seconds a wait of so many at most lasted."""
    now = asyncio.get_running_loop().time
    began = now()
    await alarm.until(began + seconds)
    return now() - began


async def in_time() -> None:
    assert await waited(Alarm(), 0.5) == pytest.approx(0.5)


async def at_once_if_it_has_rung() -> None:
    alarm = Alarm()
    alarm.ring()
    assert await waited(alarm, 0.5) == 0
    assert await waited(alarm, 0.5) == pytest.approx(0.5), "it rang for one wait"


async def when_it_rings() -> None:
    alarm = Alarm()
    loop = asyncio.get_running_loop()
    for seconds in (0.1, 0.1, 0.7):  # twice for one wait, and once when nobody waits any more
        loop.call_later(seconds, alarm.ring)
    assert await waited(alarm, 0.5) == pytest.approx(0.1)
    assert await waited(alarm, 0.5) == pytest.approx(0.5)


async def leaves_nothing_behind_if_cancelled() -> None:
    alarm = Alarm()
    waiting = asyncio.create_task(alarm.until(asyncio.get_running_loop().time() + 1))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    alarm.ring()
    assert await waited(alarm, 0.5) == 0


@pytest.mark.parametrize("story", [in_time, at_once_if_it_has_rung, when_it_rings, leaves_nothing_behind_if_cancelled])
def test_a_wait_ends_as_it_should_when_it_is_cut_short_or_not(story: Callable[[], Awaitable[None]]) -> None:
    virtual_time.run(story())  # type: ignore[arg-type]
