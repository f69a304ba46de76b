"""Time that jumps."""

import asyncio
from contextlib import suppress
from math import ulp

import pytest

from proxy.simulation import virtual_time


def test_an_hour_passes_at_once_when_everyone_sleeps() -> None:
    async def sleep() -> float:
        await asyncio.sleep(3600)
        return asyncio.get_running_loop().time()

    assert virtual_time.run(sleep()) == pytest.approx(3600)


@pytest.mark.parametrize("gap", [0, 1e-10, 5e-10, 1e-9, 1e-6])
@pytest.mark.parametrize("start", [0.1, 1234.5678])
def test_no_timer_fires_before_its_time_when_another_is_due_a_moment_earlier(start: float, gap: float) -> None:
    async def wait(deadline: float) -> int:
        loop, asked = asyncio.get_running_loop(), 0
        while (left := deadline - loop.time()) > 0 and asked < 100:
            asked += 1
            with suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await asyncio.Event().wait()
        return asked

    async def story() -> list[int]:
        # As long as one of them has something to do, no time passes for the other.
        asyncio.get_running_loop().call_at(start, lambda: None)
        return await asyncio.gather(wait(start + gap + ulp(start)), wait(start + gap + 2 * ulp(start)))

    assert max(virtual_time.run(story())) <= 3


def test_it_says_so_when_nothing_can_ever_happen_again() -> None:
    async def wait() -> None:
        await asyncio.Event().wait()

    with pytest.raises(virtual_time.DeadlockError):
        virtual_time.run(wait())
